/// Virtual time in picoseconds: fine enough that a 64-byte packet at 800 Gb/s is a whole number, so
/// that completion times meet their closed form to the last digit.
#pragma once

#include <compare>
#include <cstdint>
#include <limits>

#include "lib/base/units.h"

namespace uet::sim {

/// A span of virtual time.
class SimSpan {
 public:
  constexpr SimSpan() = default;
  static constexpr SimSpan from_ps(std::int64_t ps) { return SimSpan(ps); }
  static constexpr SimSpan from(base::Duration d) { return SimSpan(d.ns() * 1000); }
  /// Time that `bytes` need on a link of `rate`, rounded up to a picosecond.
  static constexpr SimSpan of_bytes(std::int64_t bytes, base::BitRate rate) {
    const auto bit_ps = static_cast<base::WideInt>(bytes) * 8'000'000'000'000;
    const auto bps = static_cast<base::WideInt>(rate.bps());
    return SimSpan(static_cast<std::int64_t>((bit_ps + bps - 1) / bps));
  }

  constexpr std::int64_t ps() const { return ps_; }
  constexpr double us() const { return static_cast<double>(ps_) * 1e-6; }
  /// Rounded down to a nanosecond.
  constexpr base::Duration duration() const { return base::Duration::from_ns(ps_ / 1000); }
  constexpr auto operator<=>(const SimSpan&) const = default;
  constexpr SimSpan operator+(SimSpan o) const { return SimSpan(ps_ + o.ps_); }
  constexpr SimSpan operator-(SimSpan o) const { return SimSpan(ps_ - o.ps_); }
  constexpr SimSpan operator*(std::int64_t n) const { return SimSpan(ps_ * n); }
  constexpr SimSpan operator/(std::int64_t n) const { return SimSpan(ps_ / n); }

 private:
  explicit constexpr SimSpan(std::int64_t ps) : ps_(ps) {}
  std::int64_t ps_ = 0;
};

/// A point of virtual time. Every run begins at 0.
class SimTime {
 public:
  constexpr SimTime() = default;
  static constexpr SimTime from_ps(std::int64_t ps) { return SimTime(ps); }
  /// The first picosecond of `at`; never() stays never().
  static constexpr SimTime from(base::Instant at) {
    constexpr std::int64_t kLast = std::numeric_limits<std::int64_t>::max() / 1000;
    return at.ns() >= kLast ? never() : SimTime(at.ns() * 1000);
  }
  static constexpr SimTime never() { return SimTime(std::numeric_limits<std::int64_t>::max()); }

  constexpr std::int64_t ps() const { return ps_; }
  constexpr double us() const { return static_cast<double>(ps_) * 1e-6; }
  constexpr bool is_never() const { return *this == never(); }
  /// What an endpoint's clock shows now: whole nanoseconds, rounded down.
  constexpr base::Instant instant() const { return base::Instant::from_ns(ps_ / 1000); }
  constexpr auto operator<=>(const SimTime&) const = default;
  constexpr SimTime operator+(SimSpan s) const { return SimTime(ps_ + s.ps()); }
  constexpr SimSpan operator-(SimTime o) const { return SimSpan::from_ps(ps_ - o.ps_); }

 private:
  explicit constexpr SimTime(std::int64_t ps) : ps_(ps) {}
  std::int64_t ps_ = 0;
};

}  // namespace uet::sim
