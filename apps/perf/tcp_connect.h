/// TCP sockets of the kernel: listening and connecting within a time limit.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>

namespace uet::perf {

/// Closes what was not released.
class Socket {
 public:
  explicit Socket(int fd) : fd_(fd) {}
  Socket(Socket&& other) noexcept : fd_(other.release()) {}
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  ~Socket();

  int fd() const { return fd_; }
  bool is_open() const { return fd_ >= 0; }
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

/// On every local address of both families when `host` is empty; port 0 takes a free one. Not open, with errno, when it
/// cannot. Throws ControlLost when `host` cannot be resolved.
Socket listen_tcp(const std::string& host, std::uint16_t port);
std::uint16_t port_of_listener(const Socket& listener);
/// Not open when nothing came within `limit`.
Socket accept_tcp(const Socket& listener, std::chrono::milliseconds limit);
/// Tries each address of `host` once. Not open when it is refused, unreachable, or does not answer within `limit`. Throws
/// ControlLost when `host` cannot be resolved.
Socket connect_tcp(const std::string& host, std::uint16_t port, std::chrono::milliseconds limit);

}  // namespace uet::perf
