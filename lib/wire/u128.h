/// A 128-bit field as two words: congestion state of CCX packets, operands of compare-and-swap.
#pragma once

#include <cstdint>

namespace uet::wire {

struct U128 {
  std::uint64_t hi = 0;
  std::uint64_t lo = 0;
  constexpr bool operator==(const U128&) const = default;
};

}  // namespace uet::wire
