/// One figure over several runs.
#pragma once

#include <algorithm>
#include <vector>

namespace uet::perf {

/// The value below which the share `q` of `sorted` lies; `sorted` is not empty.
inline double percentile(const std::vector<double>& sorted, double q) {
  return sorted[static_cast<std::size_t>(q * static_cast<double>(sorted.size() - 1))];
}

struct Spread {
  double min = 0, median = 0, max = 0;
};
/// Of at least one value. The median of an even number is the lower of the two in the middle.
inline Spread spread_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return {values.front(), percentile(values, 0.5), values.back()};
}

}  // namespace uet::perf
