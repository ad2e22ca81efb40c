#include "lib/ports/system_random.h"

#include <sys/random.h>

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

}  // namespace uet::ports
