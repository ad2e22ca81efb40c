/// One figure over several runs.
#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include "lib/base/percentile.h"

namespace uet::perf {

struct Spread {
  double min = 0, median = 0, max = 0;
};
/// Of at least one value.
inline Spread spread_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return {values.front(), base::median(values), values.back()};
}

/// Of all samples of a latency. What too few samples do not tell is empty.
struct Tail {
  double least = 0, most = 0;
  std::optional<double> p90, p99, p999;
};
/// Of at least one sample.
inline Tail tail_of(const std::vector<double>& sorted) {
  return {sorted.front(), sorted.back(), base::tail_percentile(sorted, 900),
          base::tail_percentile(sorted, 990), base::tail_percentile(sorted, 999)};
}

}  // namespace uet::perf
