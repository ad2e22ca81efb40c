/// What ends a sleep of an endpoint's thread: packets, people who look at the endpoint from outside, and calls of other threads.
#pragma once

#include <poll.h>

#include <atomic>
#include <cstdint>

#include "lib/base/units.h"

namespace uet {

/// A thread sleeps in sleep(), or on fd() in a loop of its program.
class Wakeup {
 public:
  Wakeup() = default;
  ~Wakeup();
  Wakeup(const Wakeup&) = delete;
  Wakeup& operator=(const Wakeup&) = delete;

  /// False when the process may have no further descriptors; errno says so.
  bool open();
  /// Stands for all that watch() was given and for call().
  int fd() const { return epoll_fd_; }
  /// Before each sleep on fd(). False when a sleeper would not hear of packets.
  bool watch(int port_fd, const pollfd& desk);
  /// Until `limit` is over or one of them has something. True when that is the desk.
  bool sleep(base::Duration limit, int port_fd, const pollfd& desk) const;

  /// From any thread, and from signal handlers.
  void call();
  /// True once after call(), which then wakes no sleeper any more. What the caller wrote before is visible then.
  bool take_call();
  /// A call that wakes no sleeper, and that take_call() has not told of: the latest take_call() came in the middle of it.
  bool has_half_call() const { return written_ != taken_; }

 private:
  bool exchange(int& watched, int fd, short events);

  int epoll_fd_ = -1;
  int call_fd_ = -1;
  int port_fd_ = -1;  ///< as watched; may be closed meanwhile
  int desk_fd_ = -1;
  // Each modulo 2^32.
  std::atomic<std::uint32_t> calls_ = 0;
  std::uint32_t taken_ = 0;  ///< of calls_, by take_call()
  /// Read from call_fd_: taken_, and those that are not in calls_ yet.
  std::uint32_t written_ = 0;
};

}  // namespace uet
