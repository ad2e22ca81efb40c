/// When the ACKs of what a poll brought wait for the next call of the application.
#pragma once

#include <algorithm>

#include "lib/base/units.h"

namespace uet::provider {

/// An application that answers what it receives comes back at once, and the ACKs can leave with its answer: sent before, they
/// would keep it from its completion for as long as a system call takes. An application that computes first would keep its
/// peers waiting for theirs. So ACKs wait while the time by which the application was late is less than what prompt calls
/// have made up for since.
class DelayedAcks {
 public:
  using Instant = base::Instant;
  using Duration = base::Duration;

  /// A poll that began at `now` brought a completion. True: its ACKs may wait.
  bool may_wait(Instant now) {
    since_ = now;
    return owed_ == Duration();
  }
  /// The application calls, so that what waited leaves.
  void on_call(Instant now) {
    if (since_.is_never()) return;
    const Duration away = now - since_;
    since_ = Instant::never();
    owed_ = away <= kPrompt ? std::max(owed_ - kSaved, Duration()) : std::min(owed_ + away, kMost);
  }

 private:
  /// Covers the poll itself, also one that sent ACKs.
  static constexpr Duration kPrompt = Duration::from_us(20);
  /// By ACKs that waited: about a system call.
  static constexpr Duration kSaved = Duration::from_us(2);
  /// A program that computes between messages and sometimes does not is not watched for longer than 10,000 of these.
  static constexpr Duration kMost = Duration::from_ms(20);

  Instant since_ = Instant::never();  ///< the latest such poll, when nothing was called since
  Duration owed_ = kSaved * 16;       ///< it has to show first that it is prompt
};

}  // namespace uet::provider
