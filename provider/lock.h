/// A lock held for some hundred nanoseconds at a time, almost always uncontended.
#pragma once

#include <sched.h>
#include <time.h>

#include <atomic>
#include <cstdint>

#include "lib/base/cancellation.h"

namespace uet::provider {

/// Taking it costs one atomic operation, giving it back one plain store. A waiter spins for a
/// moment, then yields, then sleeps in short steps: the holder may have been preempted.
///
/// A thread with work for the holder need not wait: after tell_or_lock() either the holder's next
/// unlock_unless_told() fails, and it finds the work, or there is no holder but the caller.
class Lock {
 public:
  void lock() {
    if ((state_.fetch_or(kHeld, std::memory_order_acquire) & kHeld) != 0) lock_slow();
  }
  bool try_lock() {
    return (state_.load(std::memory_order_relaxed) & kHeld) == 0 &&
           (state_.fetch_or(kHeld, std::memory_order_acquire) & kHeld) == 0;
  }
  void unlock() { state_.store(0, std::memory_order_release); }

  /// True: there was no holder, and the caller is it now.
  bool tell_or_lock() {
    return (state_.fetch_or(kHeld | kTold, std::memory_order_acq_rel) & kHeld) == 0;
  }
  /// False: another thread told since the last hear(), and the caller still holds the lock.
  bool unlock_unless_told() {
    std::uint8_t held = kHeld;
    return state_.compare_exchange_strong(held, 0, std::memory_order_release,
                                          std::memory_order_relaxed);
  }
  /// By the holder, before it looks for the work.
  void hear() { state_.fetch_and(kHeld, std::memory_order_acquire); }
  /// Another thread waits: a holder that takes the lock again and again should step aside first.
  bool is_contended() const { return waiters_.load(std::memory_order_relaxed) != 0; }

 private:
  static void relax() {
#if defined(__x86_64__)
    __builtin_ia32_pause();  // by this name: <immintrin.h> is a fifth of what a file of this folder takes to compile
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
  }
  void lock_slow() {
    waiters_.fetch_add(1, std::memory_order_relaxed);
    for (unsigned round = 0; !try_lock(); ++round) {
      if (round < kSpins) {
        relax();
      } else if (round < kSpins + kYields) {
        sched_yield();
      } else {
        const base::WithoutCancellation without_cancellation;
        const timespec pause{0, 20'000};
        nanosleep(&pause, nullptr);
      }
    }
    waiters_.fetch_sub(1, std::memory_order_relaxed);
  }

  static constexpr unsigned kSpins = 128;
  static constexpr unsigned kYields = 64;
  enum : std::uint8_t { kHeld = 1, kTold = 2 };
  std::atomic<std::uint8_t> state_{0};
  std::atomic<int> waiters_{0};
};

}  // namespace uet::provider
