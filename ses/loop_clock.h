/// Time as long as the program turns the loop, and the second at which what is idle is looked for.
#pragma once

#include <algorithm>

#include "lib/base/units.h"

namespace uet::ses {

/// Stands still while the program does not turn the loop, so that a process that computes loses no message. [SES 4.3 rule 9]
class LoopClock {
 public:
  /// A call of the loop. Until the next one no more than kLongestTurn passes. From now on there are ticks.
  void advance(base::Instant now) {
    if (has_turned_ && now > last_turn_) ns_ += std::min(now - last_turn_, kLongestTurn).ns();
    has_turned_ = true;
    last_turn_ = now;
    if (next_tick_.is_never()) next_tick_ = now + kTick;
  }
  std::int64_t ns() const { return ns_; }
  /// A time of this clock is `age` or more behind.
  bool is_past(std::int64_t since_ns, base::Duration age) const {
    return ns_ - since_ns >= age.ns();
  }

  base::Instant next_tick() const { return next_tick_; }
  /// What was to be done at a tick is done. `goes_on`: there is something that the next one must look at.
  void end_tick(base::Instant now, bool goes_on) {
    next_tick_ = goes_on ? now + kTick : base::Instant::never();
  }

 private:
  static constexpr base::Duration kTick = base::Duration::from_seconds(1);
  /// More than this between two turns means that the program did not turn the loop.
  static constexpr base::Duration kLongestTurn = base::Duration::from_seconds(2);

  base::Instant last_turn_;
  bool has_turned_ = false;
  std::int64_t ns_ = 0;
  base::Instant next_tick_ = base::Instant::never();
};

}  // namespace uet::ses
