/// When the ACKs of what a poll brought wait for the next call of the application.
#pragma once

#include <algorithm>
#include <atomic>

#include "lib/base/units.h"

namespace uet::provider {

/// An application that answers what it receives comes back at once, and the ACKs can leave with its answer: sent before, they
/// would keep it from its completion for as long as a system call takes. An application that computes first would keep its
/// peers waiting for theirs. So ACKs wait while prompt calls have made up for the time by which others were late.
class DelayedAcks {
 public:
  using Instant = base::Instant;
  using Duration = base::Duration;

  /// A poll that began at `now` brought a completion. True: its ACKs may wait.
  bool may_wait(Instant now) {
    since_ = now;
    const bool may = owed_ == Duration();
    if (may != in_use_.load(std::memory_order_relaxed))
      in_use_.store(may, std::memory_order_relaxed);
    return may;
  }
  /// The application calls, so that what waited leaves.
  void on_call(Instant now) {
    if (since_.is_never()) return;
    const Duration away = now - since_;
    since_ = Instant::never();
    owed_ = away <= kPrompt ? std::max(owed_ - kSaved, Duration())
                            : std::min(owed_ + std::min(away, kLongest), kMost);
  }
  /// ACKs wait at present, or may again soon: the progress thread is to look for those whose application does not come. From any thread.
  bool are_in_use() const { return in_use_.load(std::memory_order_relaxed); }

 private:
  /// Covers the poll itself, also one that sent ACKs.
  static constexpr Duration kPrompt = Duration::from_us(20);
  /// By ACKs that waited: about a system call.
  static constexpr Duration kSaved = Duration::from_us(2);
  /// As long as one absence counts, since the progress thread sends them then.
  static constexpr Duration kLongest = Duration::from_us(128);
  static constexpr Duration kMost = Duration::from_ms(1);

  Instant since_ = Instant::never();  ///< the latest such poll, when nothing was called since
  Duration owed_ = kSaved * 16;       ///< it has to show first that it is prompt
  std::atomic<bool> in_use_{false};
};

}  // namespace uet::provider
