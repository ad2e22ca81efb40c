/// The real clock. Everything below the provider gets the time as an argument.
#pragma once

#include <cstdint>

#include "lib/base/units.h"

namespace uet::provider {

/// CLOCK_MONOTONIC.
base::Instant clock_now();

/// What a RecentClock reads: the time, and the processor's count of ticks, which takes a few cycles.
struct SystemTime {
  static base::Instant now() { return clock_now(); }
  static std::uint64_t ticks() {
#ifdef __x86_64__
    return __builtin_ia32_rdtsc();
#else
    return 0;
#endif
  }
  /// The count never changes its rate, which is a thousand in a microsecond or more.
  static bool has_steady_ticks();
};

/// The time for those who ask again and again, one at a time: asking the system takes some 20 ns, of a message of 64 bytes a tenth. What was
/// read less than a thousand ticks ago is taken for the time. [decision 175]
template <typename Time = SystemTime>
class RecentClock {
 public:
  static constexpr std::uint64_t kLasts = 1000;

  RecentClock() : lasts_(Time::has_steady_ticks() ? kLasts : 0) {}

  /// Late by a microsecond at most where the ticks of all cores are those of one clock, and never before what this clock said last.
  base::Instant now() {
    const std::uint64_t ticks = Time::ticks();
    return ticks - read_at_ < lasts_ ? last_ : read(ticks);
  }
  /// Where a length of time begins or ends.
  base::Instant now_exactly() { return read(Time::ticks()); }

 private:
  base::Instant read(std::uint64_t ticks) {
    read_at_ = ticks;
    return last_ = Time::now();
  }

  const std::uint64_t lasts_;  ///< ticks; 0: not at all
  std::uint64_t read_at_ = 0;
  base::Instant last_;
};

}  // namespace uet::provider
