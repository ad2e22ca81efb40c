// Routes around dead links, and several planes side by side.

#include <gtest/gtest.h>

#include <set>

#include "sim/bounds.h"
#include "sim/fabric.h"
#include "tests/sim/script.h"

namespace uet::sim {
namespace {

FabricConfig route_config(std::uint32_t tiers, std::uint32_t hosts, std::uint32_t planes = 1) {
  FabricConfig c;
  c.tree = FatTree::for_hosts(hosts, tiers);
  c.hosts = hosts;
  c.planes = planes;
  return c;
}

/// Packets of one flow by many entropy values; counts what arrives.
class RouteTest : public testing::Test, public FrameObserver {
 protected:
  void make(const FabricConfig& config) {
    fabric_.emplace(simulation_, model_, config, SimPortConfig{});
  }
  /// How many of 256 entropy values lead from host to host.
  int arrive(HostId from, HostId to, std::uint8_t plane = 0) {
    arrived_ = 0;
    planes_.clear();
    fabric_->port(to).set_observer(this);
    for (std::uint16_t ev = 0; ev < 256; ++ev) {
      net::TxPacket tx;
      tx.packet = simulation_.packets_pool.allocate();
      tx.packet.append(100);
      tx.destination = address_of(to);
      tx.entropy = ev;
      tx.plane = plane;
      EXPECT_EQ(fabric_->port(from).send({}, {&tx, 1}), 1u);
      while (simulation_.events.run_next()) {
      }
    }
    return arrived_;
  }
  void cut(const char* links, bool up = false) {
    for (Link* link : fabric_->find_links(links)) link->set_up(up);
  }
  void on_delivered(const Frame& frame) override {
    ++arrived_;
    planes_.insert(frame.rx.plane);
  }

