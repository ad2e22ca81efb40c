#include "apps/perf/plan.h"

#include <gtest/gtest.h>

#include <sstream>

#include "apps/perf/memory.h"

namespace uet::perf {
namespace {

using Sizes = std::vector<std::uint64_t>;

TEST(PerfPlanTest, parse_sizes__numbers_lists_and_ranges) {
  EXPECT_EQ(parse_sizes("4096"), Sizes({4096}));
  EXPECT_EQ(parse_sizes("64,4k,1M,1G"), Sizes({64, 4096, 1 << 20, 1 << 30}));
  EXPECT_EQ(parse_sizes("8..64"), Sizes({8, 16, 32, 64}));
  EXPECT_EQ(parse_sizes("3..10"), Sizes({3, 6, 10}));
  EXPECT_EQ(parse_sizes("8..4M")->size(), 20u);
  EXPECT_EQ(parse_sizes("16G"), Sizes({kSizeMax}));
}

TEST(PerfPlanTest, parse_sizes__refuses_what_is_no_size) {
  for (const char* text : {"", ",", "0", "x", "8x", "64..8", "8..", "..8", "8...9", "-1", "17G",
                           "99999999999999999999"})
    EXPECT_FALSE(parse_sizes(text)) << text;
}

TEST(PerfPlanTest, a_plan_survives_the_way_to_the_peer) {
  const auto plan = plan_from_json(to_json({"send", 4096, 10, 3, false}));
  ASSERT_TRUE(plan);
  EXPECT_EQ(to_json(*plan), to_json({"send", 4096, 10, 3, false}));
}

TEST(PerfPlanTest, plan_from_json__bounds_what_a_peer_may_ask_for) {
  const nlohmann::json good = to_json({"send", 4096, 10, 3, false});
  for (const char* key : {"size", "count", "window", "test", "verify"}) {
    nlohmann::json bad = good;
    bad.erase(key);
    EXPECT_FALSE(plan_from_json(bad)) << key;
    bad[key] = nullptr;
    EXPECT_FALSE(plan_from_json(bad)) << key;
  }
  for (const char* key : {"size", "count", "window"})
    for (const auto& value : std::initializer_list<nlohmann::json>{0, -1, 1.5, UINT64_MAX, "8"}) {
      nlohmann::json bad = good;
      bad[key] = value;
      EXPECT_FALSE(plan_from_json(bad)) << key << value;
    }
  EXPECT_FALSE(plan_from_json(nlohmann::json::array()));
}

TEST(PerfPlanTest, default_count__is_64_mib_within_bounds) {
  EXPECT_EQ(default_count("write", 1 << 20), 64u);
  EXPECT_EQ(default_count("write", 8), 10'000u);
  EXPECT_EQ(default_count("write", std::uint64_t{1} << 30), 16u);
  EXPECT_EQ(default_count("tagged-latency", 8), 1000u);
}

TEST(PerfPlanTest, default_warm_up__is_a_tenth_within_bounds) {
  EXPECT_EQ(default_warm_up(1), 1u);
  EXPECT_EQ(default_warm_up(64), 7u);
  EXPECT_EQ(default_warm_up(1'000'000), 1000u);
}

TEST(PerfPlanTest, why_refused__names_the_option_and_both_values) {
  const Plan plan{"write", 4096, 10, 16, true};
  EXPECT_EQ(why_refused({}, plan), "");
  EXPECT_NE(why_refused({.tests = {"send"}}, plan).find("test send, the client asks for write"),
            std::string::npos);
  EXPECT_NE(why_refused({.sizes = {8, 64}}, plan).find("--size 8,64, the client asks for 4096"),
            std::string::npos);
  EXPECT_NE(why_refused({.count = 11}, plan).find("--count 11"), std::string::npos);
  EXPECT_NE(why_refused({.window = 17}, plan).find("--window 17"), std::string::npos);
  EXPECT_EQ(why_refused({.tests = {"read", "write"}, .sizes = {8, 4096}, .count = 10, .window = 16},
                        plan),
            "");
  EXPECT_NE(why_refused({}, Plan{"wriet", 1, 1, 1, true}).find("knows no test 'wriet'"),
            std::string::npos);
}

TEST(PerfPlanTest, why_refused__the_window_is_nothing_to_latency_tests) {
  EXPECT_EQ(why_refused({.window = 16}, Plan{"send-latency", 8, 10, 1, true}), "");
}

TEST(PerfMemoryTest, what_is_available_is_read_and_compared) {
  std::istringstream some("MemTotal:  8000000 kB\nMemFree: 1 kB\nMemAvailable:  4194304 kB\n"),
      none("MemTotal: 8000000 kB\n");
  const std::uint64_t gib = std::uint64_t{1} << 30;
  EXPECT_EQ(memory_available(some), 4 * gib);
  EXPECT_EQ(memory_available(none), UINT64_MAX);
  EXPECT_EQ(why_too_much(4 * gib, 4 * gib), "");
  EXPECT_EQ(why_too_much(2 * gib, 4 * gib, 2), "");
  EXPECT_EQ(why_too_much(32 * gib, 4 * gib, 1, " on each side"),
            "this needs 32 GiB of memory on each side, and 4 GiB are available: use a smaller "
            "--window or --size");
  EXPECT_NE(why_too_much(3 * gib, 4 * gib, 2), "");
}

TEST(PerfPlanTest, why_refused__provider_and_order) {
  EXPECT_EQ(why_refused({}, "tcp", true), "");
  EXPECT_NE(why_refused({.providers = {"uet"}}, "tcp", false)
                .find("--provider uet, the client asks for tcp"),
            std::string::npos);
  EXPECT_NE(why_refused({.ordered = true}, "uet", false), "");
}

}  // namespace
}  // namespace uet::perf
