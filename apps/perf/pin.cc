#include "apps/perf/pin.h"

#include <fmt/core.h>
#include <sched.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>

namespace uet::perf {

void pin_to(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  if (sched_setaffinity(0, sizeof set, &set) != 0)
    throw std::runtime_error(
        fmt::format("--pin {}: {}; `taskset -cp $$` lists the cores that this process may use", cpu,
                    std::strerror(errno)));
}

}  // namespace uet::perf
