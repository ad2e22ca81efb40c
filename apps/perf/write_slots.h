/// Which slots the writes of a run come from and go to.
#pragma once

#include <algorithm>
#include <cstdint>

namespace uet::perf {

/// Buffers of both sides have twice `window` slots. A write that the provider reports as finished may still be under way, and a
/// slot that is written again and again does not tell which write came. So the last `window` writes have slots of their own, on
/// both sides, that are written once: when each of these has its bytes, every write that the run ends with is there.
struct WriteSlots {
  std::uint64_t count = 0, window = 0;

  std::uint64_t last() const { return std::min(count, window); }
  /// How many slots the writes before the last ones use.
  std::uint64_t before() const { return std::min(count - last(), window); }
  bool is_last(std::uint64_t n) const { return n >= count - last(); }
  std::uint64_t source(std::uint64_t n) const { return n % window + (is_last(n) ? window : 0); }
  std::uint64_t target(std::uint64_t n) const { return n % window + (is_last(n) ? 0 : window); }
};

}  // namespace uet::perf
