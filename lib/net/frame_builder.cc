#include <algorithm>

#include "lib/net/checksum.h"
#include "lib/net/frame_format.h"
#include "lib/wire/codec.h"

namespace uet::net {

using wire::EtherType;
using wire::IpProtocol;

namespace {

std::array<std::uint8_t, 4> v4_bytes(const FabricAddress& a) {
  std::array<std::uint8_t, 4> b;
  std::copy_n(a.bytes().begin() + 12, 4, b.begin());
  return b;
}

void prepend_ipv4(const FrameFormat& format, const FabricAddress& destination, IpProtocol protocol,
                  std::uint8_t ttl, TosByte tos, Packet& packet) {
  const std::size_t total = packet.size() + wire::Ipv4Header::kSize;
  std::uint8_t* const at = packet.prepend(wire::Ipv4Header::kSize);
  wire::Ipv4Header ip;
  ip.dscp = tos.dscp();
  ip.ecn = tos.ecn();
  ip.total_length = static_cast<std::uint16_t>(total);
  ip.ttl = ttl;
  ip.protocol = protocol;
  ip.src = v4_bytes(format.address);
  ip.dst = v4_bytes(destination);
  wire::emit(ip, at);
  constexpr std::size_t kChecksumOffset = 10;
  base::store_be(at + kChecksumOffset, checksum_fold(checksum_add({at, wire::Ipv4Header::kSize})));
}

void prepend_ipv6(const FrameFormat& format, const FabricAddress& destination, IpProtocol protocol,
                  std::uint8_t ttl, TosByte tos, Packet& packet) {
  wire::Ipv6Header ip;
  ip.dscp = tos.dscp();
  ip.ecn = tos.ecn();
  ip.payload_length = static_cast<std::uint16_t>(packet.size());
  ip.next_header = protocol;
  ip.hop_limit = ttl;
  ip.src = format.address.bytes();
  ip.dst = destination.bytes();
  wire::emit(ip, packet.prepend(wire::Ipv6Header::kSize));
}

}  // namespace

std::size_t ip_header_bytes(const FrameFormat& format) {
  return (format.address.is_v4() ? wire::Ipv4Header::kSize : wire::Ipv6Header::kSize) +
         (format.udp_encapsulation ? wire::UdpHeader::kSize : wire::EntropyHeader::kSize);
}

std::size_t header_bytes(const FrameFormat& format) {
  return ip_header_bytes(format) + wire::EthernetHeader::kSize +
         (format.vlan != 0 ? wire::VlanTag::kSize : 0);
}

void prepend_ethernet(const FrameFormat& format, const MacAddress& to, EtherType type,
                      Packet& packet) {
  wire::EthernetHeader eth{.dst = to, .src = format.mac, .type = type};
  if (format.vlan != 0) {
    wire::emit(wire::VlanTag{.vid = format.vlan, .type = type},
               packet.prepend(wire::VlanTag::kSize));
    eth.type = EtherType::kVlan;
  }
  wire::emit(eth, packet.prepend(wire::EthernetHeader::kSize));
}

void prepend_ip(const FrameFormat& format, const FabricAddress& destination, IpProtocol protocol,
                std::uint8_t ttl, TosByte tos, Packet& packet) {
  if (format.address.is_v4())
    prepend_ipv4(format, destination, protocol, ttl, tos, packet);
  else
    prepend_ipv6(format, destination, protocol, ttl, tos, packet);
}

void build_frame(const FrameFormat& format, const MacAddress& next_hop,
                 const FabricAddress& destination, TosByte tos, std::uint16_t entropy,
                 Packet& packet) {
  auto protocol = static_cast<IpProtocol>(format.ip_protocol);
  if (format.udp_encapsulation) {
    // No UDP checksum, for IPv6 neither. [WIRE 2.4]
    const std::size_t length = packet.size() + wire::UdpHeader::kSize;
    wire::emit(wire::UdpHeader{.src_port = entropy,
                               .dst_port = destination.udp_port_or(format.udp_port),
                               .length = static_cast<std::uint16_t>(length)},
               packet.prepend(wire::UdpHeader::kSize));
    protocol = IpProtocol::kUdp;
  } else {
    wire::emit(wire::EntropyHeader{.entropy = entropy}, packet.prepend(wire::EntropyHeader::kSize));
  }
  prepend_ip(format, destination, protocol, format.ttl, tos, packet);
  prepend_ethernet(format, next_hop, format.address.is_v4() ? EtherType::kIpv4 : EtherType::kIpv6,
                   packet);
}

}  // namespace uet::net
