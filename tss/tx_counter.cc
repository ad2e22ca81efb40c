#include "tss/tx_counter.h"

#include <algorithm>

namespace uet::tss {

TxCounter::TxCounter(CounterPartition partition, std::uint64_t fatal)
    : prefix_(partition.bits == 0 ? 0
                                  : std::uint64_t{partition.id} << (kCounterBits - partition.bits)),
      limit_(limit_of(partition, fatal)) {}

bool TxCounter::give(CounterRange range) {
  if (range.first > range.end || range.first < last_given()) return false;
  low_ = reservation_ / 2;
  reservation_ =
      std::min(2 * reservation_, std::clamp(limit_ >> 12, kFirstReservation, kLargestReservation));
  range.end = std::min(range.end, limit_);
  range.first = std::min(range.first, range.end);
  if (range.first == range.end) {
    // Nothing is left below the limit: the last range stays the last.
    if (is_new()) current_ = {limit_, next_ = limit_};
    return true;
  }
  if (current_.end == 0) {
    current_ = range;
    next_ = range.first;
  } else if (following_.end == 0) {
    following_ = range;
  } else if (following_.end == range.first) {
    following_.end = range.end;
  }
  return true;
}

CounterRange TxCounter::unused() const {
  if (following_.end == 0) return {next_, current_.end};
  return {current_.end == following_.first ? next_ : following_.first, following_.end};
}

bool TxCounter::advance() {
  if (following_.first == following_.end) return false;
  current_ = following_;
  following_ = {};
  next_ = current_.first;
  return true;
}

}  // namespace uet::tss
