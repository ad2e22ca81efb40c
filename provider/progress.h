/// The thread behind a worker. It turns the loop when no other thread does, and sleeps otherwise.
///
/// Two temperaments. A watchdog (the default with manual progress) only acts when the application
/// has been silent for some milliseconds, so that a process that computes still answers its peers.
/// A progress thread (FI_PROGRESS_AUTO, FI_WAIT_FD) acts at once. Neither ever spins when there is
/// nothing to do, and both stay away from the loop as long as the application turns it.
#pragma once

#include <atomic>
#include <string>
#include <thread>

#include "lib/base/units.h"

namespace uet::provider {

class Worker;

class ProgressThread {
 public:
  explicit ProgressThread(Worker& worker);
  ~ProgressThread();
  ProgressThread(const ProgressThread&) = delete;
  ProgressThread& operator=(const ProgressThread&) = delete;

  /// Once `worker` knows it. False with a sentence in `error` when the system gives no thread or no
  /// descriptor.
  bool start(std::string& error);
  /// Wakes it and lets it look at the loop at once. Any thread.
  void kick();
  /// With the worker's lock held, after the application gave the loop something new: a thread in
  /// deep sleep sets its alarm by the old deadlines.
  void wake_from_deep_sleep() {
    if (is_in_deep_sleep()) leave_deep_sleep();
  }
  /// With the worker's lock held, also for the next one.
  bool is_in_deep_sleep() const { return deep_sleep_.load(std::memory_order_relaxed); }
  /// It looks soon for what waits for a call that does not come.
  bool is_watchful() const { return is_watchful_.load(); }
  /// The loop wants to be turned at `deadline`: a thread that would sleep longer is woken.
  void serve(base::Instant deadline) {
    if (is_in_deep_sleep() && deadline < alarm_) leave_deep_sleep();
  }
  /// Whether it is the caller.
  bool is_current() const {
    return id_.load(std::memory_order_relaxed) == std::this_thread::get_id();
  }
  /// Ends the thread. Also safe where the thread was never scheduled again (process exit).
  void stop();

 private:
  void run();
  void work_once();
  void leave_deep_sleep();
  void drain_wakeup();
  bool nap();
  base::Duration nap_time();
  base::Duration patience() const;

  Worker& worker_;
  const int event_fd_;
  std::atomic<bool> deep_sleep_{false};  ///< set with the worker's lock held
  base::Instant alarm_;  ///< when deep sleep ends by itself; guarded by the worker's lock
  std::atomic<bool> is_watchful_{false};
  std::atomic<bool> stop_{false};
  std::atomic<bool> kicked_{false};
  base::Duration idle_poll_;         ///< only the thread's own
  std::atomic<std::thread::id> id_;  ///< from its own start on
  std::thread thread_;
};

/// Waits for the end of a thread that was told to end, unless the caller is that thread: a handler of the application that ends the
/// process where it met a fault.
void join_or_leave(std::thread& thread);

}  // namespace uet::provider
