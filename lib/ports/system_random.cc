#include "lib/ports/system_random.h"

#include <sys/random.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

#include "lib/base/check.h"

namespace uet::ports {

base::Rng make_rng(std::uint64_t seed) {
  if (seed != 0) return base::Rng(seed);
  base::Rng::Key key;
  // So few bytes come whole, and no signal interrupts the call once the system has any.
  ssize_t n;
  do n = getrandom(key.data(), sizeof key, 0);
  while (n < 0 && errno == EINTR);
  UET_CHECK(n == static_cast<ssize_t>(sizeof key));
  return base::Rng(key);
}

std::uint32_t number_of_process(std::uint64_t seed) {
  if (seed != 0) return make_rng(seed).next_u32();
  static std::atomic<std::uint64_t> drawn{0};  // and the process that drew it
  const auto process = static_cast<std::uint64_t>(getpid()) << 32;
  std::uint64_t seen = drawn.load(std::memory_order_relaxed);
  while ((seen >> 32) << 32 != process) {
    const std::uint64_t mine = process | make_rng(0).next_u32();
    if (drawn.compare_exchange_weak(seen, mine, std::memory_order_relaxed)) seen = mine;
  }
  return static_cast<std::uint32_t>(seen);
}

}  // namespace uet::ports
