#include "sim/fabric.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "tests/sim/script.h"

namespace uet::sim {
namespace {

FabricConfig config_of(std::uint32_t tiers, std::uint32_t hosts) {
  FabricConfig c;
  c.tree = FatTree::for_hosts(hosts, tiers);
  c.hosts = hosts;
  return c;
}

TEST(FabricConfigTest, shapes_and_numbers_are_the_published_ones) {
  const FabricConfig two = config_of(2, 32);
  EXPECT_EQ(two.tree.radix, 8u);
  EXPECT_EQ(two.tree.leaves(), 8u);
  EXPECT_EQ(two.tree.tops(), 4u);
  EXPECT_EQ(two.base_rtt().ps(), 9'348'480);
  EXPECT_EQ(two.switch_queue(false).data_limit_bytes, 120'350);
  EXPECT_EQ(two.switch_queue(false).ecn_low_bytes, 24'900);
  EXPECT_EQ(two.switch_queue(false).ecn_high_bytes, 99'600);
  EXPECT_NEAR(two.rto_min().us(), 72.77, 0.01);

  const FabricConfig small = config_of(3, 16);
  EXPECT_EQ(small.tree.leaves(), 8u);
  EXPECT_EQ(small.tree.aggregations(), 8u);
  EXPECT_EQ(small.tree.tops(), 4u);
  EXPECT_EQ(small.base_rtt().ps(), 14'022'720);
  EXPECT_EQ(small.switch_queue(false).data_limit_bytes, 178'450);
  EXPECT_EQ(small.switch_queue(false).ecn_low_bytes, 37'350);
  EXPECT_EQ(small.switch_queue(false).ecn_high_bytes, 145'250);
  EXPECT_NEAR(small.rto_min().us(), 100.66, 0.01);

  FabricConfig fast = two;
  fast.link_rate = base::BitRate::from_gbps(400);
  EXPECT_NEAR(fast.base_rtt().us(), 8.337, 0.001);
  EXPECT_EQ(fast.switch_queue(false).data_limit_bytes, 419'150);

  FabricConfig drop = two;
  drop.trimming = false;
  EXPECT_EQ(drop.switch_queue(false).data_limit_bytes, 601'750);
  EXPECT_NEAR(drop.rto_min().us(), 303.84, 0.01);
}

TEST(FatTreeTest, tiers_follow_from_the_number_of_hosts) {
  EXPECT_EQ(FatTree::for_hosts(16, {}).tiers, 3u);
  EXPECT_EQ(FatTree::for_hosts(32, {}).tiers, 2u);
  EXPECT_EQ(FatTree::for_hosts(128, {}).tiers, 3u);
  EXPECT_EQ(FatTree::for_hosts(1024, {}).tiers, 3u);
  EXPECT_EQ(FatTree::for_hosts(20, {}).tiers, 2u);
  EXPECT_GE(FatTree::for_hosts(20, 3).hosts(), 20u);
}

TEST(FatTreeTest, hops_count_links) {
  const FatTree three = FatTree::for_hosts(128, 3);
  EXPECT_EQ(three.hops(0, 3), 2u);
  EXPECT_EQ(three.hops(0, 4), 4u);
  EXPECT_EQ(three.hops(0, 16), 6u);
  EXPECT_EQ(FatTree::for_hosts(32, 2).hops(0, 31), 4u);
}

struct FabricParam {
  std::uint32_t tiers, hosts;
};
class FabricRoutingTest : public testing::TestWithParam<FabricParam> {};

TEST_P(FabricRoutingTest, every_host_reaches_every_other_with_every_entropy_value) {
  Simulation simulation(7, 100'000, 4300);
  WireModel model;
  model.size = WireModel::Size::kModel;
  Fabric fabric(simulation, model, config_of(GetParam().tiers, GetParam().hosts), {});
  std::vector<std::unique_ptr<Script>> scripts;
  for (HostId h = 0; h < fabric.hosts(); ++h) {
    scripts.push_back(std::make_unique<Script>(simulation, fabric.port(h)));
  }
  for (HostId a = 0; a < fabric.hosts(); ++a) {
    for (HostId b = 0; b < fabric.hosts(); ++b) {
      if (a != b) {
        scripts[a]->queue({.to = b,
                           .bytes = 12,
                           .control = true,
                           .entropy = static_cast<std::uint16_t>(a * 7 + b)});
      }
    }
    scripts[a]->node.poke();
  }
  simulation.events.run_until(SimTime::never());
  for (const auto& s : scripts) EXPECT_EQ(s->received, fabric.hosts() - 1);
  EXPECT_EQ(simulation.frames.in_use(), 0u);
}

INSTANTIATE_TEST_SUITE_P(Shapes, FabricRoutingTest,
                         testing::Values(FabricParam{2, 2}, FabricParam{2, 32}, FabricParam{3, 16},
                                         FabricParam{3, 54}, FabricParam{2, 20},
                                         FabricParam{3, 20}));

TEST(FabricTest, entropy_values_spread_a_flow_over_all_spines) {
  Simulation simulation(7, 100'000, 4300);
  WireModel model;
  Fabric fabric(simulation, model, config_of(2, 32), {});
  Script a(simulation, fabric.port(0));
  Script b(simulation, fabric.port(31));
  for (std::uint16_t ev = 0; ev < 1024; ++ev) {
    a.queue({.to = 31, .bytes = Script::data_bytes(100), .entropy = ev});
  }
  a.node.poke();
  simulation.events.run_until(SimTime::never());
  EXPECT_EQ(b.received, 1024u);
  for (const std::uint64_t n : fabric.top_packets()) EXPECT_NEAR(static_cast<double>(n), 256, 60);
}

TEST(FabricTest, totals__count_what_a_host_has_no_place_for) {
  Simulation simulation(7, 1000, 4300);
  WireModel model;
  SimPortConfig one_waits;
  one_waits.receive_limit = 1;
  Fabric fabric(simulation, model, config_of(2, 32), one_waits);
  Script a(simulation, fabric.port(0));
  struct : PortListener {
    void on_port_ready() override {}  // takes nothing
  } asleep;
  fabric.port(31).set_listener(&asleep);
  for (int i = 0; i < 3; ++i) a.queue({.to = 31, .bytes = 12, .control = true});
  a.node.poke();
  simulation.events.run_until(SimTime::never());
  EXPECT_EQ(fabric.totals().drops, 2u);
  fabric.port(31).drop_received();
}

TEST(FabricTest, flows_have_maps_of_their_own) {
  Simulation simulation(7, 1000, 4300);
  WireModel model;
  Fabric fabric(simulation, model, config_of(2, 32), {});
  int same = 0;
  for (std::uint16_t ev = 0; ev < 256; ++ev) {
    if (fabric.leaf(0).uplink_of(1, ev) == fabric.leaf(0).uplink_of(2, ev)) ++same;
  }
  EXPECT_NEAR(same, 64, 30);
}

TEST(FabricTest, find_links__names_cables_switches_and_directions) {
  Simulation simulation(7, 1000, 4300);
  WireModel model;
  Fabric fabric(simulation, model, config_of(2, 32), {});
  EXPECT_EQ(fabric.find_links("spine0").size(), 16u);
  EXPECT_EQ(fabric.find_links("leaf2-spine1").size(), 2u);
  EXPECT_EQ(fabric.find_links("spine1>leaf2").size(), 1u);
  EXPECT_EQ(fabric.find_links("host5").size(), 2u);
  EXPECT_TRUE(fabric.find_links("spine4").empty());
  EXPECT_TRUE(fabric.find_links("").empty());
}

/// Time from the start of a flow of `bytes` to the arrival of the answer to its last packet.
SimSpan scripted_flow(std::uint32_t tiers, std::uint32_t hosts, HostId to, std::int64_t bytes,
                      std::uint64_t* hash = nullptr) {
  Simulation simulation(3, 100'000, 4300);
  WireModel model;
  model.size = WireModel::Size::kModel;
  Fabric fabric(simulation, model, config_of(tiers, hosts), {});
  Script a(simulation, fabric.port(0));
  Script b(simulation, fabric.port(to));
  std::uint64_t packets = 0;
  for (std::int64_t left = bytes; left > 0; left -= 4086) {
    const auto payload = static_cast<std::size_t>(std::min<std::int64_t>(left, 4086));
    a.queue({.to = to, .bytes = Script::data_bytes(payload), .entropy = 9});
    ++packets;
  }
  b.on_packet = [&](net::RxPacket&) {
    if (b.received == packets) b.queue({.to = 0, .bytes = 32, .control = true});
  };
  a.node.poke();
  simulation.events.run_until(SimTime::never());
  EXPECT_EQ(b.received, packets);
  EXPECT_EQ(a.received, 1u);
  if (hash != nullptr) *hash = simulation.hash.value();
  return a.arrivals.at(0) - SimTime{};
}

TEST(ClosedFormTest, one_flow_meets_the_bound_to_the_picosecond) {
  // (n-1) S + (H-1)(S+L) + s + L + H (a+L), S = 332 ns, L = 1 us, a = 5.12 ns.
  const auto solo = [](std::int64_t bytes, std::int64_t hops) {
    const std::int64_t n = (bytes + 4085) / 4086;
    const std::int64_t last = (bytes - (n - 1) * 4086 + 64) * 80;
    if (n == 1) return hops * (last + 1'000'000) + hops * (5'120 + 1'000'000);
    return (n - 1) * 332'000 + (hops - 1) * 1'332'000 + last + 1'000'000 + hops * 1'005'120;
  };
  EXPECT_EQ(scripted_flow(3, 16, 13, 8'000).ps(), solo(8'000, 6));
  EXPECT_NEAR(scripted_flow(3, 16, 13, 8'000).us(), 14.341, 0.001);
  EXPECT_EQ(scripted_flow(3, 16, 13, 2'000'000).ps(), solo(2'000'000, 6));
  EXPECT_NEAR(scripted_flow(3, 16, 13, 2'000'000).us(), 176.20, 0.01);
  EXPECT_EQ(scripted_flow(3, 16, 1, 2'000'000).ps(), solo(2'000'000, 2));
  EXPECT_EQ(scripted_flow(2, 32, 31, 2'000'000).ps(), solo(2'000'000, 4));
  EXPECT_EQ(scripted_flow(2, 32, 31, 1).ps(), solo(1, 4));
}

// Covers: CC-I14
TEST(DeterminismTest, same_seed_gives_the_same_fingerprint) {
  const auto run = [](std::uint64_t seed) {
    Simulation simulation(seed, 100'000, 4300);
    WireModel model;
    model.size = WireModel::Size::kModel;
    Fabric fabric(simulation, model, config_of(2, 32), {});
    for (Link* l : fabric.all_links()) {
      l->set_faults({.loss = 0.01, .duplicate = 0.02, .reorder = 0.05, .corrupt = 0.01});
    }
    std::vector<std::unique_ptr<Script>> scripts;
    for (HostId h = 0; h < 32; ++h)
      scripts.push_back(std::make_unique<Script>(simulation, fabric.port(h)));
    for (int i = 0; i < 50; ++i) {
      for (HostId h = 1; h < 32; ++h) {
        scripts[h]->queue(
            {.to = 0, .bytes = Script::data_bytes(4086), .entropy = static_cast<std::uint16_t>(i)});
      }
    }
    for (const auto& s : scripts) s->node.poke();
    simulation.events.run_until(SimTime::never());
    EXPECT_GT(fabric.totals().trims, 0u);
    return simulation.hash.value();
  };
  EXPECT_EQ(run(1), run(1));
  EXPECT_NE(run(1), run(2));
}

TEST(FabricTest, incast_keeps_the_last_hop_busy) {
  // Eight senders, no reaction to congestion: the receiver's link must never be idle between first
  // and last arrival.
  Simulation simulation(5, 100'000, 4300);
  WireModel model;
  model.size = WireModel::Size::kModel;
  FabricConfig config = config_of(2, 32);
  config.trimming = false;
  config.queue_bytes = 100 << 20;
  Fabric fabric(simulation, model, config, {});
  Script receiver(simulation, fabric.port(0));
  std::vector<std::unique_ptr<Script>> senders;
  for (HostId h = 8; h < 16; ++h) {
    senders.push_back(std::make_unique<Script>(simulation, fabric.port(h)));
    for (std::uint16_t i = 0; i < 100; ++i) {
      senders.back()->queue({.to = 0, .bytes = Script::data_bytes(4086), .entropy = i});
    }
    senders.back()->node.poke();
  }
  simulation.events.run_until(SimTime::never());
  EXPECT_EQ(receiver.received, 800u);
  EXPECT_EQ((receiver.arrivals.back() - receiver.arrivals.front()).ps(), 799 * 332'000);
}

}  // namespace
}  // namespace uet::sim
