/// Time limits that hold: a limit on silence, and a watchdog for calls that never come back.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>

namespace uet::perf {

/// How long a side puts up with silence. Starts again with everything that gets on.
/// progressed() and check() belong to one thread; the watchdog only reads.
class Patience {
 public:
  using Clock = std::chrono::steady_clock;

  explicit Patience(std::chrono::milliseconds limit) : limit_(limit) { progressed(); }

  void progressed() {
    stamp_.store(Clock::now().time_since_epoch().count(), std::memory_order_relaxed);
  }
  std::chrono::milliseconds limit() const { return limit_; }
  Clock::duration silence() const {
    return Clock::now().time_since_epoch() -
           Clock::duration(stamp_.load(std::memory_order_relaxed));
  }
  /// What is left of the limit; never negative.
  std::chrono::milliseconds left() const;
  /// Throws std::runtime_error that names what was waited for when the limit is over.
  void check(const std::string& waiting_for) const;

 private:
  std::chrono::milliseconds limit_;
  std::atomic<Clock::rep> stamp_{0};
};

/// Ends the process with status 1 when the thread that owns `patience` is stuck inside a call for longer than its limit and
/// `grace`: such a call cannot be told to return, and may hold any lock.
class Watchdog {
 public:
  static constexpr std::chrono::seconds kGrace{10};

  explicit Watchdog(const Patience& patience, std::chrono::milliseconds grace = kGrace);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

 private:
  void watch();

  const Patience& patience_;
  const std::chrono::milliseconds grace_;
  std::mutex mutex_;
  std::condition_variable over_;
  bool is_over_ = false;
  std::thread thread_;
};

}  // namespace uet::perf
