/// Which runs a figure has.
#pragma once

#include <chrono>
#include <nlohmann/json.hpp>

#include "apps/perf/fabric_bench.h"

namespace uet::perf {

/// The warm-up, which has number 0 and does not count, and then the runs that do, from 1 on: so many as asked for, or at
/// least one and as many as begin within the seconds asked for.
class Rounds {
 public:
  Rounds(const FabricOptions& options, bool with_warm_up)
      : options_(options), next_(with_warm_up ? 0 : 1) {}

  /// Goes to the next run. False when there is none.
  bool advance() {
    number_ = next_++;
    if (number_ == 0) return true;
    if (!options_.seconds) return number_ <= options_.runs;
    if (number_ == 1) start_ = Clock::now();
    return number_ == 1 || Clock::now() - start_ < std::chrono::duration<double>(*options_.seconds);
  }
  unsigned number() const { return number_; }
  bool counts() const { return number_ > 0; }

 private:
  using Clock = std::chrono::steady_clock;

  const FabricOptions& options_;
  unsigned number_ = 0, next_;
  Clock::time_point start_;
};

/// The name of the option that decides how many runs there are, and its value.
inline nlohmann::ordered_json asked_for(const FabricOptions& options) {
  if (options.seconds) return {"seconds", *options.seconds};
  return {"runs", options.runs};
}

}  // namespace uet::perf
