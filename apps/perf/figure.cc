#include "apps/perf/figure.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>

namespace uet::perf {
namespace {

nlohmann::ordered_json to_json(const Spread& s) {
  return {{"min", s.min}, {"median", s.median}, {"max", s.max}};
}

std::string or_empty(const std::optional<double>& value, int places) {
  return value ? fmt::format("{:.{}f}", *value, places) : "";
}

nlohmann::ordered_json to_json(const Figure& f) {
  nlohmann::ordered_json row = {{"test", f.plan.test},     {"provider", f.provider},
                                {"size", f.plan.size},     {"messages", f.plan.count},
                                {"window", f.plan.window}, {"verified", f.plan.verify},
                                {"runs", f.runs}};
  if (!f.why_not.empty()) {
    row["not_measured"] = f.why_not;
  } else if (is_latency_test(f.plan.test)) {
    row["half_rtt_us"] = to_json(f.half_rtt_us);
    const Tail& tail = f.half_rtt_us_tail;
    row["half_rtt_us"]["p90"] = or_null(tail.p90);
    row["half_rtt_us"]["p99"] = or_null(tail.p99);
    row["half_rtt_us"]["p99.9"] = or_null(tail.p999);
    row["half_rtt_us"]["average"] = f.half_rtt_us_average;
    row["half_rtt_us"]["deviation"] = f.half_rtt_us_deviation;
    row["half_rtt_us"]["sample_min"] = tail.least;
    row["half_rtt_us"]["sample_max"] = tail.most;
  } else {
    row["gbit_per_s"] = to_json(f.gbit_per_s);
    row["messages_per_s"] = to_json(f.messages_per_s);
  }
  return row;
}

double average_of(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

/// The standard deviation.
double deviation_of(const std::vector<double>& values, double average) {
  double squares = 0;
  for (const double v : values) squares += (v - average) * (v - average);
  return std::sqrt(squares / static_cast<double>(values.size()));
}

std::string quoted(std::string text) {
  for (std::size_t at = 0; (at = text.find('"', at)) != std::string::npos; at += 2)
    text.insert(at, 1, '"');
  return '"' + text + '"';
}

void print_csv(const Figure& f) {
  fmt::print("{},{},{},{},{},{},", f.plan.test, quoted(f.provider), f.plan.size, f.plan.count,
             f.plan.window, f.runs);
  if (!f.why_not.empty())
    fmt::print(",,,,,,,,,,,,,,,,{}\n", quoted(f.why_not));
  else if (is_latency_test(f.plan.test))
    fmt::print(",,,,,,{:.3f},{:.3f},{:.3f},{},{},{},{:.3f},{:.3f},{:.3f},{:.3f},\n",
               f.half_rtt_us.min, f.half_rtt_us.median, f.half_rtt_us.max,
               or_empty(f.half_rtt_us_tail.p90, 3), or_empty(f.half_rtt_us_tail.p99, 3),
               or_empty(f.half_rtt_us_tail.p999, 3), f.half_rtt_us_average, f.half_rtt_us_deviation,
               f.half_rtt_us_tail.least, f.half_rtt_us_tail.most);
  else
    fmt::print("{:.6f},{:.6f},{:.6f},{:.1f},{:.1f},{:.1f},,,,,,,,,,,\n", f.gbit_per_s.min,
               f.gbit_per_s.median, f.gbit_per_s.max, f.messages_per_s.min, f.messages_per_s.median,
               f.messages_per_s.max);
}

constexpr const char* kCsvHeader =
    "test,provider,bytes,messages,window,runs,gbit_per_s_min,gbit_per_s_median,gbit_per_s_max,"
    "messages_per_s_min,messages_per_s_median,messages_per_s_max,half_rtt_us_min,half_rtt_us_"
    "median,"
    "half_rtt_us_max,half_rtt_us_p90,half_rtt_us_p99,half_rtt_us_p99.9,half_rtt_us_average,"
    "half_rtt_us_deviation,half_rtt_us_sample_min,half_rtt_us_sample_max,not_measured\n";

/// How many times as good as the first provider; empty where there is nothing to compare.
std::string ratio(const Figure& f, const Figure& first) {
  if (&f == &first || !first.why_not.empty()) return "";
  const double times = is_latency_test(f.plan.test)
                           ? first.half_rtt_us.median / f.half_rtt_us.median
                           : f.gbit_per_s.median / first.gbit_per_s.median;
  return fmt::format("{:.2f}", times);
}

}  // namespace

void summarize(Figure& figure, const std::vector<double>& seconds,
               const std::vector<std::vector<double>>& half_rtts) {
  std::vector<double> gbits, rates, medians, all;
  for (const double s : seconds) {
    rates.push_back(static_cast<double>(figure.plan.count) / s);
    gbits.push_back(rates.back() * static_cast<double>(figure.plan.size) * 8e-9);
  }
  figure.runs = static_cast<unsigned>(seconds.size());
  figure.gbit_per_s = spread_of(gbits);
  figure.messages_per_s = spread_of(rates);
  if (!is_latency_test(figure.plan.test)) return;
  for (const std::vector<double>& run : half_rtts) {
    medians.push_back(spread_of(run).median);
    all.insert(all.end(), run.begin(), run.end());
  }
  std::sort(all.begin(), all.end());
  figure.half_rtt_us = spread_of(medians);
  figure.half_rtt_us_average = average_of(all);
  figure.half_rtt_us_deviation = deviation_of(all, figure.half_rtt_us_average);
  figure.half_rtt_us_tail = tail_of(all);
}

void Report::add(const std::vector<Figure>& figures) {
  for (const Figure& f : figures) {
    if (!f.why_not.empty()) is_complete_ = false;
    if (format_ == Format::kJson) {
      rows_.push_back(to_json(f));
      continue;
    }
    print_header(f.plan);
    print_row(f, figures.front());
  }
  std::fflush(stdout);
}

void Report::print_header(const Plan& plan) {
  const std::string kind = format_ == Format::kCsv      ? "csv"
                           : is_latency_test(plan.test) ? "latency"
                                                        : "rate";
  if (kind == header_of_) return;
  header_of_ = kind;
  if (format_ == Format::kCsv)
    fmt::print("{}", kCsvHeader);
  else if (kind == "latency")
    fmt::print("{:<15} {:<16} {:>11} {:>8} {:>6}  {:>34} {:>9} {:>9} {:>9} {:>9} {:>6}\n", "test",
               "provider", "bytes", "messages", "window", "half round trip us, medians of runs",
               "least", "p99", "p99.9", "most", "ratio");
  else
    fmt::print("{:<15} {:<16} {:>11} {:>8} {:>6}  {:>30} {:>19} {:>6}\n", "test", "provider",
               "bytes", "messages", "window", "Gbit/s min/med/max", "messages/s", "ratio");
}

void Report::print_row(const Figure& f, const Figure& first) {
  if (format_ == Format::kCsv) return print_csv(f);
  fmt::print("{:<15} {:<16} {:>11} {:>8} {:>6}  ", f.plan.test, f.provider, f.plan.size,
             f.plan.count, f.plan.window);
  if (!f.why_not.empty())
    fmt::print("not measured: {}\n", f.why_not);
  else if (is_latency_test(f.plan.test))
    fmt::print("{:>15.2f}{:>10.2f}{:>10.2f} {:>9.2f} {:>9} {:>9} {:>9.2f} {:>6}\n",
               f.half_rtt_us.min, f.half_rtt_us.median, f.half_rtt_us.max, f.half_rtt_us_tail.least,
               or_empty(f.half_rtt_us_tail.p99, 2), or_empty(f.half_rtt_us_tail.p999, 2),
               f.half_rtt_us_tail.most, ratio(f, first));
  else
    fmt::print("{:>10.3f}{:>10.3f}{:>10.3f} {:>19.0f} {:>6}\n", f.gbit_per_s.min,
               f.gbit_per_s.median, f.gbit_per_s.max, f.messages_per_s.median, ratio(f, first));
}

void Report::finish() {
  if (format_ != Format::kJson) return;
  about_["complete"] = is_complete_;
  about_["results"] = rows_;
  fmt::print("{}\n", about_.dump());
}

}  // namespace uet::perf
