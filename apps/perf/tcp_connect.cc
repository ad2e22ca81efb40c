#include "apps/perf/tcp_connect.h"

#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>

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

Socket listener_at(const sockaddr* address, socklen_t length) {
  Socket s(socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!s.is_open()) return s;
  const int one = 1, zero = 0;
  setsockopt(s.fd(), SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  if (address->sa_family == AF_INET6)
    setsockopt(s.fd(), IPPROTO_IPV6, IPV6_V6ONLY, &zero, sizeof zero);
  if (bind(s.fd(), address, length) != 0 || ::listen(s.fd(), SOMAXCONN) != 0) return Socket(-1);
  return s;
}

/// Of both families where the host has IPv6.
Socket listener_everywhere(std::uint16_t port) {
  sockaddr_in6 v6{};
  v6.sin6_family = AF_INET6;
  v6.sin6_port = htons(port);
  Socket s = listener_at(reinterpret_cast<const sockaddr*>(&v6), sizeof v6);
  if (s.is_open() || errno == EADDRINUSE) return s;
  sockaddr_in v4{};
  v4.sin_family = AF_INET;
  v4.sin_port = htons(port);
  return listener_at(reinterpret_cast<const sockaddr*>(&v4), sizeof v4);
}

Socket connect_to(const addrinfo& where, std::chrono::milliseconds limit) {
  Socket s(socket(where.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!s.is_open() || connect(s.fd(), where.ai_addr, where.ai_addrlen) == 0) return s;
  if (errno != EINPROGRESS) return Socket(-1);
  pollfd wait{s.fd(), POLLOUT, 0};
  if (poll(&wait, 1, static_cast<int>(limit.count())) != 1) return Socket(-1);
  int error = 0;
  socklen_t length = sizeof error;
  if (getsockopt(s.fd(), SOL_SOCKET, SO_ERROR, &error, &length) != 0 || error != 0)
    return Socket(-1);
  return s;
}

}  // namespace

Socket::~Socket() {
  // Closing must not hide why something failed.
  const int error = errno;
  if (is_open()) close(fd_);
  errno = error;
}

Socket listen_tcp(const std::string& host, std::uint16_t port) {
  if (host.empty()) return listener_everywhere(port);
  const Addresses where = resolve(host, port);
  return listener_at(where->ai_addr, where->ai_addrlen);
}

std::uint16_t port_of_listener(const Socket& listener) {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  getsockname(listener.fd(), reinterpret_cast<sockaddr*>(&address), &length);
  return ntohs(address.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(address).sin6_port
                                             : reinterpret_cast<sockaddr_in&>(address).sin_port);
}

Socket accept_tcp(const Socket& listener, std::chrono::milliseconds limit) {
  pollfd wait{listener.fd(), POLLIN, 0};
  if (poll(&wait, 1, static_cast<int>(limit.count())) != 1) return Socket(-1);
  return Socket(accept4(listener.fd(), nullptr, nullptr, SOCK_CLOEXEC));
}

Socket connect_tcp(const std::string& host, std::uint16_t port, std::chrono::milliseconds limit) {
  const Addresses where = resolve(host, port);
  for (const addrinfo* at = where.get(); at != nullptr; at = at->ai_next)
    if (Socket s = connect_to(*at, limit); s.is_open()) return s;
  return Socket(-1);
}

}  // namespace uet::perf
