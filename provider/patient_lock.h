/// Locks that may never come free: a signal handler that calls exit() runs in the thread that it met, with whatever that thread
/// holds, and the process ends behind it.
#pragma once

#include <time.h>

#include <mutex>

#include "lib/base/cancellation.h"
#include "lib/base/units.h"

namespace uet::provider {

/// Waits for `mutex` no longer than `patience`; the caller asks the result whether it has it.
template <class Mutex>
std::unique_lock<Mutex> lock_within(Mutex& mutex, base::Duration patience) {
  constexpr auto kStep = base::Duration::from_us(50);
  const base::WithoutCancellation without_cancellation;
  std::unique_lock<Mutex> held(mutex, std::try_to_lock);
  for (base::Duration waited{}; !held && waited < patience; waited = waited + kStep) {
    const timespec pause{0, 50'000};
    nanosleep(&pause, nullptr);
    held.try_lock();
  }
  return held;
}

}  // namespace uet::provider
