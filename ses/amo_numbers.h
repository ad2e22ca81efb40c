/// The element types of atomics as C++ types, with the arithmetic that the language does not bring. [SES 16.3]
#pragma once

#include <bit>
#include <complex>
#include <concepts>
#include <cstdint>

namespace uet::ses {

__extension__ typedef __int128 Int128;
__extension__ typedef unsigned __int128 Uint128;

/// A 16-bit floating-point number of which only the bits are kept. Sums and products are computed in float, which has more than
/// twice as many digits, so that rounding twice gives what rounding once would.
template <unsigned kExponentBits>
struct Narrow {
  std::uint16_t bits = 0;

  Narrow() = default;
  explicit Narrow(float value);
  explicit operator float() const;
};
using Bfloat16 = Narrow<8>;
using Float16 = Narrow<5>;

template <unsigned kExponentBits>
Narrow<kExponentBits>::operator float() const {
  constexpr unsigned kDigits = 15 - kExponentBits;
  constexpr std::uint32_t kExponentMax = (1u << kExponentBits) - 1;
  constexpr std::uint32_t kRebias = 127 - kExponentMax / 2;
  const std::uint32_t sign = std::uint32_t{bits} >> 15 << 31;
  const std::uint32_t exponent = std::uint32_t{bits} >> kDigits & kExponentMax;
  const std::uint32_t digits = std::uint32_t{bits} & ((1u << kDigits) - 1);
  if (exponent == kExponentMax)
    return std::bit_cast<float>(sign | 0x7f80'0000u | digits << (23 - kDigits));
  if (exponent == 0 && kExponentBits < 8) {  // denormals of the short exponent are normal in float
    const float unit = std::bit_cast<float>((kRebias + 1 - kDigits) << 23);
    const float magnitude = static_cast<float>(digits) * unit;
    return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(magnitude));
  }
  return std::bit_cast<float>(sign | (exponent + kRebias) << 23 | digits << (23 - kDigits));
}

/// To the nearest, ties to even.
template <unsigned kExponentBits>
Narrow<kExponentBits>::Narrow(float value) {
  constexpr unsigned kDigits = 15 - kExponentBits;
  constexpr std::int32_t kExponentMax = (1 << kExponentBits) - 1;
  constexpr std::int32_t kRebias = 127 - kExponentMax / 2;
  const auto raw = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>(raw >> 31 << 15);
  const std::uint32_t magnitude = raw & 0x7fff'ffffu;
  if (magnitude > 0x7f80'0000u) {  // a quiet NaN
    bits = static_cast<std::uint16_t>(sign | kExponentMax << kDigits | 1 << (kDigits - 1));
    return;
  }
  std::int32_t exponent = static_cast<std::int32_t>(magnitude >> 23) - kRebias;
  std::uint64_t digits = std::uint64_t{magnitude & 0x7f'ffffu};
  unsigned drop = 23 - kDigits;
  if (exponent <= 0 && kRebias > 0) {  // denormal in the short form
    digits |= 0x80'0000u;
    const auto more = static_cast<unsigned>(1 - exponent);
    drop = more > 30 ? 54 : drop + more;
    exponent = 0;
  }
  const std::uint64_t half = std::uint64_t{1} << (drop - 1);
  std::uint64_t kept = static_cast<std::uint64_t>(exponent) << kDigits | digits >> drop;
  const std::uint64_t rest = digits & (2 * half - 1);
  if (rest > half || (rest == half && (kept & 1) != 0)) ++kept;
  const std::uint64_t infinity = static_cast<std::uint64_t>(kExponentMax) << kDigits;
  bits = static_cast<std::uint16_t>(sign | (kept < infinity ? kept : infinity));
}

template <typename T>
inline constexpr bool kIsNarrow = std::same_as<T, Bfloat16> || std::same_as<T, Float16>;
template <typename T>
inline constexpr bool kIsComplex =
    std::same_as<T, std::complex<float>> || std::same_as<T, std::complex<double>> ||
    std::same_as<T, std::complex<long double>>;
template <typename T>
inline constexpr bool kIsInteger =
    std::integral<T> || std::same_as<T, Int128> || std::same_as<T, Uint128>;

}  // namespace uet::ses