  Simulation simulation_{7, 4096, 4300};
  WireModel model_;
  std::optional<Fabric> fabric_;
  int arrived_ = 0;
  std::set<unsigned> planes_;
};

TEST_F(RouteTest, repair__leaves_out_a_dead_spine_and_takes_it_back) {
  make(route_config(2, 32));
  cut("spine0");
  EXPECT_NEAR(arrive(0, 31), 192, 30);
  fabric_->repair_routes();
  EXPECT_EQ(arrive(0, 31), 256);
  cut("spine0", true);
  EXPECT_EQ(arrive(0, 31), 256);
  EXPECT_EQ(fabric_->find_links("leaf0>spine0").at(0)->queue().counters().data_packets +
                fabric_->find_links("leaf0>spine0").at(0)->queue().counters().control_packets,
            fabric_->find_links("leaf0>spine0").at(0)->lost_while_down())
      << "the leaf has not been told that the spine is back";
  fabric_->repair_routes();
  EXPECT_EQ(arrive(0, 31), 256);
}

TEST_F(RouteTest, repair__a_cable_at_the_far_end_is_avoided_only_towards_that_leaf) {
  make(route_config(2, 32));
  cut("leaf7-spine1");
  EXPECT_NEAR(arrive(0, 31), 192, 30);
  fabric_->repair_routes();
  EXPECT_EQ(arrive(0, 31), 256);
  EXPECT_EQ(arrive(31, 0), 256);
  EXPECT_EQ(arrive(0, 8), 256);
}

TEST_F(RouteTest, repair__three_tiers_route_around_cores_aggregations_and_cables) {
  for (const char* links : {"core0", "agg1", "leaf2-agg4", "core0>agg12"}) {
    make(route_config(3, 128));
    cut(links);
    fabric_->repair_routes();
    for (const auto& [from, to] :
         {std::pair{0u, 127u}, {8u, 127u}, {127u, 8u}, {9u, 0u}, {70u, 50u}}) {
      EXPECT_EQ(arrive(from, to), 256) << links << ": " << from << " to " << to;
    }
  }
}

TEST_F(RouteTest, repair__where_nothing_is_left_packets_are_lost_as_before) {
  make(route_config(2, 32));
  for (const char* spine : {"spine0", "spine1", "spine2", "spine3"}) cut(spine);
  fabric_->repair_routes();
  EXPECT_EQ(arrive(0, 31), 0);
  EXPECT_EQ(arrive(0, 1), 256) << "on one leaf";
}

TEST_F(RouteTest, planes__a_packet_stays_in_its_plane_and_says_by_which_it_came) {
  make(route_config(2, 32, 3));
  for (std::uint8_t plane = 0; plane < 3; ++plane) {
    EXPECT_EQ(arrive(0, 31, plane), 256);
    EXPECT_EQ(planes_, std::set<unsigned>{plane});
  }
  EXPECT_EQ(fabric_->port(0).facts().planes, 3);
  EXPECT_EQ(fabric_->port(0).facts().link_rate.bps(), 300'000'000'000u);
}

TEST_F(RouteTest, planes__links_are_named_in_one_plane_or_in_all) {
  make(route_config(2, 32, 2));
  EXPECT_EQ(fabric_->find_links("spine0").size(), 32u);
  EXPECT_EQ(fabric_->find_links("plane1/spine0").size(), 16u);
  EXPECT_EQ(fabric_->find_links("plane0/host5").size(), 2u);
  EXPECT_EQ(fabric_->find_links("plane1").size() * 2, fabric_->all_links().size());
  EXPECT_TRUE(fabric_->find_links("plane2").empty());
  EXPECT_TRUE(fabric_->find_links("plane/spine0").empty());
}

TEST_F(RouteTest, planes__a_host_sees_which_of_its_links_are_up_unless_it_has_only_one) {
  make(route_config(2, 32, 2));
  cut("plane1/host5");
  EXPECT_EQ(fabric_->port(5).planes_up({}), 0b01);
  EXPECT_EQ(fabric_->port(5).plane_room({}, 1), 0u);
  EXPECT_EQ(fabric_->port(5).send_room({}), 1u);
  EXPECT_EQ(fabric_->port(6).planes_up({}), 0b11);
  EXPECT_EQ(arrive(6, 5, 1), 0);
  EXPECT_EQ(arrive(6, 5, 0), 256);

  make(route_config(2, 32));
  cut("host5");
  EXPECT_EQ(fabric_->port(5).planes_up({}), 1);
  EXPECT_EQ(fabric_->port(5).send_room({}), 1u);
}

TEST(PlanesBound, solo__planes_share_the_packets_of_a_flow) {
  const FabricConfig one = route_config(2, 32), two = route_config(2, 32, 2);
  EXPECT_EQ(solo_bound(one, 0, 31, 100).ps(), solo_bound(two, 0, 31, 100).ps());
  const auto saved = solo_bound(one, 0, 31, 4086 * 100) - solo_bound(two, 0, 31, 4086 * 100);
  EXPECT_EQ(saved.ps(), SimSpan::of_bytes(4150 * 50, one.link_rate).ps());
}

TEST(JobBound, chain__adds_one_way_times_and_one_answer) {
  const FabricConfig fabric = route_config(2, 32);
  TrafficMatrix m;
  m.nodes = 32;
  m.triggers.push_back({.id = 1, .kind = Trigger::Kind::kOneShot, .count = 1});
  m.flows.push_back({.id = 1,
                     .source = 0,
                     .destination = 31,
                     .bytes = 9000,
                     .start = {},
                     .started_by = {},
                     .fires_when_sent = {},
                     .fires_when_received = 1});
  m.flows.push_back({.id = 2,
                     .source = 31,
                     .destination = 30,
                     .bytes = 9000,
                     .start = {},
                     .started_by = 1,
                     .fires_when_sent = {},
                     .fires_when_received = {}});
  const SimSpan back = (SimSpan::of_bytes(64, fabric.link_rate) + fabric.hop_delay) * 4;
  const SimSpan expected =
      solo_bound(fabric, 0, 31, 9000) - back + solo_bound(fabric, 31, 30, 9000);
  EXPECT_EQ(job_bound(fabric, m, {}).ps(), expected.ps());
  m.flows[0].started_by = 1;
  EXPECT_EQ(job_bound(fabric, m, {}).ps(), 0) << "nothing ever starts";
}

}  // namespace
}  // namespace uet::sim
