/// Serial numbers: counters that wrap, where only differences mean something.
#pragma once

#include <cstdint>
#include <type_traits>

namespace uet::base {

/// A 32-bit packet sequence number. [UET 3.5] Comparisons are serial: `a` is before `b` when the
/// signed difference `a - b` is negative, so there is deliberately no operator<.
class Psn {
 public:
  constexpr Psn() = default;
  explicit constexpr Psn(std::uint32_t value) : value_(value) {}

  constexpr std::uint32_t value() const { return value_; }
  /// Steps from `other` forward to this one; negative when this one is before it.
  constexpr std::int32_t distance_from(Psn other) const {
    return static_cast<std::int32_t>(value_ - other.value_);
  }
  constexpr bool is_before(Psn other) const { return distance_from(other) < 0; }
  constexpr bool is_after(Psn other) const { return distance_from(other) > 0; }
  constexpr bool is_at_or_before(Psn other) const { return distance_from(other) <= 0; }
  constexpr bool is_at_or_after(Psn other) const { return distance_from(other) >= 0; }

  constexpr Psn operator+(std::int32_t n) const {
    return Psn(value_ + static_cast<std::uint32_t>(n));
  }
  constexpr Psn operator-(std::int32_t n) const {
    return Psn(value_ - static_cast<std::uint32_t>(n));
  }
  constexpr Psn& operator++() {
    ++value_;
    return *this;
  }
  constexpr bool operator==(const Psn&) const = default;

 private:
  std::uint32_t value_ = 0;
};

/// The later of two PSNs.
constexpr Psn serial_max(Psn a, Psn b) {
  return b.is_after(a) ? b : a;
}

static_assert(Psn(2).distance_from(Psn(0xffff'ffff)) == 3);

/// True when `a` follows `b` in serial arithmetic of `Bits` bits: 0 < (a - b) mod 2^Bits < 2^(Bits-1).
template <unsigned Bits>
constexpr bool is_ahead(std::uint32_t a, std::uint32_t b) {
  static_assert(Bits > 1 && Bits <= 32);
  constexpr std::uint32_t kMask = Bits == 32 ? ~0u : (1u << Bits) - 1;
  const std::uint32_t diff = (a - b) & kMask;
  return diff != 0 && diff < (1u << (Bits - 1));
}

}  // namespace uet::base
