/// From a UET packet to an Ethernet frame and back: Ethernet, 802.1Q, IPv4/IPv6, UDP or entropy
/// header. Pure functions of bytes and configuration; no state changes here. [WIRE 2]
#pragma once

#include <array>
#include <optional>
#include <span>

#include "lib/base/drop_reason.h"
#include "lib/net/fabric_address.h"
#include "lib/net/frame_device.h"
#include "lib/net/port.h"
#include "lib/wire/net_headers.h"

namespace uet::net {

/// What both directions of one port have in common.
struct FrameFormat {
  MacAddress mac{};
  FabricAddress address;
  std::uint16_t vlan = 0;  ///< VID; 0: untagged
  bool udp_encapsulation = true;
  std::uint16_t udp_port = wire::kUdpPort;
  std::uint8_t ip_protocol = wire::kNativeProtocol;  ///< with native IP
  std::uint8_t ttl = 64;
  /// DSCPs that mark a packet cut short by a switch: its lengths may be stale. [WIRE 2.7]
  std::array<std::uint8_t, 2> trimmed_dscp{26, 28};
};

enum class FrameKind : std::uint8_t { kUet, kArp, kIcmp };

/// A frame that is for us. `offset` and `length` delimit what follows the headers: the UET packet,
/// the ARP message, or the ICMP message.
struct ParsedFrame {
  FrameKind kind{};
  bool to_group = false;  ///< Ethernet broadcast or multicast
  MacAddress source_mac{};
  FabricAddress source;       ///< unspecified for ARP
  FabricAddress destination;  ///< ours, or a multicast group for Neighbor Discovery
  TosByte tos;
  std::uint8_t hop_limit = 0;
  std::uint16_t entropy = 0;
  std::uint16_t entropy_reserved = 0;  ///< the bits behind it, with native IP
  std::uint32_t offset = 0;
  std::uint32_t length = 0;
};

/// Looks at everything up to the UET packet and says why a frame is refused. `parsed` must be newly constructed; of a frame that is
/// refused its content means nothing.
std::optional<base::DropReason> parse_frame(const FrameFormat& format,
                                            std::span<const std::uint8_t> frame,
                                            ParsedFrame& parsed);

/// Bytes that build_frame() puts in front of a UET packet, and the share of them that counts as IP
/// packet.
std::size_t header_bytes(const FrameFormat& format);
std::size_t ip_header_bytes(const FrameFormat& format);

/// Prepends all headers. The packet needs header_bytes() of headroom and must fit 16-bit IP
/// lengths.
void build_frame(const FrameFormat& format, const MacAddress& next_hop,
                 const FabricAddress& destination, TosByte tos, std::uint16_t entropy,
                 Packet& packet);

/// Prepends only Ethernet and tag (for ARP).
void prepend_ethernet(const FrameFormat& format, const MacAddress& to, wire::EtherType type,
                      Packet& packet);
/// Prepends an IP header for `protocol`, without Ethernet (for ICMP).
void prepend_ip(const FrameFormat& format, const FabricAddress& destination,
                wire::IpProtocol protocol, std::uint8_t ttl, TosByte tos, Packet& packet);

}  // namespace uet::net
