/// When the ACKs of what a poll brought wait for the application.
#pragma once

#include <algorithm>
#include <atomic>

#include "lib/base/units.h"
#include "provider/debt.h"

namespace uet::provider {

/// An application that answers what it receives posts its answer at once, and the ACKs can leave with it: sent before, they
/// would keep it from its completion for as long as a system call takes. An application that computes first would keep its
/// peers waiting for theirs, and one that only receives has nothing that they could leave with.
///
/// So ACKs wait for the next call where calls have made up for the time by which others were late. They wait through calls that
/// bring nothing, for as long as an answer takes, where answers have made up for those that did not come: MPI libraries ask until
/// a queue is empty before they go on.
class DelayedAcks {
 public:
  using Instant = base::Instant;
  using Duration = base::Duration;

  /// A poll that began at `now` brought a completion, and no ACKs wait. True: those of this poll may.
  bool may_wait(Instant now) {
    called_since_ = now;
    if (!answered_since_.is_never()) answer_owed_.add(kUnanswered);
    answered_since_ = now;
    const bool may = owed_.is_paid();
    if (may != in_use_.load(std::memory_order_relaxed)) in_use_.store(may);
    return may;
  }
  /// ACKs wait, and a poll brought nothing. True: they may go on.
  bool may_go_on(Instant now) {
    if (!answer_owed_.is_paid() || answered_since_.is_never()) return false;
    if (now - answered_since_ <= kAnswer) return true;
    answer_owed_.add(kUnanswered);
    answered_since_ = Instant::never();
    return false;
  }
  /// The application may still answer what a poll brought.
  bool awaits_answer() const { return !answered_since_.is_never(); }
  /// The poll that brought it, or the ACK that waited for the answer, has sent until `now`: that was not the application's time.
  void on_sent(Instant now) { answered_since_ = now; }
  /// The application calls.
  void on_call(Instant now) {
    if (called_since_.is_never()) return;
    const Duration away = now - called_since_;
    called_since_ = Instant::never();
    if (away <= kPrompt)
      owed_.pay(kSaved);
    else
      owed_.add(std::min(away, kLongest));
  }
  /// It has posted something, and what waited leaves.
  void on_answer(Instant now) {
    if (answered_since_.is_never()) return;
    if (now - answered_since_ <= kAnswer)
      answer_owed_.pay(kSaved);
    else
      answer_owed_.add(kUnanswered);
    answered_since_ = Instant::never();
  }
  /// ACKs wait at present, or may again soon: the progress thread is to look for those whose application does not come. From any thread.
  bool are_in_use() const { return in_use_.load(); }

 private:
  /// Covers the poll itself, also one that sent ACKs.
  static constexpr Duration kPrompt = Duration::from_us(20);
  /// From the poll that brought the message, or from the end of what it sent.
  static constexpr Duration kAnswer = Duration::from_us(10);
  /// By ACKs that waited: about a system call.
  static constexpr Duration kSaved = Duration::from_us(2);
  /// As long as one absence counts, since the progress thread sends them then.
  static constexpr Duration kLongest = Duration::from_us(128);
  /// For so long an ACK has waited that no answer came for.
  static constexpr Duration kUnanswered = kAnswer;
  static constexpr Duration kMost = Duration::from_ms(1);

  // The latest such poll, when nothing was called, or posted, since.
  Instant called_since_ = Instant::never();
  Instant answered_since_ = Instant::never();
  // It has to show first that it is prompt.
  Debt owed_{kSaved * 16, kMost};
  Debt answer_owed_{kSaved * 16, kMost};
  std::atomic<bool> in_use_{false};
};

}  // namespace uet::provider
