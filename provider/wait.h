/// What a program sleeps on: an eventfd per queue or counter, written only when somebody said that
/// he is about to sleep.
#pragma once

#include <rdma/fi_eq.h>

#include <mutex>

#include "lib/base/units.h"
#include "provider/worker.h"

namespace uet::provider {

/// All calls with the lock of the owning queue held, so arming and signalling cannot cross.
class WaitObject {
 public:
  explicit WaitObject(fi_wait_obj kind) : kind_(kind) {}
  ~WaitObject();
  WaitObject(const WaitObject&) = delete;
  WaitObject& operator=(const WaitObject&) = delete;

  fi_wait_obj kind() const { return kind_; }
  /// Created at the first call; -1 when the process has no descriptors left.
  int fd();
  /// Drains the descriptor; the next signal() writes it.
  void arm();
  void disarm() { armed_ = false; }
  void signal() {
    if (armed_) write_fd();
  }
  /// Answers FI_GETWAIT and FI_GETWAITOBJ.
  int control(int command, void* arg);

  /// The kinds that can be opened. [libfabric 9]
  static bool is_supported(fi_wait_obj kind) {
    return kind == FI_WAIT_NONE || kind == FI_WAIT_UNSPEC || kind == FI_WAIT_FD ||
           kind == FI_WAIT_YIELD || kind == FI_WAIT_POLLFD;
  }
  static bool needs_progress_thread(fi_wait_obj kind) {
    return kind == FI_WAIT_FD || kind == FI_WAIT_POLLFD;
  }

 private:
  void write_fd();
  const fi_wait_obj kind_;
  int fd_ = -1;
  bool armed_ = false;
};

/// A negative timeout waits for ever.
inline base::Instant wait_end(base::Instant now, int timeout_ms) {
  return timeout_ms < 0 ? base::Instant::never() : now + base::Duration::from_ms(timeout_ms);
}

/// Turns the loop and sleeps until `ready` (called with the worker's lock held) or until
/// `timeout_ms` has passed. Returns the last answer of `ready`. Spins for a moment first: most
/// waits are short.
template <typename Ready>
bool wait_until(Worker& worker, WaitObject& wait, int timeout_ms, Ready&& ready) {
  constexpr base::Duration kSpin = base::Duration::from_us(20);
  const base::Instant begin = clock_now();
  const base::Instant end = wait_end(begin, timeout_ms);
  for (base::Instant now = begin;; now = clock_now()) {
    int fd = -1;
    {
      const std::lock_guard guard(worker.lock());
      worker.turn_at(now);
      if (ready()) return true;
      if (now >= end) return false;
      if (wait.kind() == FI_WAIT_YIELD || now < begin + kSpin) continue;
      fd = wait.fd();
      wait.arm();
    }
    worker.sleep_for_packets(end, fd);
  }
}

}  // namespace uet::provider
