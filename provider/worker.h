/// One fabric endpoint at work: its port, its FEP, the lock around them, and the thread that turns
/// the loop when no other does. Everything above (domains, queues, endpoints) belongs to exactly
/// one worker.
#pragma once

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "fep/fep.h"
#include "fep/report/event_log.h"
#include "fep/report/path_log.h"
#include "fep/settings/settings.h"
#include "lib/base/idle_poll.h"
#include "lib/base/result.h"
#include "lib/base/rng.h"
#include "lib/base/trace.h"
#include "provider/clock.h"
#include "provider/courtesy.h"
#include "provider/delayed_acks.h"
#include "provider/delayed_posts.h"
#include "provider/device.h"
#include "provider/last_words.h"
#include "provider/left_work.h"
#include "provider/live_view.h"
#include "provider/lock.h"
#include "provider/port_picker.h"
#include "provider/sleeper.h"
#include "provider/wait.h"

namespace uet::provider {

class ProgressThread;

class Worker;

/// The lock of a worker. Giving it back carries out what was left for its holder, and makes sure that threads which sleep
/// on behalf of the loop wake in time for what was changed under it.
class WorkerLock {
 public:
  explicit WorkerLock(Worker& worker) : worker_(worker) {}
  void lock() { lock_.lock(); }
  bool try_lock() { return lock_.try_lock(); }
  bool tell_or_lock() { return lock_.tell_or_lock(); }
  inline void unlock();
  bool is_contended() const { return lock_.is_contended(); }

  // Around fork(), so that a child does not get what it guards half changed.
  /// Waits only so long: the thread that forks may be in the middle of a call.
  void lock_before_fork();
  void unlock_in_parent() {
    if (std::exchange(is_held_for_fork_, false)) unlock();
  }
  /// Whichever thread held it.
  void unlock_in_child() { lock_.unlock(); }

 private:
  Worker& worker_;
  Lock lock_;
  bool is_held_for_fork_ = false;
};

class Worker {
 public:
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  WorkerLock& lock() { return lock_; }
  const fep::Settings& settings() const { return settings_; }
  /// Whether endpoints of `job` may live here: all without keys, those of the domain with them. Takes the lock.
  bool covers(std::uint32_t job);

  // --- With the lock held -----------------------------------------------------------------------
  /// The time, for what happens now.
  base::Instant now() { return clock_.now(); }
  ses::Ses& ses() { return fep_->ses(); }
  fep::Fep& fep() { return *fep_; }
  /// Of a new domain: what is registered in one is reached through its own endpoints alone.
  std::uint32_t new_memory_space() { return ++memory_spaces_; }
  Devices& devices() { return devices_; }
  /// One turn of the loop on behalf of the application.
  bool turn() { return turn_at(now()); }
  bool turn_at(base::Instant now);
  using Held = std::unique_lock<WorkerLock>;
  /// After a successful post at `now`: lets its packets leave, or wait for others.
  void after_post(base::Instant now, const DelayedPosts::Post& post);
  /// The application changed something that may bring deadlines nearer.
  void note_application();
  /// A queue has something new for the application.
  void note_completion() { has_completion_ = true; }
  /// When the latest close of an endpoint began that waited in vain, for as long as one does, for what was injected. The loop was
  /// turned for the injects of all endpoints meanwhile.
  base::Instant injects_awaited_since() const { return injects_awaited_since_; }
  void note_awaited_injects(base::Instant begin) {
    injects_awaited_since_ = std::max(injects_awaited_since_, begin);
  }
  /// Has `work` carried out before the lock is free again, and after what is being carried out now.
  void leave_for_unlock(LeftWork& work) {
    left_.push(work);
    left_again_ = true;
  }
  /// `work` will not be left again.
  void forget(LeftWork& work) { left_.forget(work); }

  // --- Without it --------------------------------------------------------------------------------
  /// One turn for a caller that asks again and again, or none while another thread has the loop. When nothing happens for a
  /// while others get the core for a moment.
  void poll();
  /// Has `work` carried out before the lock is free again: at once, or by the thread that holds it.
  void leave(LeftWork& work) {
    left_.push(work);
    if (lock_.tell_or_lock()) lock_.unlock();
  }
  /// Turns the loop until `done` (called with the lock held) or until `limit` has passed. False on
  /// timeout.
  template <typename Done>
  bool turn_until(Done&& done, base::Duration limit);
  enum class OnSignal { kGoOn, kReturn };
  /// Turns the loop and sleeps until `ready` (called with the lock held, at first and whenever there
  /// is a change of `object`) or until `timeout_ms` has passed; negative: for ever. Returns the last
  /// answer of `ready`. Spins for a moment first: most waits are short. `on_signal`: what
  /// a signal handler means that ran while it slept.
  template <typename Ready>
  bool wait_until(WaitObject& object, int timeout_ms, OnSignal on_signal, Ready&& ready);
  /// From now on the progress thread works even right after the application did: a thread waits for
  /// it.
  void require_progress_thread();
  bool has_progress_thread() const { return progress_required_.load(std::memory_order_relaxed); }
  /// The application is about to sleep in poll(): the thread takes over at once.
  void application_sleeps();

