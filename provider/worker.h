/// One fabric endpoint at work: its port, its FEP, the lock around them, and the thread that turns
/// the loop when nobody else does. Everything above (domains, queues, endpoints) belongs to exactly
/// one worker.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>

#include "fep/event_log.h"
#include "fep/fep.h"
#include "fep/path_log.h"
#include "fep/settings.h"
#include "lib/base/result.h"
#include "lib/base/rng.h"
#include "lib/base/trace.h"
#include "provider/clock.h"
#include "provider/last_words.h"
#include "provider/live_view.h"
#include "provider/lock.h"
#include "provider/port_picker.h"

namespace uet::provider {

class ProgressThread;

class Worker {
 public:
  /// The worker of this address: the running one, or a new one on a freshly opened port. It lives
  /// as long as somebody holds the pointer.
  static base::Result<std::shared_ptr<Worker>, std::string> open(const fep::Settings& settings,
                                                                 const PortChoice& choice);
  /// At process exit: ends the threads; everything else stays as it is.
  static void stop_all();

  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  Lock& lock() { return lock_; }
  const fep::Settings& settings() const { return settings_; }

  // --- With the lock held -----------------------------------------------------------------------
  ses::Ses& ses() { return fep_->ses(); }
  fep::Fep& fep() { return *fep_; }
  /// One turn of the loop on behalf of the application.
  bool turn() { return turn_at(clock_now()); }
  bool turn_at(base::Instant now);
  /// After a successful post at `now`: lets the packets leave.
  void after_post(base::Instant now);
  /// The application changed something that may bring deadlines nearer.
  void note_application();

  // --- Without it --------------------------------------------------------------------------------
  /// Turns the loop until `done` (called with the lock held) or until `limit` has passed. False on
  /// timeout.
  template <typename Done>
  bool turn_until(Done&& done, base::Duration limit);
  /// From now on the progress thread works even right after the application did: somebody waits for
  /// it.
  void require_progress_thread();
  bool has_progress_thread() const { return progress_required_.load(std::memory_order_relaxed); }
  /// The application is about to sleep in poll(): the thread takes over at once.
  void application_sleeps();
  /// Sleeps until packets may have arrived, `extra_fd` is readable, `end` has come or the loop has
  /// something to do; the caller then turns it. Meanwhile the progress thread leaves the loop to
  /// the caller.
  void sleep_for_packets(base::Instant end, int extra_fd = -1);

 private:
  friend class ProgressThread;
  Worker(const fep::Settings& settings, net::FabricAddress address);
  bool start(const PortChoice& choice, std::string& error);

  bool turn_loop(base::Instant now);
  void linger();

  const fep::Settings settings_;
  const net::FabricAddress address_;
  Lock lock_;
  base::Trace trace_;
  base::Rng rng_;
  std::unique_ptr<net::Port> port_;
  std::unique_ptr<fep::TraceFile> trace_file_;
  std::unique_ptr<fep::PathLog> path_log_;
  std::unique_ptr<fep::Fep> fep_;
  std::unique_ptr<ProgressThread> thread_;
  std::unique_ptr<LastWords> last_words_;
  std::unique_ptr<LiveView::Entry> live_;  ///< last: nobody looks at a worker that is going
  std::atomic<bool> progress_required_{false};
  std::atomic<std::uint32_t> application_turns_{0};  ///< written with the lock held
  std::atomic<int> application_sleepers_{0};         ///< application threads in sleep_for_packets()
};

template <typename Done>
bool Worker::turn_until(Done&& done, base::Duration limit) {
  const base::Instant end = clock_now() + limit;
  while (true) {
    {
      const std::lock_guard guard(lock_);
      const base::Instant now = clock_now();
      turn_at(now);
      if (done()) return true;
      if (now >= end) return false;
    }
    sleep_for_packets(end);
  }
}

}  // namespace uet::provider
