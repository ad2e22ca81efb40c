/// What collective operations took, in the columns of nccl-tests.
#pragma once

#include <string>

#include "apps/perf/collectives.h"
#include "apps/perf/figure.h"

namespace uet::perf {

/// One operation of one provider at one size, over all runs.
struct CollectiveFigure {
  std::string provider;
  CollectiveShape shape;
  std::uint64_t calls = 0;
  Spread time_us;  ///< of a call, of the runs
  std::uint64_t wrong = 0;

  /// GB/s: bytes of the operation over its time, and what the busiest link carries.
  double algorithm_bandwidth() const {
    return static_cast<double>(shape.bytes()) / time_us.median / 1000;
  }
  double bus_bandwidth() const { return algorithm_bandwidth() * shape.bus_factor(); }
};

/// Prints figures as they come (JSON: one object at the end).
class CollectiveReport {
 public:
  CollectiveReport(Format format, nlohmann::ordered_json about)
      : format_(format), about_(std::move(about)) {}

  void add(const CollectiveFigure& figure);
  void finish();
  std::uint64_t wrong() const { return wrong_; }

 private:
  Format format_;
  nlohmann::ordered_json about_;
  nlohmann::ordered_json rows_ = nlohmann::ordered_json::array();
  bool has_header_ = false;
  std::uint64_t wrong_ = 0;
};

}  // namespace uet::perf
