/// ARP, Neighbor Discovery and ICMP messages as bytes. Knows formats, no state.
#pragma once

#include <optional>
#include <span>

#include "lib/base/drop_reason.h"
#include "lib/base/result.h"
#include "lib/net/fabric_address.h"
#include "lib/net/frame_device.h"
#include "lib/wire/field.h"

namespace uet::net {

/// ARP for IPv4 over Ethernet. [RFC 826]
struct ArpMessage {
  static constexpr std::size_t kSize = 28;
  static constexpr std::uint16_t kRequest = 1;
  static constexpr std::uint16_t kReply = 2;

  std::uint16_t hardware_type = 1;
  std::uint16_t protocol_type = 0x0800;
  std::uint8_t hardware_size = 6;
  std::uint8_t protocol_size = 4;
  std::uint16_t operation = kRequest;
  MacAddress sender_mac{};
  std::uint32_t sender_ip = 0;
  MacAddress target_mac{};
  std::uint32_t target_ip = 0;

  static constexpr auto fields() {
    using H = ArpMessage;
    using wire::field;
    return list_of(field("hardware_type", &H::hardware_type, 16, "1: Ethernet"),
                   field("protocol_type", &H::protocol_type, 16, "0x0800: IPv4"),
                   field("hardware_size", &H::hardware_size, 8, "6"),
                   field("protocol_size", &H::protocol_size, 8, "4"),
                   field("operation", &H::operation, 16, "1 request, 2 reply"),
                   field("sender_mac", &H::sender_mac, 48, "who asks or answers"),
                   field("sender_ip", &H::sender_ip, 32, "its address"),
                   field("target_mac", &H::target_mac, 48, "0 in a request"),
                   field("target_ip", &H::target_ip, 32, "address in question"));
  }
};

/// Front of every ICMP and ICMPv6 message, with the word that echo calls identifier and sequence.
struct IcmpHeader {
  static constexpr std::size_t kSize = 8;
  static constexpr std::uint8_t kEchoRequestV4 = 8;
  static constexpr std::uint8_t kEchoReplyV4 = 0;
  static constexpr std::uint8_t kEchoRequestV6 = 128;
  static constexpr std::uint8_t kEchoReplyV6 = 129;
  static constexpr std::uint8_t kNeighborSolicitation = 135;
  static constexpr std::uint8_t kNeighborAdvertisement = 136;
  static constexpr std::size_t kChecksumOffset = 2;

  std::uint8_t type = 0;
  std::uint8_t code = 0;
  std::uint16_t checksum = 0;
  std::uint32_t rest = 0;

  static constexpr auto fields() {
    using H = IcmpHeader;
    using wire::field;
    return list_of(field("type", &H::type, 8, "kind of message"), field("code", &H::code, 8, "0"),
                   field("checksum", &H::checksum, 16, "over the whole message"),
                   field("rest", &H::rest, 32, "by type: identifier and sequence, flags"));
  }
};

/// A Neighbor Solicitation or Advertisement. [RFC 4861]
struct NeighborMessage {
  bool is_advertisement = false;
  bool is_solicited = false;  ///< advertisement: answers a solicitation
  bool overrides = false;  ///< advertisement: its MAC takes the place of another one that is known
  FabricAddress target;
  std::optional<MacAddress>
      mac;  ///< source (solicitation) or target (advertisement) link-layer address
};

/// Bytes of the ICMPv6 message that emit_neighbor_message() writes: header, target, one link-layer
/// option.
inline constexpr std::size_t kNeighborMessageBytes = IcmpHeader::kSize + 16 + 8;

/// Refuses everything but IPv4 over Ethernet with a unicast sender.
base::Result<ArpMessage, base::DropReason> parse_arp(std::span<const std::uint8_t> bytes);

/// `icmp` starts at the ICMPv6 header, whose checksum has been verified.
base::Result<NeighborMessage, base::DropReason> parse_neighbor_message(
    std::span<const std::uint8_t> icmp);
/// Writes kNeighborMessageBytes, checksum included. `message.mac` must be there.
void emit_neighbor_message(const NeighborMessage& message, const FabricAddress& source,
                           const FabricAddress& destination, std::uint8_t* out);

/// The checksum of an ICMPv6 message; 0 when the message contains its own and it is right.
std::uint16_t icmp6_checksum(const FabricAddress& source, const FabricAddress& destination,
                             std::span<const std::uint8_t> icmp);

/// Turns a verified echo request into its reply, in place.
void make_echo_reply(std::span<std::uint8_t> icmp, bool is_v4);

/// ff02::1:ffXX:XXXX of a unicast IPv6 address, and the Ethernet address of any IPv6 multicast
/// address.
FabricAddress solicited_node_address(const FabricAddress& unicast);
MacAddress multicast_mac(const FabricAddress& v6_multicast);

constexpr bool is_multicast(const MacAddress& mac) {
  return (mac[0] & 1) != 0;
}
/// IPv4 224/4 and above (broadcast included), IPv6 ff00::/8.
constexpr bool is_multicast(const FabricAddress& a) {
  return a.is_v4() ? a.bytes()[12] >= 224 : a.bytes()[0] == 0xff;
}
/// What a host may have as its own.
constexpr bool is_unicast(const FabricAddress& a) {
  return !a.is_unspecified() && !is_multicast(a) && !(a.is_v4() && a.v4() == 0);
}

}  // namespace uet::net
