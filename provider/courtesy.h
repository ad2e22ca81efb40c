/// When a thread that polls lets others have its core.
#pragma once

#include <algorithm>

#include "lib/base/units.h"

namespace uet::provider {

/// Two processes that wait for each other by polling on one core would each spin until the kernel takes the core away, which
/// costs milliseconds a round trip. So a caller that has asked again and again for a while, and got nothing, yields. On a core
/// that no other thread wants this takes a fraction of a microsecond, once in a while.
class Courtesy {
 public:
  using Instant = base::Instant;
  using Duration = base::Duration;

  /// The caller asked at `now`, and the loop did something or not. True: yield, and then tell back().
  bool is_due(Instant now, bool did) {
    const bool asks_again = now - asked_at_ < kAway;
    asked_at_ = now;
    if (did || !asks_again) idle_since_ = now;
    return now - idle_since_ >= kSpin && now >= not_before_;
  }
  /// Back from a yield that began at `began`. Where others took the core for long, it is held as long before the next: a
  /// process that computes gets no more than half of it.
  void back(Instant began, Instant now) {
    asked_at_ = now;
    not_before_ = now + std::max(kSpin, now - began);
  }

 private:
  /// More than an answer takes whose sender has a core of its own.
  static constexpr Duration kSpin = Duration::from_us(20);
  /// A caller that was away for that long had other things to do: it does not spin.
  static constexpr Duration kAway = Duration::from_us(10);

  Instant asked_at_, idle_since_, not_before_;
};

}  // namespace uet::provider
