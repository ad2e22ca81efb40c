/// What ends a sleep of an endpoint's thread: packets, people who look at the endpoint from outside, and calls of other threads.
#pragma once

#include <poll.h>

#include <atomic>

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
  /// True once after call(), which then wakes no sleeper any more.
  bool take_call();

 private:
  bool exchange(int& watched, int fd, short events);

  int epoll_fd_ = -1;
  int call_fd_ = -1;
  int port_fd_ = -1;  ///< as watched; may be closed meanwhile
  int desk_fd_ = -1;
  std::atomic<bool> was_called_ = false;
};

}  // namespace uet
