#include "apps/perf/control_channel.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <thread>
#include <utility>

namespace uet::perf {
namespace {

constexpr std::size_t kBlobMax = 1 << 20;

struct AddrinfoDeleter {
  void operator()(addrinfo* a) const { freeaddrinfo(a); }
};
using Addresses = std::unique_ptr<addrinfo, AddrinfoDeleter>;

Addresses resolve(const std::string& host, std::uint16_t port, bool passive) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = passive ? AI_PASSIVE : 0;
  addrinfo* found = nullptr;
  const int rc = getaddrinfo(host.empty() ? nullptr : host.c_str(), std::to_string(port).c_str(),
                             &hints, &found);
  if (rc != 0) throw std::runtime_error("control address " + host + ": " + gai_strerror(rc));
  return Addresses(found);
}

std::string errno_text(const std::string& what) {
  return what + ": " + std::strerror(errno);
}

}  // namespace

ControlChannel::ControlChannel(int fd, unsigned timeout_s) : fd_(fd) {
  const int one = 1;
  setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  const timeval limit{static_cast<time_t>(timeout_s), 0};
  setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
}

ControlChannel::ControlChannel(ControlChannel&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)) {}

ControlChannel::~ControlChannel() {
  if (fd_ >= 0) close(fd_);
}

ControlChannel ControlChannel::listen(const std::string& host, std::uint16_t port,
                                      unsigned timeout_s) {
  const Addresses where = resolve(host, port, true);
  const int listener = socket(where->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (listener < 0) throw std::runtime_error(errno_text("control socket"));
  const int one = 1;
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  if (bind(listener, where->ai_addr, where->ai_addrlen) != 0 || ::listen(listener, 1) != 0) {
    const std::string text = errno_text("cannot listen on control port " + std::to_string(port));
    close(listener);
    throw std::runtime_error(text + "; choose another one with --control-port on both sides");
  }
  pollfd wait{listener, POLLIN, 0};
  const int ready = poll(&wait, 1, static_cast<int>(timeout_s) * 1000);
  const int fd = ready == 1 ? accept4(listener, nullptr, nullptr, SOCK_CLOEXEC) : -1;
  close(listener);
  if (fd < 0)
    throw std::runtime_error(
        "no client connected within the timeout; start it with the address of this host");
  return ControlChannel(fd, timeout_s);
}

ControlChannel ControlChannel::connect(const std::string& host, std::uint16_t port,
                                       unsigned timeout_s) {
  const Addresses where = resolve(host, port, false);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(timeout_s);
  do {
    const int fd = socket(where->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) throw std::runtime_error(errno_text("control socket"));
    if (::connect(fd, where->ai_addr, where->ai_addrlen) == 0) return ControlChannel(fd, timeout_s);
    close(fd);
    std::this_thread::sleep_for(std::chrono::milliseconds(50));  // the server may still be starting
  } while (std::chrono::steady_clock::now() < deadline);
  throw std::runtime_error("no server at " + host + " control port " + std::to_string(port) +
                           "; start `uet-perf` without --peer there first");
}

void ControlChannel::read_exactly(void* to, std::size_t n) {
  auto* p = static_cast<std::uint8_t*>(to);
  while (n > 0) {
    const ssize_t got = recv(fd_, p, n, 0);
    if (got == 0) throw std::runtime_error("the other side closed the control connection");
    if (got < 0) {
      if (errno == EINTR) continue;
      throw std::runtime_error(errno_text("control connection"));
    }
    p += got;
    n -= static_cast<std::size_t>(got);
  }
}

void ControlChannel::write_exactly(const void* from, std::size_t n) {
  const auto* p = static_cast<const std::uint8_t*>(from);
  while (n > 0) {
    const ssize_t put = ::send(fd_, p, n, MSG_NOSIGNAL);
    if (put < 0) {
      if (errno == EINTR) continue;
      throw std::runtime_error(errno_text("control connection"));
    }
    p += put;
    n -= static_cast<std::size_t>(put);
  }
}

void ControlChannel::send(std::span<const std::uint8_t> blob) {
  const std::uint32_t length = htonl(static_cast<std::uint32_t>(blob.size()));
  write_exactly(&length, sizeof length);
  write_exactly(blob.data(), blob.size());
}

std::vector<std::uint8_t> ControlChannel::receive() {
  std::uint32_t length = 0;
  read_exactly(&length, sizeof length);
  length = ntohl(length);
  if (length > kBlobMax)
    throw std::runtime_error("the control connection carries something that is not uet-perf");
  std::vector<std::uint8_t> blob(length);
  read_exactly(blob.data(), blob.size());
  return blob;
}

std::vector<std::uint8_t> ControlChannel::exchange(std::span<const std::uint8_t> mine) {
  send(mine);
  return receive();
}

bool ControlChannel::readable() const {
  pollfd wait{fd_, POLLIN, 0};
  return poll(&wait, 1, 0) == 1;
}

}  // namespace uet::perf
