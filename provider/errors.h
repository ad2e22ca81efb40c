/// What goes wrong below, in libfabric's words.
#pragma once

#include <cxxabi.h>

#include <new>
#include <utility>

#include <rdma/fi_errno.h>

#include "lib/base/cancellation.h"
#include "provider/provider.h"
#include "provider/sleeper.h"
#include "provider/thread_memory.h"
#include "ses/ses.h"

namespace uet::provider {

/// The err of a completion that ended with `code`. [SES 12]
int fi_error_of(ses::ReturnCode code);
/// prov_errno of what SES told: its return code as a number.
constexpr int prov_errno_of(ses::ReturnCode code) {
  return static_cast<int>(code);
}
/// prov_errno of what this side found itself: behind all return codes.
constexpr int prov_errno_of_own(int fi_error) {
  constexpr int kOwn = 0x10000;
  return kOwn + fi_error;
}
/// Text for fi_cq_strerror.
const char* describe_prov_errno(int prov_errno);
/// Negative fi_errno for an operation that was refused.
int fi_error_of(ses::PostError error);

/// Negative fi_errno for the exception that is being handled. One of our own making is logged.
int fi_error_of_exception();

/// Nothing thrown may reach a C caller: runs `body` and turns an exception into a negative error. For calls that every message makes:
/// what they reach that is a cancellation point (system calls, streams) turns cancellation off itself. The thread was prepared for
/// exceptions by another call, where it made one.
template <typename Body>
auto guarded_fast(Body&& body) noexcept -> decltype(body()) {
  try {
    return body();
  } catch (...) {
    return fi_error_of_exception();
  }
}

/// The same for all other calls. The thread is not cancelled meanwhile. -FI_ENOMEM without running `body` where the thread cannot be
/// prepared for exceptions.
template <typename Body>
auto guarded(Body&& body) noexcept -> decltype(body()) {
  if (!prepare_thread_for_exceptions()) return -FI_ENOMEM;
  const base::WithoutCancellation without_cancellation;
  return guarded_fast(std::forward<Body>(body));
}

/// The same for calls that wait: the thread can be cancelled while it sleeps (Sleeper), when it holds nothing.
template <typename Body>
auto guarded_wait(Body&& body) -> decltype(body()) {
  if (!prepare_thread_for_exceptions()) return -FI_ENOMEM;
  const base::WithoutCancellation without_cancellation;
  const CancelledAsleep as_before(without_cancellation.before());
  try {
    return body();
  } catch (const abi::__forced_unwind&) {
    throw;
  } catch (...) {
    return fi_error_of_exception();
  }
}

}  // namespace uet::provider
