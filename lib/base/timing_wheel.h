/// A hierarchical timing wheel: O(1) start, stop and restart of very many timers, in virtual or
/// real time.
#pragma once

#include <array>
#include <cstdint>

#include "lib/base/units.h"

namespace uet::base {

/// One timer. Part of its owner, who must stop it (or destroy the wheel) before going away.
class TimerNode {
 public:
  TimerNode() = default;
  TimerNode(const TimerNode&) = delete;
  TimerNode& operator=(const TimerNode&) = delete;

  bool is_armed() const { return next_ != nullptr; }
  /// When it fires; meaningful while armed.
  Instant when() const { return when_; }

 private:
  friend class TimingWheel;
  TimerNode* next_ = nullptr;
  TimerNode* prev_ = nullptr;
  Instant when_;
  std::uint16_t slot_ = 0;
};

/// Levels of 64 slots, as many as an Instant can need; a slot of the lowest level is 16.4 us wide,
/// and a timer fires at its own instant, not at the end of its slot.
///
///     wheel.schedule(node, when);
///     wheel.advance(now);
///     while (TimerNode* due = wheel.pop_due()) ...   // earliest slot first
///
/// A due timer that has not been popped yet may be stopped or restarted like any other.
class TimingWheel {
 public:
  TimingWheel();
  TimingWheel(const TimingWheel&) = delete;
  TimingWheel& operator=(const TimingWheel&) = delete;

  /// Starts or restarts `node`. A `when` in the past fires at the next advance().
  void schedule(TimerNode& node, Instant when);
  void cancel(TimerNode& node);

  /// Makes everything with when() <= now due. Time never goes back: an earlier `now` is ignored.
  void advance(Instant now);
  /// The next due timer, now disarmed, or null.
  TimerNode* pop_due();

  /// Never later than the earliest armed timer. Earlier at most by one slot of the level that timer
  /// sits in, or after a cancel; advance() at that time makes it exact again, so a loop that sleeps
  /// until then makes progress.
  Instant next_deadline() const { return next_; }

 private:
  static constexpr unsigned kTickBits = 14;
  static constexpr unsigned kSlotBits = 6;
  static constexpr unsigned kSlots = 1u << kSlotBits;
  static constexpr unsigned kLevels = 9;  // 9 * 6 + 14 bits > 63
  static constexpr std::uint16_t kDueSlot = kLevels * kSlots;

  static std::uint64_t tick_of(Instant t) {
    return t.ns() <= 0 ? 0 : static_cast<std::uint64_t>(t.ns()) >> kTickBits;
  }
  void link(TimerNode& node, std::uint16_t slot);
  void unlink(TimerNode& node);
  void place(TimerNode& node);
  /// The first occupied slot at or after the present tick, and the tick at which it begins.
  bool first_occupied(std::uint16_t& slot, std::uint64_t& begin) const;
  void take_due(std::uint16_t slot, Instant now);
  void cascade(std::uint16_t slot);
  void refresh_next();

  std::array<TimerNode, kDueSlot + 1> heads_;  // circular lists; the last one holds due timers
  std::array<std::uint64_t, kLevels> occupied_{};
  std::uint64_t tick_ = 0;
  Instant next_ = Instant::never();
};

}  // namespace uet::base
