/// When a thread that polls lets others have its core.
#pragma once

#include <algorithm>

#include "lib/base/units.h"

namespace uet::provider {

/// Processes that wait for each other by polling on one core would each spin until the kernel takes the core away, which costs
/// milliseconds a round trip. So a caller that has asked again and again for a while, and got nothing, yields. On a core that no other
/// thread wants this takes a fraction of a microsecond, once in a while; where others want it and yield as well, it is over soon, and
/// worth less of a wait.
///
/// A process that computes keeps the core for a time slice, and each pause of the network would cost one. After such an absence
/// the core is kept for as long: the other gets about half. If no packet ends a pause meanwhile the next absences change nothing,
/// since a process that this one waits for may want the core. Several that kept it after any absence, each away for the time of all
/// others, would keep it for ever longer.
class Courtesy {
 public:
  using Instant = base::Instant;
  using Duration = base::Duration;

  /// The caller asked at `now`, and the loop did something or not. True: yield, and then tell back().
  bool is_due(Instant now, bool did) {
    const bool asks_again = now - asked_at_ < kAway;
    asked_at_ = now;
    const bool ends_pause = did && asks_again && now - idle_since_ >= kSpin;
    if (ends_pause && now < keeps_until_) keeping_paid_ = true;
    if (did || !asks_again) idle_since_ = now;
    return now - idle_since_ >= spin_ && now >= keeps_until_;
  }
  /// Back from a yield that began at `began`.
  void back(Instant began, Instant now) {
    const Duration absence = now - began;
    asked_at_ = idle_since_ = now;
    spin_ = absence >= kShared && absence < kSlice ? kShortSpin : kSpin;
    if (keeps_until_ != Instant() && !keeping_paid_) left_out_ = kLeftOut;
    keeps_until_ = Instant();
    keeping_paid_ = false;
    if (absence < kSlice) return;
    if (left_out_ == 0)
      keeps_until_ = now + std::min(absence, kLongestKept);
    else
      --left_out_;
  }

 private:
  /// More than an answer takes whose sender has a core of its own.
  static constexpr Duration kSpin = Duration::from_us(20);
  /// The same where others are known to want the core: a few polls.
  static constexpr Duration kShortSpin = Duration::from_us(4);
  /// A caller that was away for that long had other things to do: it does not spin.
  static constexpr Duration kAway = Duration::from_us(10);
  /// Absences: shorter where no other thread wanted the core, as long where one did not yield it.
  static constexpr Duration kShared = Duration::from_us(2), kSlice = Duration::from_ms(1);
  static constexpr Duration kLongestKept = Duration::from_ms(10);
  /// Absences after which the core is not kept, once it was in vain.
  static constexpr int kLeftOut = 7;

  Instant asked_at_, idle_since_, keeps_until_;
  Duration spin_ = kSpin;
  bool keeping_paid_ = false;
  int left_out_ = 0;
};

}  // namespace uet::provider
