#include "provider/wait.h"

#include <poll.h>
#include <rdma/fi_errno.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>
#include <memory>

#include "lib/base/cancellation.h"
#include "provider/provider.h"

namespace uet::provider {

WaitObject::~WaitObject() {
  if (is_forked_child()) std::construct_at(&sleepers_);
  if (fd_ >= 0) close(fd_);
}

int WaitObject::fd() {
  if (fd_ < 0) fd_ = eventfd(missed_, EFD_NONBLOCK | EFD_CLOEXEC);
  return fd_;
}

void WaitObject::arm() {
  if (is_forked_child()) return;
  const base::WithoutCancellation without_cancellation;
  std::uint64_t ignored;
  if (fd_ >= 0 && read(fd_, &ignored, sizeof ignored) < 0) {
    // Empty: nothing to drain.
  }
  missed_ = 0;
  armed_ = true;
}

void WaitObject::wake_sleepers() {
  if (is_forked_child()) return;
  while (!sleepers_.empty()) {
    sleepers_.front().wake();
    sleepers_.pop_front();
  }
}

void WaitObject::write_fd() {
  armed_ = false;
  if (is_forked_child()) return;
  if (fd_ < 0) missed_ = 1;
  const base::WithoutCancellation without_cancellation;
  const std::uint64_t one = 1;
  if (fd_ >= 0 && write(fd_, &one, sizeof one) < 0) {
    // Full, hence readable already.
  }
}

int WaitObject::control(int command, void* arg) {
  switch (command) {
    case FI_GETWAITOBJ:
      *static_cast<fi_wait_obj*>(arg) = kind_;
      return 0;
    case FI_GETWAIT:
      if (kind_ != FI_WAIT_FD && kind_ != FI_WAIT_POLLFD) return -FI_ENODATA;
      if (fd() < 0) return -FI_EMFILE;
      if (kind_ == FI_WAIT_FD) {
        *static_cast<int*>(arg) = fd_;
        return 0;
      } else {
        auto& out = *static_cast<fi_wait_pollfd*>(arg);
        const bool fits = out.nfds >= 1;
        if (fits) out.fd[0] = pollfd{.fd = fd_, .events = POLLIN, .revents = 0};
        out.nfds = 1;
        out.change_index = 1;
        return fits ? 0 : -FI_ETOOSMALL;
      }
    default:
      return -FI_ENOSYS;
  }
}

}  // namespace uet::provider
