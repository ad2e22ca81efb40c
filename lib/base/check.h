/// Assertions about our own code. Never about what a peer sent: that is a DropReason.
#pragma once

namespace uet::base {

/// Prints the failed condition to stderr and aborts the process.
[[noreturn]] void check_failed(const char* condition, const char* file, int line);

}  // namespace uet::base

/// Always compiled in: stops the process when `condition` is false.
#define UET_CHECK(condition) \
  ((condition) ? static_cast<void>(0) : ::uet::base::check_failed(#condition, __FILE__, __LINE__))

/// For the innermost per-packet code: compiled in when the build asks for simulation checks.
#if UET_DCHECK_ENABLED
#define UET_DCHECK(condition) UET_CHECK(condition)
#else
#define UET_DCHECK(condition) static_cast<void>(sizeof((condition) ? 1 : 0))
#endif
