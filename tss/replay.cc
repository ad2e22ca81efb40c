#include "tss/replay.h"

#include <algorithm>

namespace uet::tss {

bool ReplayFilter::accept(std::uint64_t tsc, const Limits& limits, std::span<std::uint64_t> bits) {
  if (!has_any_) newest_ = tsc;
  // Serial: epochs wrap.
  const auto ahead = static_cast<std::int64_t>(tsc - newest_);
  if (ahead < 0 && static_cast<std::uint64_t>(-ahead) > limits.floor) return false;
  if (limits.window != 0 && !accept_in_window(tsc, bits)) return false;
  if (ahead > 0) newest_ = tsc;
  has_any_ = true;
  return true;
}

bool ReplayFilter::accept_in_window(std::uint64_t tsc, std::span<std::uint64_t> bits) {
  const std::uint64_t size = bits.size() * 64;
  const auto ahead = static_cast<std::int64_t>(tsc - newest_);
  if (ahead < 0 && static_cast<std::uint64_t>(-ahead) >= size) return false;
  if (ahead > 0) clear_between(newest_, tsc, bits);
  std::uint64_t& word = bits[tsc % size / 64];
  const std::uint64_t bit = 1ull << (tsc % 64);
  const bool is_new = (word & bit) == 0;
  word |= bit;
  return is_new;
}

/// The values (after, up_to] come into the window: whatever their places said of older ones is over.
void ReplayFilter::clear_between(std::uint64_t after, std::uint64_t up_to,
                                 std::span<std::uint64_t> bits) {
  const std::uint64_t size = bits.size() * 64;
  if (up_to - after >= size) return std::fill(bits.begin(), bits.end(), 0);
  for (std::uint64_t v = after + 1; v - 1 != up_to;) {
    if (v % 64 == 0 && up_to - v >= 63) {
      bits[v % size / 64] = 0;
      v += 64;
    } else {
      bits[v % size / 64] &= ~(1ull << (v % 64));
      ++v;
    }
  }
}

}  // namespace uet::tss
