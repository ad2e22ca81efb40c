#include "apps/fabric/pace.h"

#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cmath>
#include <cstring>

namespace uet::fabric {

namespace {

std::int64_t clock_ns(clockid_t clock) {
  timespec t{};
  clock_gettime(clock, &t);
  return t.tv_sec * 1'000'000'000 + t.tv_nsec;
}

}  // namespace

void LagHistogram::add(sim::SimSpan lag) {
  const auto us = static_cast<std::uint64_t>(std::max<std::int64_t>(0, lag.ps() / 1'000'000));
  ++buckets_[std::min<std::size_t>(static_cast<std::size_t>(std::bit_width(us)), 31)];
  ++samples_;
  max_ = std::max(max_, lag);
}

double LagHistogram::percentile_us(double share) const {
  const auto wanted = static_cast<std::uint64_t>(std::ceil(share * static_cast<double>(samples_)));
  std::uint64_t seen = 0;
  for (std::size_t i = 0; i < buckets_.size(); ++i) {
    seen += buckets_[i];
    if (seen >= wanted && seen != 0) return static_cast<double>(std::uint64_t{1} << i);
  }
  return 0;
}

Pace::Pace()
    : monotonic_zero_ns_(clock_ns(CLOCK_MONOTONIC)), unix_ns_at_zero_(clock_ns(CLOCK_REALTIME)) {
  // Sleeps end when asked, not up to 50 us later.
  prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
}

sim::SimTime Pace::now() const {
  return sim::SimTime::from(base::Instant::from_ns(clock_ns(CLOCK_MONOTONIC) - monotonic_zero_ns_));
}

void Pace::begin_turn(sim::SimTime now, sim::SimTime due) {
  const sim::SimSpan gap = now - last_turn_;
  if (turns_++ != 0) gap_.add(gap);
  last_turn_ = now;
  if (due > now) return;
  const sim::SimSpan lag = now - due;
  lag_.add(lag);
  if (lag <= sim::SimSpan::from(kLate)) return;
  ++late_turns_;
  late_time_ = late_time_ + std::min(lag, gap);
}

void Pace::end_turn(std::size_t frames, bool is_pressing) {
  if (frames != 0) last_moved_ = last_turn_;
  if (is_pressing) return;
  const bool is_idle = last_turn_ - last_moved_ > sim::SimSpan::from(kIdleAfter);
  const std::int64_t rest_ns = (is_idle ? kIdleTick : kTick).ns();
  const timespec rest{0, rest_ns};
  const std::int64_t before = clock_ns(CLOCK_MONOTONIC);
  nanosleep(&rest, nullptr);
  rested_ =
      rested_ + sim::SimSpan::from(base::Duration::from_ns(clock_ns(CLOCK_MONOTONIC) - before));
}

Json Pace::report() const {
  const double total_us = now().us();
  return {{"time_s", total_us * 1e-6},
          {"turns", turns_},
          {"busy_share", total_us > 0 ? 1 - rested_.us() / total_us : 0},
          {"lag_us",
           {{"p50", lag_.percentile_us(0.5)},
            {"p99", lag_.percentile_us(0.99)},
            {"max", lag_.max_us()}}},
          {"gap_us",
           {{"p50", gap_.percentile_us(0.5)},
            {"p99", gap_.percentile_us(0.99)},
            {"max", gap_.max_us()}}},
          {"late_turns", late_turns_},
          {"late_share", total_us > 0 ? late_time_.us() / total_us : 0},
          {"fell_behind", late_time_.us() > total_us * 0.01}};
}

std::string go_realtime() {
  sched_param parameter{};
  parameter.sched_priority = 1;
  if (sched_setscheduler(0, SCHED_RR | SCHED_RESET_ON_FORK, &parameter) == 0) return {};
  std::string why =
      std::string("real-time scheduling is not allowed here (") + std::strerror(errno) + ")";
  constexpr int kPriority = -15;
  if (setpriority(PRIO_PROCESS, 0, kPriority) == 0) return why + "; a high priority has to do";
  return why + "; expect lag when the machine is busy";
}

}  // namespace uet::fabric
