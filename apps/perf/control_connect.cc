/// How the two sides of a control connection find each other.

#include <fmt/core.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <thread>

#include "apps/perf/control_channel.h"

namespace uet::perf {
namespace {

struct AddrinfoDeleter {
  void operator()(addrinfo* a) const { freeaddrinfo(a); }
};
using Addresses = std::unique_ptr<addrinfo, AddrinfoDeleter>;

Addresses resolve(const std::string& host, std::uint16_t port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int rc = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (rc != 0) throw ControlLost("control address " + host + ": " + gai_strerror(rc));
  return Addresses(found);
}

/// Closes what was not released.
class Socket {
 public:
  explicit Socket(int fd) : fd_(fd) {}
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  ~Socket() {
    if (fd_ >= 0) close(fd_);
  }
  int fd() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

/// A listening socket, or -1 with errno.
int listener_at(const sockaddr* address, socklen_t length) {
  Socket s(socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (s.fd() < 0) return -1;
  const int one = 1, zero = 0;
  setsockopt(s.fd(), SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  if (address->sa_family == AF_INET6)
    setsockopt(s.fd(), IPPROTO_IPV6, IPV6_V6ONLY, &zero, sizeof zero);
  if (bind(s.fd(), address, length) != 0 || ::listen(s.fd(), 1) != 0) return -1;
  return s.release();
}

/// Of both families where the host has IPv6.
int listener_everywhere(std::uint16_t port) {
  sockaddr_in6 v6{};
  v6.sin6_family = AF_INET6;
  v6.sin6_port = htons(port);
  const int fd = listener_at(reinterpret_cast<const sockaddr*>(&v6), sizeof v6);
  if (fd >= 0 || errno == EADDRINUSE) return fd;
  sockaddr_in v4{};
  v4.sin_family = AF_INET;
  v4.sin_port = htons(port);
  return listener_at(reinterpret_cast<const sockaddr*>(&v4), sizeof v4);
}

int open_listener(const std::string& host, std::uint16_t port) {
  if (host.empty()) return listener_everywhere(port);
  const Addresses where = resolve(host, port);
  return listener_at(where->ai_addr, where->ai_addrlen);
}

/// A connected socket, or -1: refused, unreachable, or not answered within `limit`.
int connect_to(const addrinfo& where, std::chrono::milliseconds limit) {
  Socket s(socket(where.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (s.fd() < 0) return -1;
  if (connect(s.fd(), where.ai_addr, where.ai_addrlen) != 0) {
    if (errno != EINPROGRESS) return -1;
    pollfd wait{s.fd(), POLLOUT, 0};
    if (poll(&wait, 1, static_cast<int>(limit.count())) != 1) return -1;
    int error = 0;
    socklen_t length = sizeof error;
    if (getsockopt(s.fd(), SOL_SOCKET, SO_ERROR, &error, &length) != 0 || error != 0) return -1;
  }
  return s.release();
}

}  // namespace

std::string ControlChannel::peer_name() const {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  char host[NI_MAXHOST] = "";
  const auto* name = reinterpret_cast<const sockaddr*>(&address);
  if (getpeername(fd_, reinterpret_cast<sockaddr*>(&address), &length) != 0 ||
      getnameinfo(name, length, host, sizeof host, nullptr, 0, NI_NUMERICHOST) != 0)
    return "the other side";
  return host;
}

ControlChannel ControlChannel::listen(const std::string& host, std::uint16_t port,
                                      Patience& patience) {
  const Socket listener(open_listener(host, port));
  if (listener.fd() < 0)
    throw ControlLost(
        fmt::format("cannot listen on control port {}: {}; choose another one with --control-port "
                    "on both sides",
                    port, std::strerror(errno)));
  patience.progressed();
  int fd = -1;
  while (fd < 0 && patience.left().count() > 0) {
    pollfd wait{listener.fd(), POLLIN, 0};
    if (poll(&wait, 1,
             static_cast<int>(std::min<std::int64_t>(patience.left().count() + 1, 1000))) == 1)
      fd = accept4(listener.fd(), nullptr, nullptr, SOCK_CLOEXEC);
  }
  if (fd < 0)
    throw ControlLost(fmt::format(
        "no client connected within {:g} s (--timeout); start it with --peer and an address of "
        "this host",
        static_cast<double>(patience.limit().count()) / 1000));
  ControlChannel control(fd, patience);
  control.greet();
  return control;
}

ControlChannel ControlChannel::connect(const std::string& host, std::uint16_t port,
                                       Patience& patience) {
  const Addresses where = resolve(host, port);
  patience.progressed();
  for (;;) {
    for (const addrinfo* at = where.get(); at != nullptr; at = at->ai_next)
      if (const int fd = connect_to(*at, patience.left()); fd >= 0) {
        ControlChannel control(fd, patience);
        control.greet();
        return control;
      }
    if (patience.left().count() == 0)
      throw ControlLost(fmt::format(
          "no server at {} control port {}; start `uet-perf fabric` without --peer there first",
          host, port));
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // the server may still be starting
  }
}

}  // namespace uet::perf
