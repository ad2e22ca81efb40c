/// A thread that sleeps in a call of the application, and what wakes it.
#pragma once

#include <boost/intrusive/list.hpp>
#include <memory>

#include "lib/base/units.h"

namespace uet::provider {

/// Lives on the stack of the thread that sleeps. Each has a descriptor of its own, so that no other
/// thread can take its wake-up away. Lists hold it: that of the object whose change it waits for, and
/// that of the worker whose loop it looks after meanwhile; the lock of the lists guards everything
/// but sleep().
class Sleeper {
 public:
  using Hook = boost::intrusive::list_member_hook<
      boost::intrusive::link_mode<boost::intrusive::auto_unlink>>;

  /// `alarm`: when it wakes by itself.
  explicit Sleeper(base::Instant alarm);
  ~Sleeper();
  Sleeper(const Sleeper&) = delete;
  Sleeper& operator=(const Sleeper&) = delete;

  base::Instant alarm() const { return alarm_; }
  void wake();
  /// Without the lock: until woken, `other_fd` is readable (-1: none) or `at_most` has passed. A thread that may be cancelled
  /// (CancelledAsleep) is unwound from here: all that it must undo are destructors. False when a signal handler ran.
  bool sleep(int other_fd, base::Duration at_most);

  Hook object_hook, worker_hook;

 private:
  const base::Instant alarm_;
  const bool is_of_thread_;  ///< fd_ is kept by the thread for its next sleep
  const int fd_;
  bool woken_ = false;
};

/// While it lives the calling thread has this cancel state (pthread_setcancelstate) in Sleeper::sleep(). Without one it is not cancelled there.
class CancelledAsleep {
 public:
  explicit CancelledAsleep(int cancel_state);
  ~CancelledAsleep();
  CancelledAsleep(const CancelledAsleep&) = delete;
  CancelledAsleep& operator=(const CancelledAsleep&) = delete;

 private:
  const int before_;
};

template <Sleeper::Hook Sleeper::*Member>
using SleeperList =
    boost::intrusive::list<Sleeper, boost::intrusive::member_hook<Sleeper, Sleeper::Hook, Member>,
                           boost::intrusive::constant_time_size<false>>;

/// Threads that look after one loop while they sleep: whichever wakes first turns it.
class LoopSleepers {
 public:
  bool empty() const { return all_.empty(); }
  void add(Sleeper& sleeper);
  void remove(Sleeper& sleeper);
  /// The loop wants to be turned at `deadline`: wakes the first of them when it would be too late.
  void serve(base::Instant deadline) {
    if (first_ != nullptr && deadline < first_->alarm()) first_->wake();
  }
  /// In a child made by fork(): they are threads of the parent, and their stacks may be used anew.
  void abandon_in_child() {
    std::construct_at(&all_);
    first_ = nullptr;
  }

 private:
  SleeperList<&Sleeper::worker_hook> all_;
  Sleeper* first_ = nullptr;  ///< the one with the earliest alarm
};

/// Waits in ppoll() for up to two descriptors (negative: none). False when a signal handler ran.
bool poll_descriptors(int first, int second, base::Duration at_most);

}  // namespace uet::provider
