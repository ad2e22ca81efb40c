/// What an endpoint of the library does when its process forks: the child lets go of it. Its sockets, files, packet counters and keys are the
/// parent's, and two that seal with them would repeat IVs.
#pragma once

#include "fep/report/event_log.h"
#include "fep/report/path_log.h"
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
  /// Files that a child lets go of: what they have in their buffers is the parent's to write, once. They outlive this.
  void watch(fep::TraceFile& file) { trace_file_ = &file; }
  void watch(fep::PathLog& log) { path_log_ = &log; }
  /// True in children of the process that made this.
  bool is_in_child() const { return is_in_child_; }

 private:
  static void before_fork();
  static void after_fork_in_parent();
  static void after_fork_in_child();

  net::Port* port_ = nullptr;
  fep::TraceFile* trace_file_ = nullptr;
  fep::PathLog* path_log_ = nullptr;
  bool is_in_child_ = false;
};

}  // namespace uet
