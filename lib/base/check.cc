#include "lib/base/check.h"

#include <cstdio>
#include <cstdlib>

namespace uet::base {

void check_failed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "uet: check failed at %s:%d: %s\n", file, line, condition);
  std::abort();
}

}  // namespace uet::base
