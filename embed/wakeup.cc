#include "embed/wakeup.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <cerrno>

namespace uet {

static_assert(std::atomic<std::uint32_t>::is_always_lock_free, "signal handlers call()");

Wakeup::~Wakeup() {
  if (epoll_fd_ >= 0) close(epoll_fd_);
  if (call_fd_ >= 0) close(call_fd_);
}

bool Wakeup::open() {
  epoll_fd_ = epoll_create1(EPOLL_CLOEXEC);
  call_fd_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (epoll_fd_ < 0 || call_fd_ < 0) return false;
  epoll_event event{.events = EPOLLIN, .data = {.fd = call_fd_}};
  return epoll_ctl(epoll_fd_, EPOLL_CTL_ADD, call_fd_, &event) == 0;
}

bool Wakeup::watch(int port_fd, const pollfd& desk) {
  // Either may have the number that the other one had.
  exchange(desk_fd_, desk.fd, desk.events);
  if (port_fd_ == desk.fd) port_fd_ = -1;
  return exchange(port_fd_, port_fd, POLLIN) && port_fd >= 0;
}

/// A descriptor that was closed is no longer watched, and its number may be another's: what is there is asked of the kernel.
bool Wakeup::exchange(int& watched, int fd, short events) {
  epoll_event event{.events = (events & POLLOUT) != 0 ? EPOLLOUT : EPOLLIN, .data = {.fd = fd}};
  if (watched != fd && watched >= 0) epoll_ctl(epoll_fd_, EPOLL_CTL_DEL, watched, &event);
  watched = fd;
  if (fd < 0) return true;
  if (epoll_ctl(epoll_fd_, EPOLL_CTL_MOD, fd, &event) == 0) return true;
  return errno == ENOENT && epoll_ctl(epoll_fd_, EPOLL_CTL_ADD, fd, &event) == 0;
}

bool Wakeup::sleep(base::Duration limit, int port_fd, const pollfd& desk) const {
  // Entries with a descriptor of -1 are skipped.
  std::array<pollfd, 3> fds = {{{.fd = port_fd, .events = POLLIN, .revents = 0},
                                desk,
                                {.fd = call_fd_, .events = POLLIN, .revents = 0}}};
  const timespec time{limit.ns() / 1'000'000'000, limit.ns() % 1'000'000'000};
  ppoll(fds.data(), fds.size(), &time, nullptr);
  return fds[1].revents != 0;
}

/// Counted last: take_call() finds written whatever it counts.
void Wakeup::call() {
  const int error = errno;
  const eventfd_t one = 1;
  (void)!write(call_fd_, &one, sizeof one);
  calls_.fetch_add(1, std::memory_order_release);
  errno = error;
}

bool Wakeup::take_call() {
  const std::uint32_t calls = calls_.load(std::memory_order_acquire);
  if (calls == taken_) [[likely]]
    return false;
  taken_ = calls;
  eventfd_t written = 0;
  if (read(call_fd_, &written, sizeof written) == sizeof written)
    written_ += static_cast<std::uint32_t>(written);
  return true;
}

}  // namespace uet
