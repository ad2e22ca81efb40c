/// Counts instructions one by one: the figure depends on the program alone, not on what else the machine does.
#pragma once

#include <signal.h>

#include <cstdint>
#include <optional>

#include "tests/base/sanitizers.h"

namespace uet::test {

namespace detail {

inline volatile std::uint64_t steps = 0;

inline void on_step(int) {
  steps = steps + 1;
}

/// The processor traps behind each instruction from now on, or no longer. The red zone below the stack stays as it is.
inline void step([[maybe_unused]] bool on) {
#ifdef __x86_64__
  if (on)
    asm volatile(
        "lea -128(%%rsp), %%rsp\n pushfq\n orq $0x100, (%%rsp)\n popfq\n lea 128(%%rsp), %%rsp" ::
            : "memory", "cc");
  else
    asm volatile(
        "lea -128(%%rsp), %%rsp\n pushfq\n andq $-0x101, (%%rsp)\n popfq\n lea 128(%%rsp), %%rsp" ::
            : "memory", "cc");
#endif
}

}  // namespace detail

/// Instructions that `work` executes in user space, and a few around it. One thread at a time. Nothing on processors that are not
/// known here, where something else (a debugger) gets the traps, or where a sanitizer adds instructions of its own.
template <typename Work>
std::optional<std::uint64_t> instructions_of(Work&& work) {
  if (UET_SANITIZED) return std::nullopt;
  struct sigaction action {
  }, before{};
  action.sa_handler = detail::on_step;
  if (sigaction(SIGTRAP, &action, &before) != 0) return std::nullopt;
  detail::steps = 0;
  detail::step(true);
  work();
  detail::step(false);
  sigaction(SIGTRAP, &before, nullptr);
  if (detail::steps == 0) return std::nullopt;
  return detail::steps;
}

}  // namespace uet::test
