/// Percentiles of samples.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

namespace uet::base {

/// The least of `sorted` that `permille` of a thousand do not exceed; `sorted` is not empty.
template <typename T>
T nearest_rank(const std::vector<T>& sorted, std::size_t permille) {
  const std::size_t rank = (sorted.size() * permille + 999) / 1000;
  return sorted[rank == 0 ? 0 : rank - 1];
}

/// The same, or nothing where so few samples have no such tail: below 100 for the 99th percentile.
template <typename T>
std::optional<T> tail_percentile(const std::vector<T>& sorted, std::size_t permille) {
  if (sorted.size() * (1000 - permille) < 1000) return std::nullopt;
  return nearest_rank(sorted, permille);
}

/// The mean of the two in the middle where their number is even; `sorted` is not empty.
template <typename T>
T median(const std::vector<T>& sorted) {
  const T below = sorted[(sorted.size() - 1) / 2], above = sorted[sorted.size() / 2];
  return below + (above - below) / 2;
}

}  // namespace uet::base
