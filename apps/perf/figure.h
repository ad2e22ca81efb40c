/// What was measured, with its spread, and how it is printed.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "apps/perf/plan.h"
#include "apps/perf/spread.h"

namespace uet::perf {

/// One test of one provider at one size, over all runs.
struct Figure {
  std::string provider;
  Plan plan;
  unsigned runs = 0;
  Spread gbit_per_s, messages_per_s;
  Spread half_rtt_us;     ///< of the runs' medians; latency tests only
  Tail half_rtt_us_tail;  ///< of all runs
  double half_rtt_us_average = 0, half_rtt_us_deviation = 0;  ///< of all runs
  std::string why_not;                                        ///< not empty: nothing was measured
};
/// `seconds` of each run, and for a latency test the half round trips of each.
void summarize(Figure& figure, const std::vector<double>& seconds,
               const std::vector<std::vector<double>>& half_rtts);

/// A percentile that too few samples do not have is null.
inline nlohmann::ordered_json or_null(const std::optional<double>& value) {
  return value ? nlohmann::ordered_json(*value) : nullptr;
}

enum class Format { kText, kCsv, kJson };

/// Prints figures as they come (JSON: one object at the end). The first provider is what the others are compared with.
class Report {
 public:
  Report(Format format, nlohmann::ordered_json about) : format_(format), about_(std::move(about)) {}

  /// The same test and size of every provider.
  void add(const std::vector<Figure>& figures);
  void finish();
  bool is_complete() const { return is_complete_; }

 private:
  void print_header(const Plan& plan);
  void print_row(const Figure& figure, const Figure& first);

  Format format_;
  nlohmann::ordered_json about_;
  nlohmann::ordered_json rows_ = nlohmann::ordered_json::array();
  std::string header_of_;  ///< kind of test whose header was printed last
  bool is_complete_ = true;
};

}  // namespace uet::perf
