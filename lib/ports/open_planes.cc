#include "lib/ports/open_planes.h"

#include <sys/epoll.h>
#include <unistd.h>

#include <utility>

#include "lib/net/plane_port.h"
#include "lib/net/port_wrapper.h"

namespace uet::ports {

namespace {

/// A descriptor that is readable when one of many is. -1 when there are none.
class AnyOf {
 public:
  explicit AnyOf(const std::vector<int>& fds) {
    if (fds.empty()) return;
    fd_ = epoll_create1(EPOLL_CLOEXEC);
    for (const int fd : fds) {
      epoll_event event{};
      event.events = EPOLLIN;
      if (fd_ < 0 || epoll_ctl(fd_, EPOLL_CTL_ADD, fd, &event) == 0) continue;
      close(fd_);
      fd_ = -1;
    }
  }
  ~AnyOf() {
    if (fd_ >= 0) close(fd_);
  }
  AnyOf(const AnyOf&) = delete;
  AnyOf& operator=(const AnyOf&) = delete;
  int fd() const { return fd_; }

 private:
  int fd_ = -1;
};

/// Planes that a thread can sleep on, until one of them loses its descriptor (a device that was reset).
class SleepablePlanes final : public net::PortWrapper {
 public:
  SleepablePlanes(std::unique_ptr<net::PlanePort> planes, std::vector<int> fds)
      : PortWrapper(std::move(planes)), fds_(std::move(fds)), wakeup_(fds_) {}
  int wakeup_fd() const override {
    return static_cast<const net::PlanePort&>(inner()).wakeup_fds() == fds_ ? wakeup_.fd() : -1;
  }

 private:
  const std::vector<int> fds_;
  AnyOf wakeup_;
};

}  // namespace

std::unique_ptr<net::Port> open_planes(const net::PortRequest& request,
                                       const std::vector<std::string>& planes,
                                       net::OpenPortFunction open, base::Trace& trace,
                                       std::string& error) {
  std::vector<std::unique_ptr<net::Port>> ports;
  std::string remarks;
  net::PortRequest each = request;
  each.planes = static_cast<unsigned>(planes.size());
  for (each.plane = 0; each.plane < each.planes; ++each.plane) {
    each.spec = planes[each.plane];
    auto port = open(each, trace, error);
    if (port == nullptr) return nullptr;
    if (!error.empty()) remarks += (remarks.empty() ? "" : "; ") + error;
    each.address = port->facts().address;
    ports.push_back(std::move(port));
  }
  error = remarks;
  auto port = std::make_unique<net::PlanePort>(std::move(ports), trace);
  const std::vector<int> fds = port->wakeup_fds();
  return std::make_unique<SleepablePlanes>(std::move(port), fds);
}

}  // namespace uet::ports
