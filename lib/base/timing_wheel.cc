#include "lib/base/timing_wheel.h"

#include <algorithm>
#include <bit>

namespace uet::base {

TimingWheel::TimingWheel() {
  for (TimerNode& head : heads_) head.next_ = head.prev_ = &head;
}

void TimingWheel::schedule(TimerNode& node, Instant when) {
  if (node.is_armed()) unlink(node);
  node.when_ = when;
  if (when.is_never()) return;
  place(node);
  next_ = std::min(next_, when);
}

void TimingWheel::cancel(TimerNode& node) {
  if (node.is_armed()) unlink(node);
}

void TimingWheel::advance(Instant now) {
  if (next_ > now) return;
  const std::uint64_t target = std::max(tick_of(now), tick_);
  std::uint16_t slot = 0;
  std::uint64_t begin = 0;
  while (first_occupied(slot, begin) && begin <= target) {
    tick_ = begin;
    if (slot >= kSlots) {
      cascade(slot);
      continue;
    }
    take_due(slot, now);
    if (begin == target) break;  // what is left in this slot is later than now
  }
  tick_ = target;
  refresh_next();
}

TimerNode* TimingWheel::pop_due() {
  TimerNode& head = heads_[kDueSlot];
  if (head.next_ == &head) return nullptr;
  TimerNode* node = head.next_;
  unlink(*node);
  if (head.next_ == &head) refresh_next();
  return node;
}

void TimingWheel::link(TimerNode& node, std::uint16_t slot) {
  TimerNode& head = heads_[slot];
  node.slot_ = slot;
  node.prev_ = head.prev_;
  node.next_ = &head;
  head.prev_->next_ = &node;
  head.prev_ = &node;
  if (slot != kDueSlot) occupied_[slot / kSlots] |= std::uint64_t{1} << (slot % kSlots);
}

void TimingWheel::unlink(TimerNode& node) {
  node.prev_->next_ = node.next_;
  node.next_->prev_ = node.prev_;
  node.next_ = node.prev_ = nullptr;
  const TimerNode& head = heads_[node.slot_];
  if (node.slot_ != kDueSlot && head.next_ == &head)
    occupied_[node.slot_ / kSlots] &= ~(std::uint64_t{1} << (node.slot_ % kSlots));
}

// The level is given by the highest group of tick bits in which the deadline differs from the
// present, so a slot of level L always lies ahead within the present turn of that level.
void TimingWheel::place(TimerNode& node) {
  const std::uint64_t tick = std::max(tick_of(node.when_), tick_);
  const std::uint64_t difference = tick ^ tick_;
  const unsigned level =
      difference == 0 ? 0 : (static_cast<unsigned>(std::bit_width(difference)) - 1) / kSlotBits;
  const unsigned index = static_cast<unsigned>(tick >> (level * kSlotBits)) % kSlots;
  link(node, static_cast<std::uint16_t>(level * kSlots + index));
}

bool TimingWheel::first_occupied(std::uint16_t& slot, std::uint64_t& begin) const {
  for (unsigned level = 0; level < kLevels; ++level) {
    const unsigned here = static_cast<unsigned>(tick_ >> (level * kSlotBits)) % kSlots;
    const std::uint64_t ahead = occupied_[level] & (~std::uint64_t{0} << here);
    if (ahead == 0) continue;
    const unsigned index = static_cast<unsigned>(std::countr_zero(ahead));
    slot = static_cast<std::uint16_t>(level * kSlots + index);
    const std::uint64_t turn = tick_ >> ((level + 1) * kSlotBits);
    begin = std::max(((turn << kSlotBits) | index) << (level * kSlotBits), tick_);
    return true;
  }
  return false;
}

void TimingWheel::take_due(std::uint16_t slot, Instant now) {
  TimerNode& head = heads_[slot];
  for (TimerNode* node = head.next_; node != &head;) {
    TimerNode* const following = node->next_;
    if (node->when_ <= now) {
      unlink(*node);
      link(*node, kDueSlot);
    }
    node = following;
  }
}

void TimingWheel::cascade(std::uint16_t slot) {
  TimerNode& head = heads_[slot];
  TimerNode* node = head.next_;
  head.prev_->next_ = nullptr;
  head.next_ = head.prev_ = &head;
  occupied_[slot / kSlots] &= ~(std::uint64_t{1} << (slot % kSlots));
  while (node != nullptr) {
    TimerNode* const following = node->next_;
    node->next_ = node->prev_ = nullptr;
    place(*node);
    node = following;
  }
}

void TimingWheel::refresh_next() {
  next_ = Instant::never();
  const TimerNode& due = heads_[kDueSlot];
  if (due.next_ != &due) {
    next_ = due.next_->when_;
    return;
  }
  std::uint16_t slot = 0;
  std::uint64_t begin = 0;
  if (!first_occupied(slot, begin)) return;
  if (slot >= kSlots) {
    next_ = Instant::from_ns(static_cast<std::int64_t>(begin << kTickBits));
    return;
  }
  const TimerNode& head = heads_[slot];
  for (const TimerNode* node = head.next_; node != &head; node = node->next_)
    next_ = std::min(next_, node->when_);
}

}  // namespace uet::base
