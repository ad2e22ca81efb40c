/// Keeping a process on one core.
#pragma once

namespace uet::perf {

/// Binds this process, with the threads that it will start, to core `cpu`. Throws std::runtime_error with a sentence when it cannot.
void pin_to(int cpu);

}  // namespace uet::perf
