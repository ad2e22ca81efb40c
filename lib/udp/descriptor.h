/// Descriptors that belong to this process alone, and the UDP ports that it closed.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "lib/net/fabric_address.h"

namespace uet::udp {

/// Owns a descriptor. In a child made by fork() it is /dev/null from the start, whichever thread called fork() and whatever the owner was
/// about: the child keeps no address taken and no connection open.
class Descriptor {
 public:
  Descriptor() = default;
  /// What `call` returns: a new descriptor, or -1 with errno. No fork() falls between the call and the note of what it returned; the call
  /// neither waits nor opens another Descriptor.
  static Descriptor open(const std::function<int()>& call);
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor();
  int fd() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }

  /// Notes that it is bound to this UDP port, for closed_for().
  void note_port(const net::FabricAddress& host, std::uint16_t port) const;

 private:
  explicit Descriptor(int fd) : fd_(fd) {}
  int fd_ = -1;
};

/// Has children let go of descriptors, from the first call on. Descriptor::open() calls it. A library that opens descriptors with locks held,
/// for which its own handler of fork() waits, calls it before it registers that handler.
void let_children_go();

/// How long a child of this process may have what its parent has closed: until it runs for the first time, or has called exec().
inline constexpr std::chrono::milliseconds kChildPatience{1000};

/// How long ago this process closed its last socket with this UDP port. Nothing where it has one, or had none lately.
std::optional<std::chrono::nanoseconds> closed_for(const net::FabricAddress& host,
                                                   std::uint16_t port);

/// What errno `error` means; where descriptors are missing, with what helps.
std::string error_text(int error);

}  // namespace uet::udp
