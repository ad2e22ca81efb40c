#include "embed/fork_guard.h"

#include <pthread.h>

#include <mutex>
#include <set>

namespace uet {
namespace {

struct Guards {
  std::mutex mutex;
  std::set<ForkGuard*> all;
};

/// Never destroyed: endpoints may live as long as the process.
Guards& guards() {
  static auto* const g = new Guards;
  return *g;
}

}  // namespace

ForkGuard::ForkGuard() {
  static const int once = pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
  (void)once;
  const std::lock_guard lock(guards().mutex);
  guards().all.insert(this);
}

ForkGuard::~ForkGuard() {
  const std::lock_guard lock(guards().mutex);
  guards().all.erase(this);
}

/// The child has no other thread that could release what it held in the moment of the fork.
void ForkGuard::before_fork() {
  guards().mutex.lock();
}

void ForkGuard::after_fork_in_parent() {
  guards().mutex.unlock();
}

/// Safe between fork() and exec().
void ForkGuard::after_fork_in_child() {
  for (ForkGuard* guard : guards().all) {
    guard->is_in_child_ = true;
    if (guard->port_ != nullptr) guard->port_->abandon_in_child();
    if (guard->trace_file_ != nullptr) guard->trace_file_->abandon_in_child();
    if (guard->path_log_ != nullptr) guard->path_log_->abandon_in_child();
  }
  guards().mutex.unlock();
}

}  // namespace uet
