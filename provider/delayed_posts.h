/// When the packets of what the application posts wait for its next call.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "lib/base/units.h"
#include "provider/debt.h"

namespace uet::provider {

/// An application that posts many small messages to a peer in a row polls when it is through with them. Over a socket each that
/// leaves alone costs a system call here and another one at its destination; together they cost one. But of what it posts before it
/// computes, the last ones would stay until the progress thread finds them.
///
/// So the packets of a post wait for the next one, or for a poll, where calls that came at once have saved more than those cost that
/// did not come. Only in a row: an application that polls after each post, or posts to one peer after the other, gains nothing. And
/// never more of them, or longer, than one burst takes. [decision 171]
class DelayedPosts {
 public:
  using Instant = base::Instant;
  using Duration = base::Duration;

  /// What becomes of the packets of a post.
  enum class Verdict : std::uint8_t {
    kLeave,       ///< now, with what waits
    kTryLeaving,  ///< the same, to see when the application comes back: tell on_sent()
    kWait,        ///< for the next call
  };

  struct Post {
    std::uint64_t peer = 0;
    std::size_t bytes = 0;     ///< sent, or asked for
    bool joins_others = true;  ///< its packets and those of others would leave in one run
  };
  /// Something was posted at `now`, after on_call().
  Verdict on_post(Instant now, const Post& post) {
    if (std::exchange(peer_, post.peer) != post.peer) row_ = last_row_ = 0;
    ++row_;
    const bool is_in_row = row_ >= kRow || last_row_ >= kRow;
    if (!is_in_row || !post.joins_others) return Verdict::kLeave;
    const bool may = owed_.is_paid();
    use(may);
    polls_ = 0;
    if (may && !is_room_for(now, post.bytes)) return Verdict::kLeave;
    away_since_ = now;
    does_wait_ = may;
    return may ? Verdict::kWait : Verdict::kTryLeaving;
  }
  /// What kTryLeaving was said of has left, and took until `now`: that was not the application's time.
  void on_sent(Instant now) {
    away_since_ = now;
    does_wait_ = false;
  }
  /// The application calls, whatever for.
  void on_call(Instant now) {
    if (away_since_.is_never()) return;
    const Duration away = now - away_since_;
    away_since_ = Instant::never();
    if (away > kPrompt)
      owed_.add(cost_of(std::min(away, kLongest)));
    else
      save();
  }
  /// It polls: what waits leaves, and the next post begins another row.
  void on_poll() {
    on_left();
    if (row_ != 0) last_row_ = std::exchange(row_, 0u);
    if (++polls_ == kRest) use(false);
  }
  /// What waited leaves.
  void on_left() {
    if (waiting_ == 0) return;
    waiting_ = 0;
    waiting_bytes_ = 0;
    wait_since_.store(Instant::never(), std::memory_order_relaxed);
  }

  // --- From any thread

  /// Posts wait at present, or may soon: the progress thread is to look for those whose application does not come.
  bool are_in_use() const { return in_use_.load(); }
  /// It has not come to those that wait.
  bool are_overdue(Instant now) const {
    const Instant since = wait_since_.load(std::memory_order_relaxed);
    return !since.is_never() && now - since > kOverdue;
  }

 private:
  void save() {
    owed_.pay(kSaved);
    if (does_wait_) saved_ += kSaved;
  }
  /// What would have been saved is not saved: where waiting ends in an absence before it has saved as much, the next one has to be
  /// earned twice as hard.
  Duration cost_of(Duration away) {
    if (!does_wait_) return away;
    const bool has_paid = std::exchange(saved_, Duration()) >= away;
    if (has_paid) dearness_ = 1;
    const Duration cost = away * dearness_;
    if (!has_paid) dearness_ = std::min(2 * dearness_, kDearest);
    return cost;
  }
  /// Waits, unless that is enough for a burst.
  bool is_room_for(Instant now, std::size_t bytes) {
    if (waiting_ == 0) wait_since_.store(now, std::memory_order_relaxed);
    ++waiting_;
    waiting_bytes_ += bytes;
    return waiting_ < kMostPosts && waiting_bytes_ < kMostBytes &&
           now - wait_since_.load(std::memory_order_relaxed) < kMostTime;
  }
  void use(bool are) {
    if (are != in_use_.load(std::memory_order_relaxed)) in_use_.store(are);
  }

  /// Posts to one peer without a poll between them.
  static constexpr std::uint32_t kRow = 2;
  /// About what leaves in one burst, and what one system call of a socket takes.
  static constexpr std::uint32_t kMostPosts = 32;
  static constexpr std::size_t kMostBytes = 65536;
  static constexpr Duration kMostTime = Duration::from_us(10);
  /// From the end of a post, with what it sent, to the next call.
  static constexpr Duration kPrompt = Duration::from_us(3);
  /// By a post that waited: less than a system call.
  static constexpr Duration kSaved = Duration::from_us(2);
  /// More than the application leaves between two calls of a row, and than posts wait where it does not.
  static constexpr Duration kOverdue = Duration::from_us(20);
  /// As long as one absence counts, since the progress thread ends it.
  static constexpr Duration kLongest = Duration::from_us(300);
  static constexpr Duration kMost = Duration::from_ms(10);
  static constexpr int kDearest = 32;
  /// Polls since a post could wait, after which the progress thread need not look so often.
  static constexpr std::uint32_t kRest = 4096;

  std::uint64_t peer_ = 0;      ///< of the latest post
  std::uint32_t row_ = 0;       ///< posts to it since the latest poll
  std::uint32_t last_row_ = 0;  ///< in the row before
  std::uint32_t polls_ = 0;     ///< since a post could wait
  std::uint32_t waiting_ = 0;
  std::size_t waiting_bytes_ = 0;
  std::atomic<Instant> wait_since_{Instant::never()};  ///< the first of those
  Instant away_since_ = Instant::never();
  bool does_wait_ = false;  ///< what was posted then
  Duration saved_;          ///< by posts that waited, since the latest absence from some
  int dearness_ = 1;        ///< of the next such absence
  // It has to show first that it is prompt.
  Debt owed_{kSaved * 64, kMost};
  std::atomic<bool> in_use_{false};
};

}  // namespace uet::provider
