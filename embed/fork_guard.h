/// What an endpoint of the library does when its process forks: the child lets go of it. Its sockets, packet counters and keys are the
/// parent's, and two that seal with them would repeat IVs.
#pragma once

#include "lib/net/port.h"

namespace uet {

class ForkGuard {
 public:
  ForkGuard();
  ~ForkGuard();
  ForkGuard(const ForkGuard&) = delete;
  ForkGuard& operator=(const ForkGuard&) = delete;

  /// The port that a child lets go of at once, so that it does not keep the address taken. Outlives this.
  void watch(net::Port& port) { port_ = &port; }
  /// True in children of the process that made this.
  bool is_in_child() const { return is_in_child_; }

 private:
  static void before_fork();
  static void after_fork_in_parent();
  static void after_fork_in_child();

  net::Port* port_ = nullptr;
  bool is_in_child_ = false;
};

}  // namespace uet
