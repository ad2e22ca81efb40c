/// Puts packets of one burst together into as few messages to the kernel as possible. [decision 126]
#pragma once

#include <netinet/udp.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <array>
#include <span>

#include "lib/net/port.h"
#include "lib/udp/socket_address.h"

namespace uet::udp {

/// Messages for one sendmmsg(). A message is one packet, or a run: packets to one destination with one TOS byte, all as long as
/// the first but the last, which may be shorter. The kernel cuts a run up at the end of the way, or never.
class SendBatch {
 public:
  static constexpr std::size_t kPackets = 64;
  /// UDP_MAX_SEGMENTS of the kernels that have had the fewest.
  static constexpr std::size_t kRunPackets = 64;
  /// What one IP packet carries behind the larger of its headers.
  static constexpr std::size_t kRunBytes = 65535 - 40 - 8;

  SendBatch(bool is_v4, std::uint16_t udp_port, unsigned scope);

  /// Of link-local destinations from here on.
  void set_scope(unsigned scope) { scope_ = scope; }

  void clear() { messages_ = packets_ = vectors_ = 0; }
  /// Takes the next packet of one sending socket; in a message of its own unless `may_merge`. The packet must stay as it is
  /// until the batch was sent.
  void add(const net::TxPacket& tx, bool may_merge);

  std::size_t messages() const { return messages_; }
  mmsghdr* at(std::size_t message) { return &headers_[message]; }
  std::size_t packets_of(std::size_t message) const { return runs_[message].packets; }

 private:
  struct Run {
    std::size_t packets = 0;
    std::size_t packet_bytes = 0;  ///< of all but the last
    std::size_t bytes = 0;
    bool is_closed = false;  ///< the last is shorter
    net::FabricAddress destination;
    net::TosByte tos;
  };
  /// Room for the TOS byte and the length of a run's packets.
  struct ControlBytes {
    alignas(cmsghdr)
        std::array<std::uint8_t, CMSG_SPACE(sizeof(int)) + CMSG_SPACE(sizeof(std::uint16_t))> bytes;
  };
  /// Headers, borrowed payload, trailer.
  static constexpr std::size_t kVectorsOfPacket = 3;

  bool fits(const Run& run, const net::TxPacket& tx, std::size_t bytes) const;
  void begin(const net::TxPacket& tx, std::size_t bytes);
  void add_vector(std::span<const std::uint8_t> bytes);
  void add_run_length(msghdr& header, const Run& run);

  bool is_v4_;
  std::uint16_t udp_port_;
  unsigned scope_;
  std::size_t messages_ = 0, packets_ = 0, vectors_ = 0;
  std::array<Run, kPackets> runs_;
  std::array<mmsghdr, kPackets> headers_;
  std::array<SocketAddress, kPackets> names_;
  std::array<ControlBytes, kPackets> control_{};  // so that no padding is uninitialised
  std::array<iovec, kVectorsOfPacket * kPackets> iovecs_;
};

}  // namespace uet::udp
