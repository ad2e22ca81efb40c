#include "provider/progress.h"

#include <pthread.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <system_error>

#include "lib/base/cancellation.h"
#include "lib/base/thread_signals.h"
#include "provider/errors.h"
#include "provider/thread_memory.h"
#include "provider/worker.h"

namespace uet::provider {
namespace {

using base::Duration;

/// How long the application may be silent before the thread acts.
constexpr Duration kWatchdogPatience = Duration::from_ms(5);
constexpr Duration kProgressPatience = Duration::from_ms(1);
/// The same where ACKs or posts wait for its next call.
constexpr Duration kShortPatience = Duration::from_us(250);
/// Ports that cannot wake a sleeper are polled; the interval doubles between these while nothing
/// happens.
constexpr Duration kPollMin = Duration::from_us(20);
constexpr Duration kPollMax = Duration::from_ms(1);
/// No alarm is set further away.
constexpr Duration kLongestSleep = Duration::from_seconds(1);
/// After the system had no memory for a turn.
constexpr Duration kWithoutMemory = Duration::from_ms(1);

}  // namespace

ProgressThread::ProgressThread(Worker& worker)
    : worker_(worker), event_fd_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {}

bool ProgressThread::start(std::string& error) {
  if (event_fd_ < 0) {
    error = std::string("no descriptor for the progress thread: ") + std::strerror(errno);
    return false;
  }
  const base::WithoutSignals without_signals;
  try {
    thread_ = std::thread([this] { run(); });
  } catch (const std::system_error& e) {
    error = std::string("the progress thread does not start: ") + e.what();
    return false;
  }
  pthread_setname_np(thread_.native_handle(), "uet-progress");
  return true;
}

ProgressThread::~ProgressThread() {
  stop();
  if (event_fd_ >= 0) close(event_fd_);
}

void ProgressThread::stop() {
  stop_ = true;
  kick();
  if (thread_.joinable()) join_or_leave(thread_);
}

void join_or_leave(std::thread& thread) {
  if (thread.get_id() == std::this_thread::get_id())
    thread.detach();
  else
    thread.join();
}

void ProgressThread::kick() {
  kicked_ = true;
  leave_deep_sleep();
}

void ProgressThread::leave_deep_sleep() {
  deep_sleep_ = false;
  const base::WithoutCancellation without_cancellation;
  const std::uint64_t one = 1;
  if (write(event_fd_, &one, sizeof one) < 0) {
    // Full, hence readable already.
  }
}

void ProgressThread::run() {
  prepare_thread_for_exceptions();
  id_ = std::this_thread::get_id();
  std::uint32_t seen = worker_.application_turns_.load(std::memory_order_relaxed);
  while (!stop_.load(std::memory_order_relaxed)) {
    drain_wakeup();
    const bool kicked = kicked_.exchange(false);
    const std::uint32_t turns = worker_.application_turns_.load(std::memory_order_relaxed);
    const bool application_works =
        turns != seen || worker_.application_sleepers_.load(std::memory_order_relaxed) != 0;
    seen = turns;
    const bool are_posts_overdue = worker_.delayed_posts_.are_overdue(clock_now());
    if (application_works && !kicked && !are_posts_overdue) {
      idle_poll_ = kPollMin;
      if (nap()) continue;
    }
    // What failed for want of memory is tried again with its next deadline.
    const int ret = guarded([&] {
      work_once();
      return 0;
    });
    if (ret != 0) poll_descriptors(event_fd_, -1, kWithoutMemory);
  }
  // A process may end without another call after its last post.
  (void)guarded([&] {
    const std::unique_lock guard(worker_.lock_, std::try_to_lock);
    if (guard) worker_.transmit(worker_.now());
    return 0;
  });
}

/// One turn of the loop, then sleep if it had nothing to do.
void ProgressThread::work_once() {
  Duration time = kLongestSleep;
  int port_fd = -1;
  {
    const std::unique_lock guard(worker_.lock_, std::try_to_lock);
    if (!guard) {
      sched_yield();
      return;
    }
    deep_sleep_ = false;
    const base::Instant now = worker_.now();
    const bool busy = worker_.turn_loop(now);
    port_fd = worker_.port_->wakeup_fd();  // which a turn may lose
    // A counter may have started something that moves the deadline; and it was not the application that did.
    if (!worker_.left_.empty()) worker_.start_left();
    if (busy || !worker_.port_->arm_wakeup()) {
      idle_poll_ = kPollMin;
      time = Duration{};
    } else {
      const base::Instant deadline = worker_.fep_->next_deadline();
      if (deadline < now + time) time = deadline - now;
      if (port_fd < 0) {
        time = std::min(time, idle_poll_);
        idle_poll_ = std::min(idle_poll_ * 2, std::max(kPollMax, patience()));
      }
      alarm_ = now + time;
      deep_sleep_ = true;
    }
  }
  if (time > Duration{}) {
    poll_descriptors(event_fd_, port_fd, time);
  } else if (worker_.lock_.is_contended()) {
    sched_yield();
  }
}

void ProgressThread::drain_wakeup() {
  std::uint64_t ignored;
  if (read(event_fd_, &ignored, sizeof ignored) < 0) {
    // The descriptor was not written to: a timeout.
  }
}

/// Sleeps while the application calls. False when it left the loop alone meanwhile: a post transmits, and takes nothing in.
bool ProgressThread::nap() {
  const std::uint32_t polls = worker_.application_polls_.load(std::memory_order_relaxed);
  poll_descriptors(event_fd_, -1, nap_time());
  return polls != worker_.application_polls_.load(std::memory_order_relaxed) ||
         worker_.application_sleepers_.load(std::memory_order_relaxed) != 0;
}

/// A thread that has put something into use, and finds this one watchful after that, was seen: otherwise the first store would have
/// come before it looked.
base::Duration ProgressThread::nap_time() {
  is_watchful_ = false;
  const Duration time = patience();
  is_watchful_ = time == kShortPatience;
  return time;
}

base::Duration ProgressThread::patience() const {
  // Nothing is put off while a thread sleeps in a call.
  const bool sleeps = worker_.application_sleepers_.load(std::memory_order_relaxed) != 0;
  if (!sleeps && (worker_.delayed_acks_.are_in_use() || worker_.delayed_posts_.are_in_use()))
    return kShortPatience;
  return worker_.has_progress_thread() ? kProgressPatience : kWatchdogPatience;
}

}  // namespace uet::provider
