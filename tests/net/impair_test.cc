#include "lib/net/impair_port.h"

#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <map>

#include "lib/net/heap_packet_pool.h"

namespace uet::net {

using base::Duration;
using base::Instant;

namespace {

/// A port whose sent packets come back to itself, in order.
class MirrorPort final : public Port {
 public:
  MirrorPort() : pool_(4096, 256) { facts_.name = "mirror"; }
  const PortFacts& facts() const override { return facts_; }
  PacketPool& pool() override { return pool_; }
  std::size_t receive(Instant, std::span<RxPacket> out) override {
    std::size_t n = 0;
    for (; n < out.size() && !queue_.empty(); ++n) {
      out[n].packet = std::move(queue_.front().packet);
      out[n].entropy = queue_.front().entropy;
      queue_.pop_front();
    }
    return n;
  }
  std::size_t send(Instant, std::span<TxPacket> in) override {
    std::size_t n = 0;
    for (; n < in.size() && n < room; ++n) queue_.push_back(std::move(in[n]));
    return n;
  }
  std::size_t room = SIZE_MAX;

 private:
  PortFacts facts_;
  HeapPacketPool pool_;
  std::deque<TxPacket> queue_;
};

ImpairConfig parsed(const std::string& text) {
  ImpairConfig config;
  std::string error;
  EXPECT_TRUE(ImpairConfig::parse(text, config, error)) << error;
  return config;
}

std::string refused(const std::string& text) {
  ImpairConfig config;
  std::string error;
  EXPECT_FALSE(ImpairConfig::parse(text, config, error)) << text;
  return error;
}

struct Outcome {
  std::map<std::uint16_t, int> seen;  ///< how often each packet arrived
  std::vector<std::uint16_t> order;
  ImpairCounters rx, tx;
  std::size_t leaked = 0;
  int damaged = 0;
};

/// Sends `count` numbered packets through an impaired mirror and waits until all that comes has come.
Outcome run_through(const std::string& text, int count = 2000) {
  base::Trace trace;
  auto mirror = std::make_unique<MirrorPort>();
  PacketPool& pool = mirror->pool();
  ImpairPort port(std::move(mirror), parsed(text), trace);
  Outcome result;
  Instant now;
  const auto receive = [&] {
    std::array<RxPacket, 16> out;
    const std::size_t n = port.receive(now, out);
    for (std::size_t i = 0; i < n; ++i) {
      ++result.seen[out[i].entropy];
      result.order.push_back(out[i].entropy);
      for (const std::uint8_t b : out[i].packet.bytes())
        if (b != 0x11) ++result.damaged;
    }
  };
  for (int i = 0; i < count; ++i) {
    TxPacket tx;
    tx.packet = pool.allocate();
    std::memset(tx.packet.append(64), 0x11, 64);
    tx.entropy = static_cast<std::uint16_t>(i);
    EXPECT_EQ(port.send(now, {&tx, 1}), 1u);
    now = now + Duration::from_us(1);
    receive();
  }
  while (!port.next_deadline().is_never()) {
    now = std::max(now + Duration::from_us(1), port.next_deadline());
    port.on_deadline(now);
    receive();
  }
  receive();
  result.rx = port.rx_counters();
  result.tx = port.tx_counters();
  result.leaked = pool.capacity() - pool.available();
  return result;
}

}  // namespace

TEST(ImpairConfig, parse__knows_every_key) {
  const ImpairConfig c =
      parsed("loss=0.01,reorder=0.05,duplicate=0.02,corrupt=0.001,delay=100us,jitter=50us,seed=7");
  EXPECT_EQ(c.rx.loss, 0.01);
  EXPECT_EQ(c.tx.reorder, 0.05);
  EXPECT_EQ(c.rx.duplicate, 0.02);
  EXPECT_EQ(c.tx.corrupt, 0.001);
  EXPECT_EQ(c.rx.delay, Duration::from_us(100));
  EXPECT_EQ(c.tx.jitter, Duration::from_us(50));
  EXPECT_EQ(c.seed, 7u);
}

TEST(ImpairConfig, parse__directions) {
  EXPECT_EQ(parsed("dir=tx,loss=0.5").rx.loss, 0);
  EXPECT_EQ(parsed("dir=tx,loss=0.5").tx.loss, 0.5);
  EXPECT_EQ(parsed("rx_loss=0.25,loss=0.5").rx.loss, 0.25);
  EXPECT_EQ(parsed("loss=0.5,rx_loss=0").rx.loss, 0);
  EXPECT_EQ(parsed("rx_loss=0.25,loss=0.5").tx.loss, 0.5);
  EXPECT_EQ(parsed("rx_delay=5ms").tx.delay, Duration());
}

TEST(ImpairConfig, parse__says_what_is_wrong) {
  EXPECT_NE(refused("lose=0.1").find("unknown key 'lose'"), std::string::npos);
  EXPECT_NE(refused("loss=2").find("bad value in 'loss=2'"), std::string::npos);
  for (const char* bad : {"loss", "loss=", "loss=-1", "loss=nan", "loss=0.1x", "delay=5",
                          "delay=5h", "delay=11s", "seed=x", "dir=up", "rx_dir=rx", ",", "tx_=1"})
    EXPECT_NE(refused(bad).find("known are"), std::string::npos) << bad;
}

TEST(ImpairPort, impairment_of__finds_it_under_other_wrappers) {
  class Outer final : public PortWrapper {
   public:
    explicit Outer(std::unique_ptr<Port> inner) : PortWrapper(std::move(inner)) {}
  };
  base::Trace trace;
  auto impaired =
      std::make_unique<ImpairPort>(std::make_unique<MirrorPort>(), ImpairConfig{}, trace);
  const ImpairPort* const inside = impaired.get();
  EXPECT_EQ(impairment_of(*impaired), inside);
  EXPECT_EQ(impairment_of(Outer(std::move(impaired))), inside);
  EXPECT_EQ(impairment_of(Outer(std::make_unique<MirrorPort>())), nullptr);
}

TEST(ImpairPort, nothing_configured_changes_nothing) {
  const Outcome r = run_through("seed=1");
  EXPECT_EQ(r.order.size(), 2000u);
  EXPECT_TRUE(std::is_sorted(r.order.begin(), r.order.end()));
  EXPECT_EQ(r.leaked, 0u);
}

TEST(ImpairPort, loss_is_counted_and_about_right) {
  const Outcome r = run_through("tx_loss=0.1,seed=3");
  EXPECT_EQ(r.seen.size() + r.tx.lost, 2000u);
  EXPECT_NEAR(static_cast<double>(r.tx.lost), 200, 60);
  EXPECT_EQ(r.rx.lost, 0u);
  EXPECT_EQ(r.leaked, 0u);
}

TEST(ImpairPort, duplicates_arrive_twice) {
  const Outcome r = run_through("rx_duplicate=0.1,seed=4");
  EXPECT_EQ(r.order.size(), 2000u + r.rx.duplicated);
  EXPECT_GT(r.rx.duplicated, 100u);
  EXPECT_EQ(r.leaked, 0u);
}

TEST(ImpairPort, reordered_packets_arrive_late_but_arrive) {
  const Outcome r = run_through("reorder=0.05,seed=5");
  EXPECT_EQ(r.seen.size(), 2000u);
  EXPECT_FALSE(std::is_sorted(r.order.begin(), r.order.end()));
  EXPECT_GT(r.rx.reordered + r.tx.reordered, 100u);
}

TEST(ImpairPort, equal_delay_keeps_the_order) {
  const Outcome r = run_through("delay=300us,seed=6");
  EXPECT_EQ(r.order.size(), 2000u);
  EXPECT_TRUE(std::is_sorted(r.order.begin(), r.order.end()));
}

TEST(ImpairPort, corruption_flips_one_bit) {
  const Outcome r = run_through("tx_corrupt=0.1,seed=8");
  EXPECT_EQ(static_cast<std::uint64_t>(r.damaged), r.tx.corrupted);
  EXPECT_GT(r.damaged, 100);
}

TEST(ImpairPort, same_seed_same_damage) {
  const char* text = "loss=0.02,reorder=0.05,duplicate=0.02,jitter=40us,seed=9";
  EXPECT_EQ(run_through(text).order, run_through(text).order);
}

TEST(ImpairPort, full_port_inside_loses_nothing) {
  base::Trace trace;
  auto mirror = std::make_unique<MirrorPort>();
  MirrorPort* inside = mirror.get();
  ImpairPort port(std::move(mirror), parsed("tx_duplicate=0.1,seed=2"), trace);
  inside->room = 0;
  std::size_t taken = 0;
  for (std::size_t i = 0; i < 3000; ++i) {
    TxPacket tx;
    tx.packet = port.pool().allocate();
    tx.packet.append(10);
    tx.entropy = static_cast<std::uint16_t>(i);
    taken += port.send(Instant(), {&tx, 1});
  }
  EXPECT_LE(taken, ImpairPort::kMaxHeld);
  inside->room = SIZE_MAX;
  port.on_deadline(Instant());
  std::vector<RxPacket> out(4000);
  EXPECT_EQ(port.receive(Instant(), out), taken + port.tx_counters().duplicated);
}

}  // namespace uet::net
