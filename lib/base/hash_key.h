/// Hashes. What came from the wire is hashed under a key that peers do not know: whatever keys they choose, places are as if drawn by
/// chance.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "lib/base/rng.h"

namespace uet::base {

/// Pair-multiply-shift over words of 32 bits (Dietzfelbinger, Thorup): for any two different inputs the results are independent, so in a
/// table of m buckets n keys that were chosen without the key put n / m others into the bucket of each, in the mean. All 32 bits
/// of a result are good. This hides nothing: the key must not be shown in results or in the order of a list.
class HashKey {
 public:
  /// From what `rng` would say next, and leaves it where it is. As secret as its state is; of the single numbers that an endpoint
  /// shows none is part of the key.
  explicit constexpr HashKey(Rng rng) {
    const std::uint64_t one = rng.next_u64(), other = rng.next_u64() | 1;
    Rng own((one ^ (one >> 29)) * other);
    for (auto& word : key_) word = own.next_u64();
  }

  constexpr std::size_t operator()(std::uint64_t a) const {
    return static_cast<std::size_t>((key_[6] + pair<0>(a)) >> 32);
  }
  constexpr std::size_t operator()(std::uint64_t a, std::uint64_t b, std::uint64_t c) const {
    return static_cast<std::size_t>((key_[6] + pair<0>(a) + pair<2>(b) + pair<4>(c)) >> 32);
  }

 private:
  template <std::size_t kAt>
  constexpr std::uint64_t pair(std::uint64_t x) const {
    return (key_[kAt] + (x & 0xffff'ffff)) * (key_[kAt + 1] + (x >> 32));
  }

  std::array<std::uint64_t, 7> key_{};
};

/// Spreads the bits of a key that this endpoint chose. What peers choose is hashed under a HashKey.
constexpr std::size_t mix(std::uint64_t x) {
  x ^= x >> 32;
  x *= 0x9e37'79b9'7f4a'7c15ULL;
  x ^= x >> 29;
  return static_cast<std::size_t>(x);
}

}  // namespace uet::base
