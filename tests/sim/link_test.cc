#include "sim/link.h"

#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <vector>

namespace uet::sim {
namespace {

class Sink final : public FrameSink {
 public:
  explicit Sink(Simulation& simulation) : simulation_(simulation) {}
  ~Sink() override { clear(); }
  void on_frame(Frame* frame) override {
    frames.push_back(frame);
    times.push_back(simulation_.now());
  }
  void clear() {
    for (Frame* f : frames) simulation_.frames.release(f);
    frames.clear();
    times.clear();
  }
  std::vector<Frame*> frames;
  std::vector<SimTime> times;

 private:
  Simulation& simulation_;
};

class LinkTest : public testing::Test {
 protected:
  LinkTest()
      : simulation(11, 100'000, 512), sink(simulation), link(simulation, model, config(), sink) {}
  static LinkConfig config() {
    LinkConfig c;
    c.rate = base::BitRate::from_gbps(8);  // 1 ns a byte
    c.delay = SimSpan::from(base::Duration::from_us(1));
    return c;
  }
  Frame* frame(std::uint32_t number, std::uint32_t bytes = 100) {
    Frame* f = simulation.frames.acquire();
    f->rx.packet = simulation.packets_pool.allocate();
    std::memset(f->rx.packet.append(bytes), 0, bytes);
    std::memcpy(f->rx.packet.data(), &number, sizeof number);
    f->rx.tos = net::TosByte::of(18, 2);
    f->wire_bytes = bytes;
    f->traffic_class = TrafficClass::kData;
    f->trimmable = true;
    return f;
  }
  void send(std::uint32_t count) {
    for (std::uint32_t i = 0; i < count; ++i) link.send(frame(i));
    simulation.events.run_until(SimTime::never());
  }
  std::uint64_t faults(Fault f) const { return link.fault_counters()[static_cast<std::size_t>(f)]; }

  Simulation simulation;
  WireModel model;
  Sink sink;
  Link link;
};

TEST_F(LinkTest, packet_arrives_after_its_serialisation_and_the_delay) {
  send(2);
  ASSERT_EQ(sink.times.size(), 2u);
  EXPECT_EQ(sink.times[0].ps(), 100'000 + 1'000'000);
  EXPECT_EQ(sink.times[1].ps(), 200'000 + 1'000'000);
}

TEST_F(LinkTest, loss_follows_its_probability) {
  link.set_faults({.loss = 0.1});
  send(20'000);
  EXPECT_NEAR(static_cast<double>(sink.frames.size()), 18'000, 200);
  EXPECT_EQ(faults(Fault::kLoss), 20'000 - sink.frames.size());
  sink.clear();
  EXPECT_EQ(simulation.packets_pool.in_use(), 0u);
}

TEST_F(LinkTest, burst_loss_comes_in_bursts) {
  // Mean burst of 10 packets, 1 % of packets start one.
  link.set_faults({.burst_enter = 0.01, .burst_leave = 0.1});
  send(20'000);
  std::set<std::uint32_t> arrived;
  for (const Frame* f : sink.frames) {
    std::uint32_t n;
    std::memcpy(&n, f->rx.packet.data(), sizeof n);
    arrived.insert(n);
  }
  int bursts = 0, lost = 0;
  for (std::uint32_t i = 1; i < 20'000; ++i) {
    if (arrived.contains(i)) continue;
    ++lost;
    if (arrived.contains(i - 1)) ++bursts;
  }
  ASSERT_GT(bursts, 50);
  EXPECT_NEAR(static_cast<double>(lost) / bursts, 10, 2.5);
  EXPECT_NEAR(lost / 20'000.0, 0.01 / 0.11, 0.025);
}

TEST_F(LinkTest, duplicates_follow_at_once_or_late) {
  link.set_faults({.duplicate = 0.05});
  send(10'000);
  EXPECT_EQ(sink.frames.size(), 10'000 + faults(Fault::kDuplicate));
  EXPECT_NEAR(static_cast<double>(faults(Fault::kDuplicate)), 500, 100);
  sink.clear();
  link.set_faults({.late_duplicate = 1});
  const SimTime before = simulation.now();
  send(100);
  EXPECT_EQ(sink.frames.size(), 200u);
  EXPECT_GT(sink.times.back() - before, SimSpan::from(base::Duration::from_ms(2)));
}

TEST_F(LinkTest, reordered_packets_are_late_not_lost) {
  link.set_faults({.reorder = 0.2});
  send(1000);
  ASSERT_EQ(sink.frames.size(), 1000u);
  int out_of_order = 0;
  std::uint32_t highest = 0;
  for (const Frame* f : sink.frames) {
    std::uint32_t n;
    std::memcpy(&n, f->rx.packet.data(), sizeof n);
    if (n < highest) ++out_of_order;
    highest = std::max(highest, n);
  }
  EXPECT_GT(out_of_order, 100);
}

TEST_F(LinkTest, corruption_flips_one_bit) {
  link.set_faults({.corrupt = 1});
  link.send(frame(0));
  simulation.events.run_until(SimTime::never());
  ASSERT_EQ(sink.frames.size(), 1u);
  int bits = 0;
  for (const std::uint8_t b : sink.frames[0]->rx.packet.bytes()) bits += std::popcount(b);
  EXPECT_EQ(bits, 1);
}

TEST_F(LinkTest, truncation_and_trimming_shorten) {
  link.set_faults({.truncate = 1});
  link.send(frame(0));
  simulation.events.run_until(SimTime::never());
  EXPECT_LT(sink.frames.at(0)->rx.packet.size(), 100u);
  EXPECT_EQ(sink.frames[0]->rx.tos.dscp(), 18);
  link.set_faults({.trim = 1});
  link.send(frame(0));
  simulation.events.run_until(SimTime::never());
  EXPECT_EQ(sink.frames.at(1)->rx.packet.size(), 64u);
  EXPECT_EQ(sink.frames[1]->rx.tos.dscp(), 26);
  EXPECT_EQ(sink.frames[1]->traffic_class, TrafficClass::kControl);
}

TEST_F(LinkTest, link_that_is_down_swallows_everything) {
  link.set_up(false);
  send(10);
  EXPECT_TRUE(sink.frames.empty());
  EXPECT_EQ(link.lost_while_down(), 10u);
  EXPECT_EQ(simulation.frames.in_use(), 0u);
  link.set_up(true);
  send(10);
  EXPECT_EQ(sink.frames.size(), 10u);
}

TEST_F(LinkTest, link_that_goes_down__loses_what_is_on_it) {
  const auto at = [this](std::int64_t ns, bool up) {
    simulation.events.call_at(SimTime::from_ps(ns * 1000), [this, up] { link.set_up(up); });
  };
  // Sent from 0, 100 ... 900 ns on, and on the wire for 1000 ns. It goes down while the third is sent, and is up again before that ends.
  at(250, false);
  at(260, true);
  send(10);
  EXPECT_EQ(sink.frames.size(), 7u);
  EXPECT_EQ(link.lost_while_down(), 3u);
  EXPECT_EQ(simulation.frames.in_use(), 7u);
}

// What begins to leave while it is down is cut at its beginning, also when it ends after the link is up again.
TEST_F(LinkTest, link_that_goes_down__loses_what_begins_to_leave) {
  const auto at = [this](std::int64_t ns, bool up) {
    simulation.events.call_at(SimTime::from_ps(ns * 1000), [this, up] { link.set_up(up); });
  };
  at(250, false);
  at(350, true);
  send(10);
  EXPECT_EQ(sink.frames.size(), 6u);
  EXPECT_EQ(link.lost_while_down(), 4u);
}

TEST_F(LinkTest, pause_delays_and_loses_nothing) {
  link.pause_until(SimTime::from(base::Instant::from_ns(5000)));
  send(3);
  ASSERT_EQ(sink.frames.size(), 3u);
  EXPECT_EQ(sink.times[0].ps(), 5'000'000 + 100'000 + 1'000'000);
}

TEST_F(LinkTest, speed_factor_stretches_serialisation) {
  link.set_speed_factor(0.25);
  send(1);
  EXPECT_EQ(sink.times.at(0).ps(), 400'000 + 1'000'000);
}

}  // namespace
}  // namespace uet::sim
