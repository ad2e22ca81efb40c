/// How much memory this process uses, for tests of what costs address space only.
#pragma once

#include <unistd.h>

#include <cstddef>
#include <fstream>

namespace uet::test {

inline std::size_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  std::size_t total = 0, resident = 0;
  statm >> total >> resident;
  return resident * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace uet::test
