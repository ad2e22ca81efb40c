#include "provider/clock.h"

#include <time.h>

#ifdef __x86_64__
#include <cpuid.h>
#endif

namespace uet::provider {

base::Instant clock_now() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return base::Instant::from_ns(t.tv_sec * 1'000'000'000LL + t.tv_nsec);
}

bool SystemTime::has_steady_ticks() {
#ifdef __x86_64__
  constexpr unsigned kPowerManagement = 0x80000007, kInvariantTsc = 1u << 8;
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(kPowerManagement, &a, &b, &c, &d) != 0 && (d & kInvariantTsc) != 0;
#else
  return false;
#endif
}

}  // namespace uet::provider
