/// The counter of packets sent under one key. [TSS 7.1, 7.5, 7.6]
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "tss/domain_config.h"
#include "tss/key_manager.h"

namespace uet::tss {

/// Gives every packet a value of its own, in rising order, out of ranges that were reserved before:
/// one in use and one behind it. Stops rather than pass the end of a reservation or the limit.
///
/// Reservations begin small, since a process that crashes loses what is left of its own, and double: each is a write to disk.
class TxCounter {
 public:
  static constexpr std::uint64_t kFirstReservation = 1ull << 20;
  static constexpr std::uint64_t kLargestReservation = 1ull << 28;

  TxCounter() = default;
  TxCounter(CounterPartition partition, std::uint64_t fatal);
  /// How many values a key has for the senders of one part.
  static std::uint64_t limit_of(CounterPartition partition, std::uint64_t fatal) {
    return std::min(fatal, kCounterMax >> partition.bits);
  }

  /// The next value, partition included; nothing when there is none.
  std::optional<std::uint64_t> take() {
    if (next_ >= current_.end && !advance()) return std::nullopt;
    return prefix_ | next_++;
  }
  /// How many to reserve next: twice as many as the last time, and a 4096th of all at most where there are few (a partition).
  std::uint64_t reservation() const { return reservation_; }
  /// True when less than half of the latest reservation is left, and more could be had.
  bool wants_more() const { return left() < low_ && last_given() < limit_; }
  /// False, and nothing changes, unless `range` lies behind every range given before: what state came
  /// back from a backup would give out again must not be used.
  [[nodiscard]] bool give(CounterRange range);

  /// What was given last and never taken, up to the end of the last range: may be given back when no more will be taken.
  CounterRange unused() const;

  /// Values that take() will give without another reservation.
  std::uint64_t left() const {
    return (current_.end - next_) + (following_.end - following_.first);
  }
  bool is_new() const { return last_given() == 0; }  ///< nothing was given so far
  bool is_low() const { return next_ >= limit_ - limit_ / 8; }
  bool is_spent() const { return next_ >= limit_; }

 private:
  bool advance();
  std::uint64_t last_given() const { return following_.end != 0 ? following_.end : current_.end; }

  std::uint64_t prefix_ = 0;  ///< the partition's id in its place
  std::uint64_t limit_ = 0;   ///< of the part that is counted
  std::uint64_t next_ = 0;
  std::uint64_t reservation_ = kFirstReservation;
  std::uint64_t low_ = kFirstReservation / 2;
  CounterRange current_, following_;
};

}  // namespace uet::tss
