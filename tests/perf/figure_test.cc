#include "apps/perf/figure.h"

#include <gtest/gtest.h>

#include <numeric>

namespace uet::perf {
namespace {

Figure figure(const char* provider, const char* test, std::vector<double> seconds,
              const std::vector<std::vector<double>>& half_rtts = {}) {
  Figure f;
  f.provider = provider;
  f.plan = {test, 1000, 100, 16, true};
  summarize(f, seconds, half_rtts);
  return f;
}

TEST(PerfFigureTest, spread_of__sorts_and_takes_the_middle) {
  const Spread s = spread_of({5, 1, 4, 2});
  EXPECT_EQ(s.min, 1);
  EXPECT_EQ(s.median, 3);
  EXPECT_EQ(s.max, 5);
  EXPECT_EQ(spread_of({9, 1}).median, 5);
  EXPECT_EQ(spread_of({9, 1, 2}).median, 2);
}

TEST(PerfFigureTest, tail_of__nearest_rank_and_nothing_of_too_few_samples) {
  std::vector<double> samples(9);
  const auto more = [&](std::size_t n) {
    samples.resize(n);
    std::iota(samples.begin(), samples.end(), 1);
    return tail_of(samples);
  };
  EXPECT_FALSE(more(9).p90);
  EXPECT_EQ(more(10).p90, 9);
  EXPECT_EQ(more(11).p90, 10);
  EXPECT_FALSE(more(99).p99);
  EXPECT_EQ(more(100).p99, 99);
  EXPECT_EQ(more(101).p99, 100);
  EXPECT_FALSE(more(999).p999);
  EXPECT_EQ(more(1000).p999, 999);
  EXPECT_EQ(more(1001).p999, 1000);
  EXPECT_EQ(more(1001).least, 1);
  EXPECT_EQ(more(1001).most, 1001);
}

TEST(PerfFigureTest, summarize__rates_of_every_run) {
  const Figure f = figure("uet", "write", {1, 4, 2});
  EXPECT_EQ(f.runs, 3u);
  EXPECT_DOUBLE_EQ(f.messages_per_s.min, 25);
  EXPECT_DOUBLE_EQ(f.messages_per_s.median, 50);
  EXPECT_DOUBLE_EQ(f.gbit_per_s.max, 100 * 1000 * 8e-9);
}

TEST(PerfFigureTest, summarize__percentiles_are_over_all_runs_and_the_spread_over_their_medians) {
  std::vector<double> first(999, 2.0), second(999, 4.0);
  second.push_back(900);
  const Figure f = figure("uet", "tagged-latency", {1, 1}, {first, second});
  EXPECT_EQ(f.half_rtt_us.min, 2);
  EXPECT_EQ(f.half_rtt_us.max, 4);
  EXPECT_EQ(f.half_rtt_us_tail.p90, 4);
  EXPECT_EQ(f.half_rtt_us_tail.p99, 4);
  EXPECT_EQ(f.half_rtt_us_tail.least, 2);
  EXPECT_EQ(f.half_rtt_us_tail.most, 900);
  EXPECT_NEAR(f.half_rtt_us_average, 3.45, 0.01);
  EXPECT_NEAR(f.half_rtt_us_deviation, 20.1, 0.1);
}

TEST(PerfFigureTest, csv__has_as_many_columns_in_every_row) {
  testing::internal::CaptureStdout();
  Report report(Format::kCsv, {});
  Figure bad = figure("tcp", "write", {1});
  bad.why_not = "it said \"no\", twice";
  report.add({figure("uet", "write", {1})});
  report.add({figure("uet", "tagged-latency", {1}, {{1, 2, 6}})});
  EXPECT_TRUE(report.is_complete());
  report.add({bad});
  report.finish();
  EXPECT_FALSE(report.is_complete());
  const std::string out = testing::internal::GetCapturedStdout();
  EXPECT_NE(out.find(",2.000,2.000,2.000,,,,3.000,2.160,1.000,6.000,\n"), std::string::npos) << out;
  EXPECT_NE(out.find("\"it said \"\"no\"\", twice\"\n"), std::string::npos) << out;
  std::size_t lines = 0;
  for (std::size_t at = 0, end; at < out.size(); at = end + 1, ++lines) {
    end = out.find('\n', at);
    bool is_quoted = false;
    int commas = 0;
    for (std::size_t i = at; i < end; ++i) {
      if (out[i] == '"') is_quoted = !is_quoted;
      commas += out[i] == ',' && !is_quoted;
    }
    EXPECT_EQ(commas, 22) << out.substr(at, end - at);
  }
  EXPECT_EQ(lines, 4u);
}

TEST(PerfFigureTest, json__is_one_object_that_says_whether_everything_was_measured) {
  testing::internal::CaptureStdout();
  Report report(Format::kJson, {{"version", "x"}});
  Figure bad = figure("tcp", "write", {1});
  bad.why_not = "gone";
  report.add({figure("uet", "write", {1}), bad});
  report.add({figure("uet", "tagged-latency", {1}, {{1, 2, 6}})});
  report.finish();
  const auto json = nlohmann::json::parse(testing::internal::GetCapturedStdout());
  EXPECT_EQ(json["complete"], false);
  ASSERT_EQ(json["results"].size(), 3u);
  const auto& half_rtt = json["results"][2]["half_rtt_us"];
  EXPECT_EQ(half_rtt["sample_min"], 1);
  EXPECT_EQ(half_rtt["sample_max"], 6);
  EXPECT_TRUE(half_rtt["p90"].is_null());
  EXPECT_EQ(json["results"][1]["not_measured"], "gone");
  EXPECT_FALSE(json["results"][1].contains("gbit_per_s"));
}

TEST(PerfFigureTest, text__has_a_header_for_each_kind_and_a_ratio_to_the_first_provider) {
  testing::internal::CaptureStdout();
  Report report(Format::kText, {});
  report.add({figure("uet", "write", {2}), figure("tcp", "write", {1})});
  report.add({figure("uet", "send", {2})});
  report.add(
      {figure("uet", "tagged-latency", {1}, {{6}}), figure("tcp", "tagged-latency", {1}, {{2}})});
  const std::string out = testing::internal::GetCapturedStdout();
  EXPECT_EQ(out.find("Gbit/s"), out.rfind("Gbit/s")) << out;
  EXPECT_NE(out.find("half round trip"), std::string::npos);
  EXPECT_NE(out.find("2.00\n"), std::string::npos) << out;
  EXPECT_NE(out.find("3.00\n"), std::string::npos) << out;
}

}  // namespace
}  // namespace uet::perf
