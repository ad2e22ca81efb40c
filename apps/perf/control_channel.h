/// A TCP connection beside the measured fabric: two benchmark processes exchange addresses and keep
/// in step over it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace uet::perf {

/// Blocking, with a deadline for every step. Throws std::runtime_error with a sentence that says
/// what to do.
class ControlChannel {
 public:
  /// Waits for one peer on `host`:`port` (an empty host is every local address).
  static ControlChannel listen(const std::string& host, std::uint16_t port, unsigned timeout_s);
  /// Connects to `host`:`port`; tries again until the timeout, because the server may still be
  /// starting.
  static ControlChannel connect(const std::string& host, std::uint16_t port, unsigned timeout_s);

  ControlChannel(ControlChannel&& other) noexcept;
  ControlChannel(const ControlChannel&) = delete;
  ControlChannel& operator=(const ControlChannel&) = delete;
  ~ControlChannel();

  /// One blob each way; both sides call it at the same point.
  std::vector<std::uint8_t> exchange(std::span<const std::uint8_t> mine);
  void send(std::span<const std::uint8_t> blob);
  std::vector<std::uint8_t> receive();
  /// True when receive() would not block: something arrived, or the peer is gone.
  bool readable() const;

 private:
  explicit ControlChannel(int fd, unsigned timeout_s);
  void read_exactly(void* to, std::size_t n);
  void write_exactly(const void* from, std::size_t n);
  int fd_;
};

}  // namespace uet::perf
