#include "sim/traffic_matrix.h"

#include <gtest/gtest.h>

#include <set>
#include <sstream>

#include "sim/bounds.h"

namespace uet::sim {
namespace {

base::Result<TrafficMatrix, std::string> parse(const std::string& text) {
  std::istringstream in(text);
  return parse_matrix(in);
}

TEST(TrafficMatrixTest, flows_are_read_in_order) {
  const auto m = parse(
      "Nodes 16\nConnections 2\n0->13 id 1 start 0 size 8000\n3->2 id 7 start 200000000 size 5\n");
  ASSERT_TRUE(m.has_value());
  EXPECT_EQ(m->nodes, 16u);
  ASSERT_EQ(m->flows.size(), 2u);
  EXPECT_EQ(m->flows[0].source, 0u);
  EXPECT_EQ(m->flows[0].destination, 13u);
  EXPECT_EQ(m->flows[0].bytes, 8000u);
  EXPECT_EQ(m->flows[1].id, 7u);
  EXPECT_EQ(m->flows[1].start.us(), 200);
}

TEST(TrafficMatrixTest, triggers_connect_flows) {
  const auto m = parse(
      "# two after one\nNodes 4\nConnections 2\nTriggers 2\n\n"
      "0->1 id 1 start 0 size 10 send_done_trigger 1 recv_done_trigger 2\n"
      "1->2 id 2 trigger 1 size 10 prio 3\n"
      "trigger id 1 oneshot\ntrigger id 2 barrier count 1\n");
  ASSERT_TRUE(m.has_value()) << m.error();
  EXPECT_EQ(m->flows[0].fires_when_sent, 1u);
  EXPECT_EQ(m->flows[0].fires_when_received, 2u);
  EXPECT_EQ(m->flows[1].started_by, 1u);
  ASSERT_EQ(m->triggers.size(), 2u);
  EXPECT_EQ(m->triggers[1].kind, Trigger::Kind::kBarrier);
  EXPECT_EQ(m->triggers[1].count, 1u);
}

struct BadMatrix {
  const char* text;
  const char* says;
};
class BadMatrixTest : public testing::TestWithParam<BadMatrix> {};

TEST_P(BadMatrixTest, is_refused_with_a_reason) {
  const auto m = parse(GetParam().text);
  ASSERT_FALSE(m.has_value());
  EXPECT_NE(m.error().find(GetParam().says), std::string::npos) << m.error();
}

INSTANTIATE_TEST_SUITE_P(
    All, BadMatrixTest,
    testing::Values(BadMatrix{"", "no 'Nodes'"}, BadMatrix{"0->1 size 3\n", "no 'Nodes'"},
                    BadMatrix{"Nodes x\n", "line 1: 'x' is not a number"},
                    BadMatrix{"Nodes\n", "must follow"}, BadMatrix{"Nodes 1\n", "between 2"},
                    BadMatrix{"Nodes -4\n", "'-4' is not a number"},
                    BadMatrix{"Nodes 4\nConnections 2\n0->1 size 3\n", "'Connections' says 2"},
                    BadMatrix{"Nodes 4\n0->4 size 3\n", "more than 4 nodes"},
                    BadMatrix{"Nodes 4\n0->0 size 3\n", "one host"},
                    BadMatrix{"Nodes 4\n0->1 start 0\n", "line 2: the flow has no size"},
                    BadMatrix{"Nodes 4\n0->1 size 0\n", "size must lie"},
                    BadMatrix{"Nodes 4\n0->1 size\n", "a number must follow 'size'"},
                    BadMatrix{"Nodes 4\n0->1 size 5 colour 3\n", "'colour' is not known"},
                    BadMatrix{"Nodes 4\n0-> size 5\n", "destination"},
                    BadMatrix{"Nodes 4\nfoo\n", "'foo' begins no line"},
                    BadMatrix{"Nodes 4\n0->1 trigger 1 size 5\n", "no trigger 1"},
                    BadMatrix{"Nodes 4\n0->1 trigger 1 start 0 size 5\n", "not both"},
                    BadMatrix{"Nodes 4\n0->1 id 1 size 5\n1->0 id 1 size 5\n", "twice"},
                    BadMatrix{"Nodes 4\ntrigger id 1 sometimes\n", "'sometimes' is not a kind"},
                    BadMatrix{"Nodes 4\ntrigger id 1 barrier count 0\n", "at least 1"},
                    BadMatrix{"Nodes 4\n0->1 id 1 start 0 size 9 send_done_trigger 1\n"
                              "1->2 id 2 trigger 1 size 9\ntrigger id 1 barrier count 2\n",
                              "trigger 1: its barrier counts to 2, and flows fire it 1 times"},
                    BadMatrix{"Nodes 4\nFailures 1\n", "--fail"},
                    BadMatrix{"Nodes 4\nfailure switch 1\n", "--fail"}));

TEST(PatternTest, ring_allreduce_has_two_rounds_of_dependent_steps) {
  const auto m = build_pattern("ring-allreduce", 8, 8000, 1);
  ASSERT_TRUE(m.has_value());
  EXPECT_EQ(m->flows.size(), 8u * 14);
  std::size_t free_flows = 0;
  for (const Flow& f : m->flows) {
    EXPECT_EQ(f.destination, (f.source + 1) % 8);
    EXPECT_EQ(f.bytes, 1000u);
    if (!f.started_by) ++free_flows;
  }
  EXPECT_EQ(free_flows, 8u);
}

TEST(PatternTest, tree_allreduce_goes_up_and_down) {
  const auto m = build_pattern("tree-allreduce", 7, 1000, 1);
  ASSERT_TRUE(m.has_value());
  EXPECT_EQ(m->flows.size(), 12u);
}

TEST(PatternTest, permutation_sends_once_and_receives_once) {
  const auto m = build_pattern("permutation", 32, 1000, 9);
  ASSERT_TRUE(m.has_value());
  std::set<HostId> to;
  for (const Flow& f : m->flows) {
    EXPECT_NE(f.source, f.destination);
    to.insert(f.destination);
  }
  EXPECT_EQ(to.size(), 32u);
}

TEST(PatternTest, unknown_name_is_refused_with_the_known_ones) {
  const auto m = build_pattern("star", 8, 8, 1);
  ASSERT_FALSE(m.has_value());
  EXPECT_NE(m.error().find("permutation"), std::string::npos);
}

FabricConfig fabric_for(std::uint32_t tiers, std::uint32_t hosts) {
  FabricConfig f;
  f.tree = FatTree::for_hosts(hosts, tiers);
  f.hosts = hosts;
  return f;
}

TrafficMatrix matrix_of(std::uint32_t hosts, std::vector<Flow> flows) {
  TrafficMatrix m;
  m.nodes = hosts;
  m.flows = std::move(flows);
  return m;
}

double bound(std::uint32_t tiers, std::uint32_t hosts, std::vector<Flow> flows,
             TopSpeeds tops = {}) {
  return matrix_bound(fabric_for(tiers, hosts), matrix_of(hosts, std::move(flows)), tops).us();
}

double job(std::vector<Flow> flows) {
  return job_bound(fabric_for(2, 32), matrix_of(32, std::move(flows)), {}).us();
}

double solo(HostId a, HostId b, std::uint64_t bytes) {
  return solo_bound(fabric_for(2, 32), a, b, bytes).us();
}

Flow flow(HostId a, HostId b, std::uint64_t bytes, std::int64_t start_us = 0) {
  return Flow{.id = 1,
              .source = a,
              .destination = b,
              .bytes = bytes,
              .start = SimTime::from_ps(start_us * 1'000'000),
              .started_by = {},
              .fires_when_sent = {},
              .fires_when_received = {}};
}

TEST(BoundsTest, published_bounds_are_met) {
  EXPECT_NEAR(bound(3, 16, {flow(0, 13, 8'000)}), 14.341, 0.001);
  EXPECT_NEAR(bound(3, 16, {flow(0, 13, 2'000'000)}), 176.20, 0.01);
  EXPECT_NEAR(bound(3, 16, {flow(0, 13, 20'000'000)}), 1638.75, 0.01);
  std::vector<Flow> incast;
  for (HostId h : {4u, 7u, 11u, 14u, 17u, 21u, 25u, 28u}) incast.push_back(flow(h, 0, 1'000'000));
  EXPECT_NEAR(bound(2, 32, incast), 659.1, 0.1);
  incast.clear();
  for (HostId h : {1u, 16u, 32u, 48u, 64u, 80u, 96u, 112u}) incast.push_back(flow(h, 0, 1'000'000));
  EXPECT_NEAR(bound(3, 128, incast), 654.4, 0.1);
  std::vector<Flow> all;
  for (HostId a = 0; a < 16; ++a) {
    for (HostId b = 0; b < 16; ++b) {
      if (a != b) all.push_back(flow(a, b, 65536));
    }
  }
  EXPECT_NEAR(bound(3, 16, all), 84.3, 0.1);
  std::vector<Flow> permutation;
  for (HostId h = 0; h < 32; ++h) permutation.push_back(flow(h, (h + 4) % 32, 8'000'000));
  EXPECT_NEAR(bound(2, 32, permutation), 659.04, 0.05);
  // The published 809.4 counts a fourth packet time; the one of the slow link is in the load. The last packets are short.
  EXPECT_NEAR(bound(2, 32, permutation, {0.25, 1, 1, 1}), 809.4 - 0.36, 0.05);
  EXPECT_NEAR(bound(2, 32, {flow(4, 0, 10'000'000), flow(21, 0, 10'000'000, 200)}), 1434, 0.5);
}

TEST(BoundsTest, start_of_a_flow__is_no_part_of_its_time) {
  EXPECT_EQ(bound(2, 32, {flow(0, 9, 8000, 1000)}), solo(0, 9, 8000));
  EXPECT_EQ(bound(2, 32, {flow(0, 9, 8000), flow(1, 9, 8000, 1000)}), solo(0, 9, 8000));
  const double together = bound(2, 32, {flow(0, 9, 800'000), flow(1, 9, 800'000)});
  EXPECT_GT(together, 1.9 * solo(0, 9, 800'000) - 10);
  EXPECT_NEAR(bound(2, 32, {flow(0, 9, 800'000, 1000), flow(1, 9, 800'000, 1000)}), together, 1e-9);
  // Two at once weigh on their link whatever came long before them.
  EXPECT_NEAR(
      bound(2, 32, {flow(2, 9, 8000), flow(0, 9, 800'000, 1000), flow(1, 9, 800'000, 1000)}),
      together, 1e-9);
}

TEST(BoundsTest, whole_job__counts_from_its_first_start) {
  EXPECT_EQ(job({flow(0, 9, 8000, 1000)}), solo(0, 9, 8000));
  EXPECT_NEAR(job({flow(0, 9, 8000, 1000), flow(1, 9, 8000, 5000)}), 4000 + solo(0, 9, 8000), 1e-9);
  const double together = bound(2, 32, {flow(0, 9, 800'000), flow(1, 9, 800'000)});
  EXPECT_NEAR(job({flow(0, 9, 800'000, 1000), flow(1, 9, 800'000, 1000)}), together, 1e-9);
}

TEST(BoundsTest, small_packets__are_not_counted_as_full_ones) {
  std::vector<Flow> ring;
  for (HostId h = 0; h < 32; ++h) ring.push_back(flow(h, (h + 9) % 32, 100));
  EXPECT_EQ(bound(2, 32, ring), solo(0, 9, 100));
  // The first packet is short, the last one as well: ten of them share the last link only.
  std::vector<Flow> incast;
  for (HostId h = 4; h < 14; ++h) incast.push_back(flow(h, 0, 100));
  const double packet = SimSpan::of_bytes(164, base::BitRate::from_gbps(100)).us();
  EXPECT_NEAR(bound(2, 32, incast), solo(4, 0, 100) + 9 * packet, 1e-9);
  // Nor those of the last packets, which overtake the full ones.
  std::vector<Flow> pairs;
  for (HostId h = 4; h < 14; ++h) pairs.push_back(flow(h, 0, 4087));
  const double full = SimSpan::of_bytes(4150, base::BitRate::from_gbps(100)).us();
  const double rest = SimSpan::of_bytes(65, base::BitRate::from_gbps(100)).us();
  const double answer = 4 * SimSpan::of_bytes(64, base::BitRate::from_gbps(100)).us();
  EXPECT_NEAR(bound(2, 32, pairs), full + 3 * rest + 10 * (full + rest) + 8 + answer, 1e-9);
}

TEST(BoundsTest, slow_spine__adds_the_packet_times_of_the_other_links) {
  std::vector<Flow> flows;
  for (HostId h = 0; h < 4; ++h) flows.push_back(flow(h, h + 8, 4086));
  const double full = SimSpan::of_bytes(4150, base::BitRate::from_gbps(100)).us();
  const double answer = 4 * SimSpan::of_bytes(64, base::BitRate::from_gbps(100)).us();
  EXPECT_NEAR(bound(2, 32, flows, {0.25, 0, 0, 0}), 4 * full / 0.25 + 3 * full + 8 + answer, 1e-6);
}

}  // namespace
}  // namespace uet::sim
