#include "provider/clock.h"

#include <sys/random.h>
#include <time.h>
#include <unistd.h>

namespace uet::provider {

base::Instant clock_now() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return base::Instant::from_ns(t.tv_sec * 1'000'000'000LL + t.tv_nsec);
}

std::uint64_t system_seed() {
  std::uint64_t seed = 0;
  if (getrandom(&seed, sizeof seed, GRND_NONBLOCK) == static_cast<ssize_t>(sizeof seed)) {
    return seed;
  }
  // Early boot without entropy: still different per process and per call.
  return static_cast<std::uint64_t>(clock_now().ns()) ^
         (static_cast<std::uint64_t>(getpid()) << 40);
}

}  // namespace uet::provider
