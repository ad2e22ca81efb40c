/// A UDP socket that sends UET packets with the right CRC from any address that it can bind, its own or another's.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lib/net/fabric_address.h"

namespace uet::hostile {

using Packet = std::vector<std::uint8_t>;  ///< from the first UET byte on, without CRC

inline constexpr std::uint16_t kUetPort = 4793;

class EnemySocket {
 public:
  /// Bound to the UET port it hears what is answered; a forger of an address in use takes any other port and hears nothing.
  EnemySocket(net::FabricAddress own, std::uint16_t port);
  ~EnemySocket();
  EnemySocket(EnemySocket&& other) noexcept;
  EnemySocket& operator=(EnemySocket&&) = delete;

  /// Waits while the socket is full. What the victim has no room for is lost.
  void send(net::FabricAddress to, std::span<const std::uint8_t> uet);
  /// What has arrived, or nothing within `timeout_ms`.
  std::optional<Packet> receive(int timeout_ms);

  std::uint64_t packets_in() const { return packets_in_; }
  /// With IPv4 and UDP headers and CRC.
  std::uint64_t bytes_in() const { return bytes_in_; }
  std::uint64_t bytes_out() const { return bytes_out_; }

 private:
  net::FabricAddress own_;
  int fd_ = -1;
  std::uint16_t port_ = 0;  ///< the entropy value
  std::uint64_t packets_in_ = 0, bytes_in_ = 0, bytes_out_ = 0;
};

}  // namespace uet::hostile