 private:
  friend class ProgressThread;
  friend class WorkerLock;
  friend class Workers;
  Worker(const fep::Settings& settings, net::FabricAddress address);
  ~Worker();
  bool start(const PortChoice& choice, std::uint32_t job, std::string& error);

  bool turn_loop(base::Instant now);
  bool transmit(base::Instant now);
  bool turn_for_poll(base::Instant now);
  void note_call(base::Instant now);
  void note_poll(base::Instant now);
  bool may_put_off() const;
  void after_turn(base::Instant now, bool did);
  /// Gives the lock up and sleeps until packets may have arrived, `object` changed, `end`
  /// has come or the loop has something to do, also something that other threads give it meanwhile;
  /// the caller then turns it. Only a sleeper that watches hears of packets and deadlines (LoopSleepers). The progress thread
  /// leaves the loop to sleepers. False when a signal handler ran meanwhile.
  bool sleep(Held& held, base::Instant end, WaitObject& object);
  void carry_out_left();
  void start_left();
  bool has_sleepers() const;
  void serve_sleepers();
  void linger();
  /// In a child made by fork(), with the lock held.
  void abandon_in_child();
  void stop_thread();

  const fep::Settings settings_;
  const net::FabricAddress address_;
  WorkerLock lock_{*this};
  LeftWorkList left_;
  bool left_again_ = false;  ///< by the holder of the lock
  base::Trace trace_;
  RecentClock<> clock_;
  base::Rng rng_;
  std::unique_ptr<net::Port> port_;
  std::unique_ptr<fep::TraceFile> trace_file_;
  std::unique_ptr<fep::PathLog> path_log_;
  Devices devices_;  ///< operations in the FEP use them
  std::unique_ptr<fep::Fep> fep_;
  std::unique_ptr<ProgressThread> thread_;
  std::atomic<std::uint32_t> memory_spaces_{0};
  std::unique_ptr<LastWords> last_words_;
  std::unique_ptr<LiveView::Entry> live_;  ///< last: a worker that is going cannot be looked at
  std::atomic<bool> progress_required_{false};
  std::atomic<std::uint32_t> application_turns_{0};  ///< written with the lock held
  std::atomic<std::uint32_t> application_polls_{0};  ///< those of them that took packets in
  std::atomic<int> application_sleepers_{0};         ///< application threads in sleep()
  LoopSleepers sleepers_;                            ///< these
  WaitObject loop_progress_{FI_WAIT_NONE};           ///< the loop did something
  base::IdlePoll idle_poll_;                         ///< where the port cannot wake a sleeper
  Courtesy courtesy_;
  DelayedAcks delayed_acks_;
  DelayedPosts delayed_posts_;
  base::Instant injects_awaited_since_;
  bool has_completion_ = false;  ///< since the latest turn_for_poll() began
  bool is_port_armed_ = false;   ///< and no turn since
  /// In a child made by fork(): what the loop moves is the parent's.
  bool is_abandoned_ = false;
};

inline void WorkerLock::unlock() {
  while (true) {
    if (!worker_.left_.empty()) [[unlikely]]
      worker_.carry_out_left();
    if (worker_.has_sleepers()) worker_.serve_sleepers();
    if (lock_.unlock_unless_told()) return;
    if (worker_.is_abandoned_) return lock_.unlock();  // the fork was in the middle of a call
    lock_.hear();
  }
}

template <typename Done>
bool Worker::turn_until(Done&& done, base::Duration limit) {
  const base::Instant end = clock_now() + limit;
  Held held(lock_);
  while (true) {
    const base::Instant now = clock_.now_exactly();
    turn_at(now);
    if (done()) return true;
    if (now >= end || is_abandoned_) return false;
    sleep(held, end, loop_progress_);
  }
}

template <typename Ready>
bool Worker::wait_until(WaitObject& object, int timeout_ms, OnSignal on_signal, Ready&& ready) {
  constexpr base::Duration kSpin = base::Duration::from_us(20);
  const base::Instant begin = clock_now();
  const base::Instant end = wait_end(begin, timeout_ms);
  bool was_signalled = false;
  Held held(lock_);
  idle_poll_.reset();
  for (;;) {
    const base::Instant now = clock_.now_exactly();
    turn_at(now);
    if (ready()) return true;
    if (now >= end || is_abandoned_ || was_signalled) return false;
    if (object.kind() != FI_WAIT_YIELD && now >= begin + kSpin) {
      was_signalled = !sleep(held, end, object) && on_signal == OnSignal::kReturn;
      continue;
    }
    held.unlock();
    if (object.kind() == FI_WAIT_YIELD) sched_yield();
    held.lock();
  }
}

}  // namespace uet::provider
