#include "provider/clock.h"

#include <time.h>

namespace uet::provider {

base::Instant clock_now() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return base::Instant::from_ns(t.tv_sec * 1'000'000'000LL + t.tv_nsec);
}

}  // namespace uet::provider
