#include <algorithm>

#include "lib/base/byte_cursor.h"
#include "lib/net/checksum.h"
#include "lib/net/frame_format.h"
#include "lib/net/link_messages.h"
#include "lib/wire/codec.h"

namespace uet::net {

using base::DropReason;
using wire::EtherType;
using wire::IpProtocol;

namespace {

using Refusal = std::optional<DropReason>;
constexpr Refusal kAccepted = std::nullopt;
constexpr int kMaxTags = 2;

struct Layers {
  const FrameFormat& format;
  std::span<const std::uint8_t> frame;
  ParsedFrame& out;
  std::size_t at = 0;   ///< bytes read so far
  std::size_t end = 0;  ///< where the IP packet ends; behind it is padding
  EtherType type{};
  IpProtocol protocol{};

  std::span<const std::uint8_t> rest() const { return frame.subspan(at); }
};

FabricAddress v4_address(const std::array<std::uint8_t, 4>& b) {
  return FabricAddress::from_v4(base::load_be<std::uint32_t>(b.data()));
}

Refusal parse_ethernet(Layers& in) {
  wire::EthernetHeader eth;
  if (!wire::parse_into(eth, in.frame)) return DropReason::kTruncated;
  in.at = wire::EthernetHeader::kSize;
  in.out.to_group = is_multicast(eth.dst);
  if (!in.out.to_group && eth.dst != in.format.mac) return DropReason::kNotForUs;
  in.out.source_mac = eth.src;
  in.type = eth.type;
  return kAccepted;
}

Refusal parse_tags(Layers& in) {
  std::uint16_t vid = 0;
  for (int tags = 0; in.type == EtherType::kVlan || in.type == EtherType::kQinQ; ++tags) {
    if (tags == kMaxTags) return DropReason::kVlanMismatch;
    wire::VlanTag tag;
    if (!wire::parse_into(tag, in.rest())) return DropReason::kTruncated;
    in.at += wire::VlanTag::kSize;
    in.type = tag.type;
    vid = tag.vid;  // the inner one counts; VID 0 carries only a priority
  }
  return vid == in.format.vlan ? kAccepted : Refusal(DropReason::kVlanMismatch);
}

/// Its lengths may be those from before a switch cut it short. [WIRE 2.7]
bool has_trimmed_dscp(const Layers& in) {
  const auto& trimmed = in.format.trimmed_dscp;
  return std::find(trimmed.begin(), trimmed.end(), in.out.tos.dscp()) != trimmed.end();
}

/// `ip_bytes` is what the IP header says. Longer than the frame: only a trimmed packet may be.
Refusal set_end(Layers& in, std::size_t ip_bytes, std::size_t header_bytes) {
  const std::size_t have = in.frame.size() - in.at;
  if (ip_bytes < header_bytes) return DropReason::kBadIpHeader;
  if (ip_bytes > have) {
    if (!has_trimmed_dscp(in)) return DropReason::kTruncated;
    ip_bytes = have;
  }
  in.end = in.at + ip_bytes;
  in.at += header_bytes;
  return kAccepted;
}

Refusal check_source(const Layers& in) {
  const FabricAddress& source = in.out.source;
  if (is_multicast(source)) return DropReason::kBadIpHeader;
  // An IPv4-mapped address on the wire would pass for an IPv4 peer inside.
  if (source.is_v4() != in.format.address.is_v4()) return DropReason::kBadIpHeader;
  // "::" is a host that asks whether an address is free; no other has it.
  if (source.is_unspecified() && in.protocol != IpProtocol::kIcmpV6)
    return DropReason::kBadIpHeader;
  if (source == in.format.address) return DropReason::kAddressConflict;
  return kAccepted;
}

Refusal parse_ipv4(Layers& in) {
  using Header = wire::Ipv4Header;
  const auto bytes = in.rest();
  Header ip;
  if (!wire::parse_into(ip, bytes)) return DropReason::kTruncated;
  if (ip.version != 4 || ip.ihl < 5) return DropReason::kBadIpHeader;
  if (ip.ihl > 5) return DropReason::kIpOptions;
  if (checksum_fold(checksum_add(bytes.first(Header::kSize))) != 0) return DropReason::kBadIpHeader;
  if (ip.mf || ip.fragment_offset != 0) return DropReason::kFragment;
  in.out.source = v4_address(ip.src);
  in.out.destination = v4_address(ip.dst);
  if (in.out.destination != in.format.address) return DropReason::kNotForUs;
  if (in.out.source.v4() == 0) return DropReason::kBadIpHeader;
  in.out.tos = TosByte::of(ip.dscp, ip.ecn);
  in.out.hop_limit = ip.ttl;
  in.protocol = ip.protocol;
  if (auto refused = check_source(in)) return refused;
  return set_end(in, ip.total_length, Header::kSize);
}

constexpr bool is_extension_header(IpProtocol p) {
  switch (static_cast<std::uint8_t>(p)) {
    case 0:
    case 43:
    case 50:
    case 51:
    case 60:
    case 135:
    case 139:
    case 140:
      return true;
    default:
      return false;
  }
}

Refusal parse_ipv6(Layers& in) {
  using Header = wire::Ipv6Header;
  Header ip;
  if (!wire::parse_into(ip, in.rest())) return DropReason::kTruncated;
  if (ip.version != 6) return DropReason::kBadIpHeader;
  in.out.source = FabricAddress::from_v6(ip.src);
  in.out.destination = FabricAddress::from_v6(ip.dst);
  // Groups are only let through for Neighbor Discovery, which checks the target itself.
  const bool is_discovery =
      is_multicast(in.out.destination) && ip.next_header == IpProtocol::kIcmpV6;
  if (in.out.destination != in.format.address && !is_discovery) return DropReason::kNotForUs;
  if (ip.next_header == IpProtocol::kFragment) return DropReason::kFragment;
  if (is_extension_header(ip.next_header)) return DropReason::kIpOptions;
  in.out.tos = TosByte::of(ip.dscp, ip.ecn);
  in.out.hop_limit = ip.hop_limit;
  in.protocol = ip.next_header;
  if (auto refused = check_source(in)) return refused;
  return set_end(in, Header::kSize + std::size_t{ip.payload_length}, Header::kSize);
}

Refusal parse_udp(Layers& in) {
  wire::UdpHeader udp;
  if (!wire::parse_into(udp, in.frame.first(in.end).subspan(in.at))) return DropReason::kTruncated;
  if (udp.dst_port != in.format.udp_port) return DropReason::kNotUet;
  const std::size_t have = in.end - in.at;
  const bool is_cut_short = udp.length > have && has_trimmed_dscp(in);
  if (udp.length != have && !is_cut_short) return DropReason::kBadUdpLength;
  in.out.entropy = udp.src_port;
  in.at += wire::UdpHeader::kSize;
  return kAccepted;
}

Refusal parse_entropy(Layers& in) {
  wire::EntropyHeader header;
  const auto bytes = in.frame.first(in.end).subspan(in.at);
  if (!wire::parse_into(header, bytes)) return DropReason::kTruncated;
  in.out.entropy = header.entropy;
  in.out.entropy_reserved = base::load_be<std::uint16_t>(bytes.data() + sizeof header.entropy);
  in.at += wire::EntropyHeader::kSize;
  return kAccepted;
}

Refusal parse_transport(Layers& in) {
  const bool is_v4 = in.type == EtherType::kIpv4;
  const auto native = static_cast<IpProtocol>(in.format.ip_protocol);
  if (in.protocol == (is_v4 ? IpProtocol::kIcmp : IpProtocol::kIcmpV6)) {
    in.out.kind = FrameKind::kIcmp;
    return kAccepted;
  }
  // A unicast IP packet in a group frame is an old trick against hosts that answer such packets.
  // [RFC 1122 3.3.6]
  if (in.out.to_group) return DropReason::kNotForUs;
  in.out.kind = FrameKind::kUet;
  if (in.format.udp_encapsulation && in.protocol == IpProtocol::kUdp) return parse_udp(in);
  if (!in.format.udp_encapsulation && in.protocol == native) return parse_entropy(in);
  return DropReason::kNotUet;
}

Refusal parse_network(Layers& in) {
  const bool is_v4_port = in.format.address.is_v4();
  switch (in.type) {
    case EtherType::kArp:
      if (!is_v4_port) return DropReason::kNotIp;
      in.out.kind = FrameKind::kArp;
      in.end = in.frame.size();
      return kAccepted;
    case EtherType::kIpv4:
      if (!is_v4_port) return DropReason::kNotIp;
      if (auto refused = parse_ipv4(in)) return refused;
      return parse_transport(in);
    case EtherType::kIpv6:
      if (is_v4_port) return DropReason::kNotIp;
      if (auto refused = parse_ipv6(in)) return refused;
      return parse_transport(in);
    default:
      return DropReason::kNotIp;
  }
}

}  // namespace

std::optional<DropReason> parse_frame(const FrameFormat& format,
                                      std::span<const std::uint8_t> frame, ParsedFrame& parsed) {
  Layers in{.format = format, .frame = frame, .out = parsed};
  if (auto refused = parse_ethernet(in)) return refused;
  if (auto refused = parse_tags(in)) return refused;
  if (auto refused = parse_network(in)) return refused;
  parsed.offset = static_cast<std::uint32_t>(in.at);
  parsed.length = static_cast<std::uint32_t>(in.end - in.at);
  return kAccepted;
}

}  // namespace uet::net
