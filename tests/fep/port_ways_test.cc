// What is remembered of the ways to destinations, as asking costs a few system calls, and what an endpoint makes of what its port says of itself.
#include "fep/port_ways.h"

#include <gtest/gtest.h>

#include <set>
#include <tuple>
#include <unordered_set>

#include "fep/fep.h"
#include "lib/net/heap_packet_pool.h"
#include "tests/fep/fep_pair.h"

namespace uet::test {
namespace {

using base::Duration;
using base::Instant;
using net::FabricAddress;

class AskedPort final : public net::Port {
 public:
  explicit AskedPort(net::PortFacts facts = {.ip_mtu = 9000}) : facts_(facts) {}
  const net::PortFacts& facts() const override { return facts_; }
  net::PacketPool& pool() override { return pool_; }
  std::size_t receive(Instant, std::span<net::RxPacket> out) override {
    offered = out.size();
    return 0;
  }
  std::size_t send(Instant, std::span<net::TxPacket>) override { return 0; }
  net::Way way_to(Instant, const FabricAddress& destination) override {
    ++asked;
    return {.ip_mtu = facts_.ip_mtu, .stays_on_host = destination == own};
  }

  std::size_t asked = 0;
  std::size_t offered = 0;  ///< places for packets, by the latest turn
  FabricAddress own;

 private:
  net::PortFacts facts_;
  net::HeapPacketPool pool_{1, 2048};
};

class PortWaysTest : public testing::Test {
 protected:
  /// A message to each of `count` peers of one network, again and again.
  void talk_to(std::uint32_t count, int rounds) {
    for (int round = 0; round < rounds; ++round)
      for (std::uint32_t i = 0; i < count; ++i) {
        EXPECT_EQ(ways.payload_towards(now, peer(i)), 4096u);
        EXPECT_EQ(ways.stays_on_host(now, peer(i)), peer(i) == port.own);
      }
  }
  static FabricAddress peer(std::uint32_t i) { return FabricAddress::from_v4(0x0a000002 + i); }

