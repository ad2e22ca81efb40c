/// Randomness. Protocol code takes a reference to one; the endpoint's creator chooses the seed, or the key.
#pragma once

#include <array>
#include <cstdint>

namespace uet::base {

/// From a seed: xoshiro256**, fast, and good enough for tests and simulated faults. Who sees some of its numbers can tell the others.
///
/// From a key: the ChaCha20 stream under it, for an endpoint that has peers. They see some of its numbers (PSNs, PDCIDs, entropy
/// values) and must not tell from them those that others are told, nor the key of a table. Not for keys that protect data.
class Rng {
 public:
  using Key = std::array<std::uint32_t, 8>;
  explicit Rng(const Key& key);

  explicit constexpr Rng(std::uint64_t seed) {
    // splitmix64 spreads the seed over the state, so that close seeds give unrelated streams.
    for (auto& word : state_) {
      seed += 0x9e3779b97f4a7c15ULL;
      std::uint64_t z = seed;
      z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
      z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
      word = z ^ (z >> 31);
    }
  }

  constexpr std::uint64_t next_u64() {
    if (is_keyed_) return next_keyed();
    const std::uint64_t result = rotl(state_[1] * 5, 7) * 9;
    const std::uint64_t t = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= t;
    state_[3] = rotl(state_[3], 45);
    return result;
  }
  constexpr std::uint32_t next_u32() { return static_cast<std::uint32_t>(next_u64() >> 32); }

  /// Uniform in [0, bound); bound must not be 0.
  constexpr std::uint32_t below(std::uint32_t bound) {
    return static_cast<std::uint32_t>((static_cast<std::uint64_t>(next_u32()) * bound) >> 32);
  }
  /// Uniform in [0, 1).
  constexpr double unit() { return static_cast<double>(next_u64() >> 11) * 0x1.0p-53; }
  /// True with probability p.
  constexpr bool chance(double p) { return p > 0 && unit() < p; }

 private:
  std::uint64_t next_keyed();
  static constexpr std::uint64_t rotl(std::uint64_t x, int k) { return (x << k) | (x >> (64 - k)); }
  std::array<std::uint64_t, 4> state_{};  ///< or the key
  bool is_keyed_ = false;
  std::uint8_t used_ = 0;  ///< of `stream_`
  std::uint64_t next_block_ = 0;
  std::array<std::uint64_t, 8> stream_{};
};

}  // namespace uet::base
