/// Quantities as types: time, bytes, rates. All arithmetic is on integers, so every machine gives the same digits.
#pragma once

#include <compare>
#include <cstdint>
#include <limits>

namespace uet::base {

/// 128-bit intermediate results; `__extension__` keeps -Wpedantic quiet.
__extension__ using WideInt = __int128;

/// A span of time in nanoseconds; may be negative.
class Duration {
 public:
  constexpr Duration() = default;
  static constexpr Duration from_ns(std::int64_t ns) { return Duration(ns); }
  static constexpr Duration from_us(std::int64_t us) { return Duration(us * 1000); }
  static constexpr Duration from_ms(std::int64_t ms) { return Duration(ms * 1'000'000); }
  static constexpr Duration from_seconds(std::int64_t s) { return Duration(s * 1'000'000'000); }
  static constexpr Duration max() { return Duration(std::numeric_limits<std::int64_t>::max()); }

  constexpr std::int64_t ns() const { return ns_; }
  constexpr std::int64_t us() const { return ns_ / 1000; }
  constexpr std::int64_t ms() const { return ns_ / 1'000'000; }
  constexpr double seconds() const { return static_cast<double>(ns_) * 1e-9; }

  constexpr auto operator<=>(const Duration&) const = default;
  constexpr Duration operator-() const { return Duration(-ns_); }
  constexpr Duration operator+(Duration o) const { return Duration(ns_ + o.ns_); }
  constexpr Duration operator-(Duration o) const { return Duration(ns_ - o.ns_); }
  constexpr Duration operator*(std::int64_t n) const { return Duration(ns_ * n); }
  constexpr Duration operator/(std::int64_t n) const { return Duration(ns_ / n); }
  constexpr Duration& operator+=(Duration o) {
    ns_ += o.ns_;
    return *this;
  }
  constexpr Duration& operator-=(Duration o) {
    ns_ -= o.ns_;
    return *this;
  }

 private:
  explicit constexpr Duration(std::int64_t ns) : ns_(ns) {}
  std::int64_t ns_ = 0;
};

/// A point on one monotonic clock (real or virtual), nanoseconds since that clock's origin.
class Instant {
 public:
  constexpr Instant() = default;
  static constexpr Instant from_ns(std::int64_t ns) { return Instant(ns); }
  /// Later than every other instant: "no deadline".
  static constexpr Instant never() { return Instant(std::numeric_limits<std::int64_t>::max()); }

  constexpr std::int64_t ns() const { return ns_; }
  constexpr bool is_never() const { return *this == never(); }

  constexpr auto operator<=>(const Instant&) const = default;
  constexpr Instant operator+(Duration d) const { return Instant(ns_ + d.ns()); }
  constexpr Instant operator-(Duration d) const { return Instant(ns_ - d.ns()); }
  constexpr Duration operator-(Instant o) const { return Duration::from_ns(ns_ - o.ns_); }

 private:
  explicit constexpr Instant(std::int64_t ns) : ns_(ns) {}
  std::int64_t ns_ = 0;
};

/// A rate in bits per second.
class BitRate {
 public:
  constexpr BitRate() = default;
  static constexpr BitRate from_bps(std::uint64_t bps) { return BitRate(bps); }
  static constexpr BitRate from_gbps(std::uint64_t gbps) { return BitRate(gbps * 1'000'000'000); }

  constexpr std::uint64_t bps() const { return bps_; }
  constexpr double bytes_per_ns() const { return static_cast<double>(bps_) / 8e9; }
  /// Bytes that pass in `d`, rounded down.
  constexpr std::int64_t bytes_in(Duration d) const {
    if (std::int64_t bit_ns = 0; !__builtin_mul_overflow(bps_, d.ns(), &bit_ns))
      return bit_ns / 8'000'000'000;
    return static_cast<std::int64_t>(static_cast<WideInt>(bps_) * d.ns() / 8'000'000'000);
  }
  /// Time that `bytes` need, rounded up.
  constexpr Duration time_for(std::int64_t bytes) const {
    // Up to 2 GiB 64 bits do, where 128 are divided by a function of libgcc.
    if (std::uint64_t sum = 0; !__builtin_mul_overflow(bytes, 8'000'000'000, &sum) &&
                               !__builtin_add_overflow(sum, bps_ - 1, &sum))
      return Duration::from_ns(static_cast<std::int64_t>(sum / bps_));
    const auto bit_ns = static_cast<WideInt>(bytes) * 8'000'000'000;
    return Duration::from_ns(static_cast<std::int64_t>((bit_ns + static_cast<WideInt>(bps_) - 1) /
                                                       static_cast<WideInt>(bps_)));
  }
  constexpr auto operator<=>(const BitRate&) const = default;

 private:
  explicit constexpr BitRate(std::uint64_t bps) : bps_(bps) {}
  std::uint64_t bps_ = 0;
};

/// A number of bytes; signed, because inflight and credit may go below zero.
using ByteCount = std::int64_t;

}  // namespace uet::base
