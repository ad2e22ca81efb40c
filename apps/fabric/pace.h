/// Real time: what the clock says, how long to sleep between turns, and how far behind we are. The
/// only part of uet-fabric that reads a clock.
#pragma once

#include <array>
#include <cstdint>

#include "apps/fabric/report.h"
#include "sim/sim_time.h"

namespace uet::fabric {

/// How late things were, in powers of two of a microsecond.
class LagHistogram {
 public:
  void add(sim::SimSpan lag);
  /// Upper bound of the bucket that holds this share of all samples.
  double percentile_us(double share) const;
  double max_us() const { return max_.us(); }
  std::uint64_t samples() const { return samples_; }

 private:
  std::array<std::uint64_t, 32> buckets_{};
  std::uint64_t samples_ = 0;
  sim::SimSpan max_{};
};

class Pace {
 public:
  /// Virtual time begins now.
  Pace();

  sim::SimTime now() const;
  std::int64_t unix_ns_at_zero() const { return unix_ns_at_zero_; }

  /// Before a turn: `due` is what should have happened first.
  void begin_turn(sim::SimTime now, sim::SimTime due);
  /// After a turn. Rests until the next one: briefly while frames move, longer when nothing has for
  /// a while. `is_pressing`: a device had more than we took.
  void end_turn(std::size_t frames, bool is_pressing);

  /// Lag, gaps between turns, share of time spent working.
  Json report() const;

 private:
  // What happens between two turns happens late by up to this; a turn costs some microseconds.
  static constexpr base::Duration kTick = base::Duration::from_us(40);
  static constexpr base::Duration kIdleTick = base::Duration::from_us(500);
  static constexpr base::Duration kIdleAfter = base::Duration::from_ms(200);
  /// Later than this and the emulation is no longer honest.
  static constexpr base::Duration kLate = base::Duration::from_ms(1);

  std::int64_t monotonic_zero_ns_ = 0;
  std::int64_t unix_ns_at_zero_ = 0;
  LagHistogram lag_, gap_;
  sim::SimTime last_turn_, last_moved_;
  std::uint64_t turns_ = 0, late_turns_ = 0;
  sim::SimSpan late_time_{}, rested_{};
};

/// Lets this thread run before ordinary ones. A sentence when it may not, or only a little.
std::string go_realtime();

}  // namespace uet::fabric