  AskedPort port;
  fep::PortWays ways{port, 4096};
  Instant now = Instant::from_ns(1'000'000'000);
};

TEST_F(PortWaysTest, peers_of_a_network_are_asked_about_once) {
  port.own = peer(1);
  talk_to(3, 10);
  EXPECT_EQ(port.asked, 3u);
  talk_to(200, 10);
  EXPECT_EQ(port.asked, 200u);
}

TEST_F(PortWaysTest, is_known_on_host__asks_nothing) {
  port.own = peer(1);
  EXPECT_FALSE(ways.is_known_on_host(peer(1)));
  talk_to(2, 1);
  now = now + base::Duration::from_seconds(5);
  EXPECT_TRUE(ways.is_known_on_host(peer(1)));
  EXPECT_FALSE(ways.is_known_on_host(peer(0)));
  EXPECT_EQ(port.asked, 2u);
}

TEST_F(PortWaysTest, half_a_second_later_the_port_is_asked_again) {
  talk_to(4, 1);
  now = now + Duration::from_ms(499);
  talk_to(4, 2);
  EXPECT_EQ(port.asked, 4u);
  now = now + Duration::from_ms(1);
  talk_to(4, 2);
  EXPECT_EQ(port.asked, 8u);
}

// A table that grows asks again for what it knew, so it is some times their number, and then no more.
TEST_F(PortWaysTest, many_peers_are_remembered_as_well) {
  constexpr std::uint32_t kPeers = 20'000;
  talk_to(kPeers, 3);
  EXPECT_LT(port.asked, 4 * kPeers);
  port.asked = 0;
  talk_to(kPeers, 3);
  EXPECT_LT(port.asked, 3 * kPeers / 50);
}

TEST(FabricAddressHash, neighbors_differ_in_the_bits_that_tables_take) {
  const auto places = [](auto&& address_of, std::size_t count, std::size_t table) {
    std::unordered_set<std::size_t> taken;
    for (std::size_t i = 0; i < count; ++i) taken.insert(address_of(i).hash() % table);
    return taken.size();
  };
  const auto v4 = [](unsigned shift) {
    return [shift](std::size_t i) {
      return FabricAddress::from_v4(0x0a000000 | static_cast<std::uint32_t>(i << shift));
    };
  };
  const auto v6 = [](std::size_t byte) {
    return [byte](std::size_t i) {
      std::array<std::uint8_t, 16> bytes{0xfd};
      bytes[byte] = static_cast<std::uint8_t>(i);
      return FabricAddress::from_v6(bytes);
    };
  };
  // Thrown at random, 256 into 1024 places take 226.
  for (const unsigned shift : {0u, 8u, 16u})
    EXPECT_GT(places(v4(shift), 256, 1024), 200u) << "octet " << shift / 8;
  for (std::size_t byte = 1; byte < 16; ++byte)
    EXPECT_GT(places(v6(byte), 256, 1024), 200u) << "byte " << byte;
}

cc::CcConfig congestion_control_over(const net::PortFacts& facts, cc::CcConfig wanted) {
  AskedPort port(facts);
  base::Rng rng(1);
  base::Trace trace;
  fep::FepConfig config;
  config.cc = wanted;
  return fep::Fep(config, port, rng, trace, Instant()).config().cc;
}

// [decision 127]
TEST(PortRuns, runs_are_of_16_KiB_and_in_a_calm_fabric_what_one_IP_packet_carries) {
  constexpr std::uint32_t kCarried = 65535 - 40 - 8;
  const cc::CcConfig in_turn{.load_balancing = cc::LoadBalancing::kOblivious};
  for (const auto& [ip_mtu, payload] :
       {std::pair{1400, 1024}, {1500, 1280}, {4500, 4096}, {9000, 8192}}) {
    const auto made = congestion_control_over(
        {.ip_mtu = static_cast<std::uint32_t>(ip_mtu), .run_packets = 64}, in_turn);
    EXPECT_EQ(made.run_packets, 16384 / payload);
    EXPECT_LE(made.calm_run_packets * made.mtu_bytes, kCarried);
    EXPECT_GT((made.calm_run_packets + 1) * made.mtu_bytes, kCarried);
  }
}

TEST(PortRuns, runs_are_what_was_asked_for_where_the_port_merges_nothing) {
  const auto made = congestion_control_over(
      {.ip_mtu = 9000},
      {.load_balancing = cc::LoadBalancing::kOblivious, .run_packets = 3, .calm_run_packets = 5});
  EXPECT_EQ(made.run_packets, 3);
  EXPECT_EQ(made.calm_run_packets, 5);
}

TEST(PortRuns, runs_are_of_one_packet_where_each_is_to_tell_of_its_path) {
  const auto made = congestion_control_over({.ip_mtu = 1500, .run_packets = 64},
                                            {.load_balancing = cc::LoadBalancing::kBitmap});
  EXPECT_EQ(made.run_packets, 1);
  EXPECT_EQ(made.calm_run_packets, 1);
}

TEST(PortRuns, a_turn_takes_in_whole_runs) {
  for (const auto& [ip_mtu, run_packets, offered] :
       {std::tuple{1500, 1, 32u}, {1500, 64, 47u}, {9000, 64, 35u}}) {
    AskedPort port({.ip_mtu = static_cast<std::uint32_t>(ip_mtu),
                    .run_packets = static_cast<std::uint16_t>(run_packets)});
    base::Rng rng(1);
    base::Trace trace;
    fep::FepConfig config;
    config.cc.load_balancing = cc::LoadBalancing::kOblivious;
    fep::Fep(config, port, rng, trace, Instant()).turn(Instant());
    EXPECT_EQ(port.offered, offered) << ip_mtu;
  }
}

// A turn that took 32 packets would cut each run into two messages to the kernel.
TEST(PortRuns, a_turn_sends_a_run_whole) {
  struct Turn {
    std::size_t packets = 0;
    std::set<std::uint16_t> paths;
  };
  Turn turn;
  FepPair pair({.delay = Duration::from_us(1),
                .rate = base::BitRate::from_gbps(400),
                .ip_mtu = 1500,
                .run_packets = 64,
                .tap =
                    [&](std::size_t from, const net::TxPacket& tx) {
                      if (from != 0) return;
                      ++turn.packets;
                      turn.paths.insert(tx.entropy);
                    }},
               {{"LB", "oblivious"}});
  std::vector<std::uint8_t> from(16 << 20, 1), to(from.size());
  const iovec local = iov(from), remote = iov(to);
  const auto key = pair.ses(1).register_memory(
      ses::MemoryRequest{.iov = {&remote, 1}, .remote_write = true, .virtual_addressing = false});
  ASSERT_TRUE(key.has_value());
  ASSERT_TRUE(pair.ses(0).rma(pair.now, pair.sides[0].endpoint,
                              {.peer = pair.sides[0].peer, .iov = {&local, 1}, .key = *key}));
  const std::size_t run = pair.sides[0].fep->config().cc.calm_run_packets;
  ASSERT_GT(run, 32u);
  int whole_runs = 0, checked = 0;
  for (int n = 0; n < 100'000 && pair.completions(0).count() == 0; ++n) {
    turn = {};
    pair.sides[0].fep->turn(pair.now);
    pair.sides[1].fep->turn(pair.now);
    EXPECT_LE(turn.packets, run);
    const bool is_calm = whole_runs > 0 && turn.packets > 0;
    if (is_calm) {
      EXPECT_EQ(turn.paths.size(), 1u) << turn.packets;
      ++checked;
    }
    whole_runs += turn.packets == run && turn.paths.size() == 1 ? 1 : 0;
    pair.now = pair.now + Duration::from_us(1);
  }
  EXPECT_EQ(pair.completions(0).count(), 1u);
  EXPECT_GT(whole_runs, 1);
  EXPECT_GT(checked, 100);
}

}  // namespace
}  // namespace uet::test
