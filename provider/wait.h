/// What programs wait for: a change of one queue or counter.
#pragma once

#include <rdma/fi_eq.h>

#include "lib/base/units.h"
#include "provider/sleeper.h"

namespace uet::provider {

/// Threads that sleep inside our calls are woken each by itself. Programs that sleep in poll() share
/// one eventfd, written only after fi_trywait has armed it. All calls with the lock of the owning
/// queue held, so arming and signalling cannot cross. In a child made by fork() it does nothing: its descriptor is shared with the parent,
/// whose threads sleep on stacks that the child may use anew.
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
  /// Before it sleeps; it leaves by itself.
  void add(Sleeper& sleeper) { sleepers_.push_back(sleeper); }
  /// Something changed: each waiting thread checks whether its own condition holds.
  void signal() {
    if (armed_) write_fd();
    if (!sleepers_.empty()) wake_sleepers();
  }
  /// Answers FI_GETWAIT and FI_GETWAITOBJ.
  int control(int command, void* arg);

  /// The kinds that can be opened. [FI 9]
  static bool is_supported(fi_wait_obj kind) {
    return kind == FI_WAIT_NONE || kind == FI_WAIT_UNSPEC || kind == FI_WAIT_FD ||
           kind == FI_WAIT_YIELD || kind == FI_WAIT_POLLFD;
  }
  static bool needs_progress_thread(fi_wait_obj kind) {
    return kind == FI_WAIT_FD || kind == FI_WAIT_POLLFD;
  }

 private:
  void write_fd();
  void wake_sleepers();
  const fi_wait_obj kind_;
  int fd_ = -1;
  unsigned missed_ = 0;  ///< signals that were to be written before there was a descriptor
  bool armed_ = false;
  SleeperList<&Sleeper::object_hook> sleepers_;
};

/// A negative timeout waits for ever.
inline base::Instant wait_end(base::Instant now, int timeout_ms) {
  return timeout_ms < 0 ? base::Instant::never() : now + base::Duration::from_ms(timeout_ms);
}

}  // namespace uet::provider
