/// A thread that sleeps in a call of the application, and what wakes it.
#pragma once

#include <boost/intrusive/list.hpp>
#include <iterator>
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

  /// `alarm`: when it wakes by itself. `watches`: for the loop too, and not for its caller alone (LoopSleepers).
  explicit Sleeper(base::Instant alarm, bool watches = false);
  ~Sleeper();
  Sleeper(const Sleeper&) = delete;
  Sleeper& operator=(const Sleeper&) = delete;

  base::Instant alarm() const { return alarm_; }
  bool watches() const { return watches_; }
  bool is_woken() const { return woken_; }
  void wake();
  /// Has it woken, and look after the loop from here on.
  void appoint() {
    watches_ = true;
    wake();
  }
  /// Without the lock: until woken, `other_fd` is readable (-1: none) or `at_most` has passed. A thread that may be cancelled
  /// (CancelledAsleep) is unwound from here: all that it must undo are destructors. False when a signal handler ran.
  bool sleep(int other_fd, base::Duration at_most);

  Hook object_hook, worker_hook;

 private:
  const base::Instant alarm_;
  const bool is_of_thread_;  ///< fd_ is kept by the thread for its next sleep
  const int fd_;
  bool watches_;
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

/// Threads that sleep in calls while one loop has to be looked after.
///
/// Invariant: whenever the lock is free and threads sleep, the first of them watches. One that watches waits for the port's
/// packets and the loop's deadlines too, or is on its way out of its sleep; it then takes the lock and turns the loop, sleeps
/// again or leaves. The others hear of their own object alone, so giving the lock back (serve()) appoints the latest
/// of them where the last one that watched has gone, however it went.
class LoopSleepers {
 public:
  bool empty() const { return all_.empty(); }
  /// Whether one of them watches that was not woken to go, and when the first of these wakes by itself.
  bool are_watching() const {
    return !all_.empty() && all_.front().watches() && !all_.front().is_woken();
  }
  base::Instant alarm() const { return all_.front().alarm(); }
  void add(Sleeper& sleeper) {
    all_.insert(sleeper.watches() ? all_.begin() : all_.end(), sleeper);
  }
  void remove(Sleeper& sleeper) { all_.erase(all_.iterator_to(sleeper)); }
  /// Before the lock is free. The loop wants to be turned at `deadline`: has one of them woken when it would be too late.
  void serve(base::Instant deadline) {
    if (all_.empty()) return;
    if (!all_.front().watches()) {
      all_.splice(all_.begin(), all_, std::prev(all_.end()));
      all_.front().appoint();
    } else if (deadline < all_.front().alarm()) {
      all_.front().wake();
    }
  }
  /// In a child made by fork(): they are threads of the parent, and their stacks may be used anew.
  void abandon_in_child() { std::construct_at(&all_); }

 private:
  /// Those that watch, the latest first; then the others, the latest last.
  SleeperList<&Sleeper::worker_hook> all_;
};

/// Waits in ppoll() for up to two descriptors (negative: none). False when a signal handler ran.
bool poll_descriptors(int first, int second, base::Duration at_most);

}  // namespace uet::provider
