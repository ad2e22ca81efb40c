/// The counter of packets sent under one key. [TSS 7.1, 7.5, 7.6]
#pragma once

#include <cstdint>
#include <optional>

#include "tss/domain_config.h"
#include "tss/key_manager.h"

namespace uet::tss {

/// Gives every packet a value of its own, in rising order, out of ranges that were reserved before:
/// one in use and one behind it. Stops rather than pass the end of a reservation or the limit.
class TxCounter {
 public:
  static constexpr std::uint64_t kReservation = 1ull << 28;

  TxCounter() = default;
  TxCounter(CounterPartition partition, std::uint64_t fatal);

  /// The next value, partition included; nothing when there is none.
  std::optional<std::uint64_t> take() {
    if (next_ >= current_.end && !advance()) return std::nullopt;
    return prefix_ | next_++;
  }
  /// True when less than half a reservation is left, and more could be had.
  bool wants_more() const { return left() < kReservation / 2 && last_given() < limit_; }
  /// False, and nothing changes, unless `range` lies behind every range given before: what state came
  /// back from a backup would give out again must not be used.
  [[nodiscard]] bool give(CounterRange range);

  /// Values that take() will give without another reservation.
  std::uint64_t left() const {
    return (current_.end - next_) + (following_.end - following_.first);
  }
  bool is_low() const { return next_ >= limit_ - limit_ / 8; }
  bool is_spent() const { return next_ >= limit_; }

 private:
  bool advance();
  std::uint64_t last_given() const { return following_.end != 0 ? following_.end : current_.end; }

  std::uint64_t prefix_ = 0;  ///< the partition's id in its place
  std::uint64_t limit_ = 0;   ///< of the part that is counted
  std::uint64_t next_ = 0;
  CounterRange current_, following_;
};

}  // namespace uet::tss
