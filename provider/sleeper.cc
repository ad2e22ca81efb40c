#include "provider/sleeper.h"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <utility>

#include "lib/base/cancellation.h"
#include "provider/thread_memory.h"

namespace uet::provider {
namespace {

/// Where the process has no descriptor left for a wake-up, the condition is looked at this often.
constexpr base::Duration kWithoutDescriptor = base::Duration::from_ms(1);

int open_wakeup() {
  return eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
}

constexpr int kNone = -1;
constexpr int kClosed = -2;  ///< the thread is ending

// "initial-exec" is for all of these: their first use in a thread allocates nothing, which could end a process that is short of memory.

/// A thread sleeps in one call at a time, and often: its descriptor is opened once. The number has no destructor: exit handlers and
/// the destructors of other objects of the thread may sleep when the descriptor is closed.
[[gnu::tls_model("initial-exec")]] constinit thread_local int thread_wakeup = kNone;

struct CloseAtThreadEnd {
  ~CloseAtThreadEnd() {
    if (thread_wakeup >= 0) close(thread_wakeup);
    thread_wakeup = kClosed;
  }
};

int wakeup_of_thread() {
  if (thread_wakeup == kNone) {
    if (!has_memory_for_thread_data()) return kNone;
    [[gnu::tls_model("initial-exec")]] thread_local const CloseAtThreadEnd close_at_thread_end;
    thread_wakeup = open_wakeup();
  }
  return thread_wakeup;
}

/// Of a thread in a call that waits: whether it can be cancelled there.
[[gnu::tls_model("initial-exec")]] constinit thread_local int cancel_state_asleep =
    PTHREAD_CANCEL_DISABLE;

}  // namespace

CancelledAsleep::CancelledAsleep(int cancel_state)
    : before_(std::exchange(cancel_state_asleep, cancel_state)) {}

CancelledAsleep::~CancelledAsleep() {
  cancel_state_asleep = before_;
}

Sleeper::Sleeper(base::Instant alarm, bool watches)
    : alarm_(alarm),
      is_of_thread_(thread_wakeup != kClosed),
      fd_(is_of_thread_ ? wakeup_of_thread() : open_wakeup()),
      watches_(watches) {}

Sleeper::~Sleeper() {
  std::uint64_t ignored;
  if (woken_ && fd_ >= 0 && read(fd_, &ignored, sizeof ignored) < 0) {
    // Empty already.
  }
  if (!is_of_thread_ && fd_ >= 0) close(fd_);
}

void Sleeper::wake() {
  if (woken_) return;
  woken_ = true;
  const base::WithoutCancellation without_cancellation;
  const std::uint64_t one = 1;
  if (fd_ >= 0 && write(fd_, &one, sizeof one) < 0) {
    // Full, hence readable already.
  }
}

bool Sleeper::sleep(int other_fd, base::Duration at_most) {
  if (fd_ < 0) at_most = std::min(at_most, kWithoutDescriptor);
  const base::CancelState as_wanted(cancel_state_asleep);
  return poll_descriptors(fd_, other_fd, at_most);
}

bool poll_descriptors(int first, int second, base::Duration at_most) {
  const std::int64_t ns = std::max<std::int64_t>(at_most.ns(), 0);
  const timespec limit{ns / 1'000'000'000, ns % 1'000'000'000};
  pollfd fds[2] = {{.fd = first, .events = POLLIN, .revents = 0},
                   {.fd = second, .events = POLLIN, .revents = 0}};
  return ppoll(fds, 2, &limit, nullptr) >= 0 || errno != EINTR;
}

}  // namespace uet::provider
