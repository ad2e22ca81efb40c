#include "keys/system_random.h"

#include <sys/random.h>

#include <cerrno>

#include "lib/base/check.h"

namespace uet::keys {

void fill_random(std::span<std::uint8_t> out) {
  while (!out.empty()) {
    const ssize_t n = ::getrandom(out.data(), out.size(), 0);
    UET_CHECK(n > 0 || (n < 0 && errno == EINTR));
    if (n > 0) out = out.subspan(static_cast<std::size_t>(n));
  }
}

}  // namespace uet::keys
