/// A lock held for some hundred nanoseconds at a time, almost always uncontended.
#pragma once

#include <sched.h>
#include <time.h>

#include <atomic>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace uet::provider {

/// Taking it costs one atomic exchange, giving it back one plain store. A waiter spins for a
/// moment, then yields, then sleeps in short steps: the holder may have been preempted.
class Lock {
 public:
  void lock() {
    if (!locked_.exchange(true, std::memory_order_acquire)) return;
    lock_slow();
  }
  bool try_lock() {
    return !locked_.load(std::memory_order_relaxed) &&
           !locked_.exchange(true, std::memory_order_acquire);
  }
  void unlock() { locked_.store(false, std::memory_order_release); }
  /// Another thread waits: a holder that takes the lock again and again should step aside first.
  bool is_contended() const { return waiters_.load(std::memory_order_relaxed) != 0; }

 private:
  static void relax() {
#if defined(__x86_64__)
    _mm_pause();
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
        const timespec pause{0, 20'000};
        nanosleep(&pause, nullptr);
      }
    }
    waiters_.fetch_sub(1, std::memory_order_relaxed);
  }

  static constexpr unsigned kSpins = 128;
  static constexpr unsigned kYields = 64;
  std::atomic<bool> locked_{false};
  std::atomic<int> waiters_{0};
};

}  // namespace uet::provider
