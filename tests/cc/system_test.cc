/// Congestion control of the shipped endpoint over a simulated fabric. [CC 10, system tests]
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "apps/sim/flow_run.h"
#include "fep/fep.h"
#include "sim/fabric.h"
#include "sim/faults.h"

namespace uet::sim {
namespace {

constexpr std::uint64_t kMb = 1'000'000;
constexpr double kBaseRttUs = 9.348;  // leaf-spine, 100 Gb/s

/// 32 hosts under 8 leaves and 4 spines.
RunConfig leaf_spine(cc::Algorithm algorithm, std::uint64_t seed) {
  RunConfig c;
  c.fabric.tree = FatTree::for_hosts(32, 2);
  c.fabric.hosts = 32;
  c.fabric.mark_last_hop = algorithm == cc::Algorithm::kNscc;
  c.algorithm = algorithm;
  c.seed = seed;
  return c;
}

TrafficMatrix matrix_of(const std::vector<Flow>& flows) {
  TrafficMatrix m;
  m.nodes = 32;
  m.flows = flows;
  for (std::uint32_t i = 0; i < m.flows.size(); ++i) m.flows[i].id = i + 1;
  return m;
}

Flow flow(HostId source, HostId destination, std::uint64_t bytes) {
  Flow f;
  f.source = source;
  f.destination = destination;
  f.bytes = bytes;
  return f;
}

TrafficMatrix incast(std::uint64_t bytes) {
  std::vector<Flow> flows;
  for (const HostId h : {4u, 7u, 11u, 14u, 18u, 21u, 25u, 28u}) flows.push_back(flow(h, 0, bytes));
  return matrix_of(flows);
}

TrafficMatrix permutation(std::uint32_t shift, std::uint64_t bytes) {
  std::vector<Flow> flows;
  for (HostId h = 0; h < 32; ++h) flows.push_back(flow(h, (h * 5 + shift) % 32, bytes));
  std::erase_if(flows, [](const Flow& f) { return f.source == f.destination; });
  return matrix_of(flows);
}

RunResult play(const RunConfig& config, const TrafficMatrix& matrix) {
  auto result = run_matrix(config, matrix);
  EXPECT_TRUE(result.has_value());
  EXPECT_EQ(result->completed, result->flows.size());
  return std::move(*result);
}

class SystemTest : public testing::TestWithParam<cc::Algorithm> {};
INSTANTIATE_TEST_SUITE_P(Algorithms, SystemTest,
                         testing::Values(cc::Algorithm::kNscc, cc::Algorithm::kRccc,
                                         cc::Algorithm::kBoth));

// What the short flow leaves behind is taken at once: all the time in which the link was not full, over the whole run, is
// shorter than ten base RTTs.
TEST_P(SystemTest, leaver__the_flow_that_stays_takes_the_whole_link) {
  for (const std::uint64_t seed : {1, 2, 3}) {
    const auto r =
        play(leaf_spine(GetParam(), seed), matrix_of({flow(4, 0, 20 * kMb), flow(21, 0, 2 * kMb)}));
    const double bound_us = 1796.6;
    EXPECT_LE(r.flows[0].fct().us(),
              1.01 * bound_us + (GetParam() == cc::Algorithm::kNscc ? 0 : 0.01 * bound_us))
        << "seed " << seed;  // credit is given for 99 % of the link
    EXPECT_LE(r.flows[0].fct().us() - bound_us, 10 * kBaseRttUs) << "seed " << seed;
    EXPECT_LT(r.flows[1].fct().us(), 600)
        << "and while both ran, the short one had a fair share; seed " << seed;
  }
}

// One after the other ends, and the link stays full to the last.
TEST_P(SystemTest, leaver__eight_flows_of_different_lengths) {
  for (const std::uint64_t seed : {1, 2, 3}) {
    std::vector<Flow> flows;
    std::uint64_t bytes = 0;
    for (const HostId h : {4u, 7u, 11u, 14u, 18u, 21u, 25u, 28u})
      flows.push_back(flow(h, 0, bytes += kMb / 2));
    const auto r = play(leaf_spine(GetParam(), seed), matrix_of(flows));
    EXPECT_LE(r.fct_max.us(), 1.04 * r.bound.us()) << "seed " << seed;
  }
}

// Lost credits and lost ACKs: counters are cumulative, so the next one heals.
TEST(CreditLoss, incast_hardly_slows_down_and_every_flow_ends) {
  for (const auto algorithm : {cc::Algorithm::kRccc, cc::Algorithm::kBoth}) {
    for (const double loss : {0.01, 0.05, 0.3}) {
      auto config = leaf_spine(algorithm, 5);
      config.prepare = [loss](Fabric& fabric) {
        // What the destination sends is credit and acknowledgements, nothing else.
        for (Link* link : fabric.find_links("host0>leaf0"))
          link->set_faults(FaultProfile{.loss = loss});
      };
      const auto r = play(config, incast(kMb));
      EXPECT_GT(r.drops + r.retransmissions, 0u);
      EXPECT_LE(r.fct_max.us(), (loss > 0.01 ? 3 : 1.05) * r.bound.us()) << "loss " << loss;
    }
  }
}

// [CC 5.5] Credit alone pays for a slow spine with trims and retransmissions; the factor gives less credit instead.
TEST(FabricFactorSystem, fewer_trims_over_a_slow_spine) {
  std::uint64_t trims[2] = {};
  double longest[2] = {};
  for (const bool on : {false, true}) {
    for (const std::uint64_t seed : {1, 2, 3}) {
      auto config = leaf_spine(cc::Algorithm::kRccc, seed);
      config.changes.push_back({.links = "spine0", .speed = 0.25});
      config.adjust = [on](fep::FepConfig& c) {
        c.cc.fabric_factor = on;
        c.cc.oversubscription = 4.0 / 3.25;
      };
      const auto r = play(config, permutation(3, 4 * kMb));
      trims[on] += r.trims;
      longest[on] = std::max(longest[on], r.fct_max.us() / r.bound.us());
    }
  }
  RecordProperty("trims_without", static_cast<int>(trims[0]));
  RecordProperty("trims_with", static_cast<int>(trims[1]));
  EXPECT_LT(trims[1], trims[0] * 4 / 5)
      << longest[0] << " of the bound without, " << longest[1] << " with";
  EXPECT_LE(longest[1], 1.5);  // what it costs: less credit for the paths that are well, too
}

// [CC 5.3] want / K: a host that sends to many asks for no more credit than its link can use, and all end together.
TEST(Outcast, with_credit_all_flows_end_together) {
  for (const auto algorithm : {cc::Algorithm::kRccc, cc::Algorithm::kBoth}) {
    std::vector<Flow> flows;
    for (const HostId h : {4u, 7u, 11u, 14u, 18u, 21u, 25u, 28u}) flows.push_back(flow(0, h, kMb));
    const auto r = play(leaf_spine(algorithm, 3), matrix_of(flows));
    EXPECT_LE(r.fct_max.us(), 1.02 * r.bound.us());
    EXPECT_GE(r.fct_min.us(), 0.97 * r.bound.us());
    EXPECT_GE(r.jain, 0.999);
  }
}

}  // namespace
}  // namespace uet::sim
