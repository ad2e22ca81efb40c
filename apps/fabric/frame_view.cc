#include "apps/fabric/frame_view.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "lib/base/byte_cursor.h"
#include "lib/wire/codec.h"
#include "lib/wire/net_headers.h"

namespace uet::fabric {

using wire::EtherType;
using wire::IpProtocol;

namespace {

constexpr int kTagsMax = 2;
constexpr std::uint8_t kTcp = 6;
constexpr std::size_t kTotalLength = 2, kChecksum = 10;  // offsets in an IPv4 header
constexpr std::size_t kPayloadLength = 4;                // in an IPv6 header
constexpr std::size_t kUdpLength = 4, kUdpChecksum = 6;

/// Spreads every input bit over the whole result (the finaliser of murmur3).
constexpr std::uint64_t scramble(std::uint64_t x) {
  x = (x ^ (x >> 33)) * 0xff51afd7ed558ccdULL;
  x = (x ^ (x >> 33)) * 0xc4ceb9fe1a85ec53ULL;
  return x ^ (x >> 33);
}

std::uint64_t mix(std::uint64_t hash, std::span<const std::uint8_t> bytes) {
  for (const std::uint8_t b : bytes) hash = (hash ^ b) * 0x100000001b3ULL;
  return scramble(hash);
}

void read_ports(std::span<const std::uint8_t> frame, std::uint8_t protocol, const FrameRules& rules,
                FrameView& view) {
  const auto rest = frame.subspan(view.l4_at);
  view.flow = mix(view.flow, {&protocol, 1});
  if (protocol == static_cast<std::uint8_t>(IpProtocol::kUdp) &&
      rest.size() >= wire::UdpHeader::kSize) {
    const auto udp = wire::decode<wire::UdpHeader>(rest.data());
    view.is_udp = true;
    view.is_uet = udp.dst_port == rules.udp_port;
    view.entropy = udp.src_port;
    view.headers = static_cast<std::uint16_t>(view.l4_at + wire::UdpHeader::kSize);
    view.flow = mix(view.flow, rest.subspan(2, 2));
  } else if (protocol == kTcp && rest.size() >= 4) {
    view.entropy = base::load_be<std::uint16_t>(rest.data());
    view.flow = mix(view.flow, rest.subspan(2, 2));
  } else if (protocol == rules.ip_protocol && rest.size() >= wire::EntropyHeader::kSize) {
    view.is_uet = true;
    view.entropy = wire::decode<wire::EntropyHeader>(rest.data()).entropy;
    view.headers = static_cast<std::uint16_t>(view.l4_at + wire::EntropyHeader::kSize);
  }
}

void read_ipv4(std::span<const std::uint8_t> frame, const FrameRules& rules, FrameView& view) {
  const auto rest = frame.subspan(view.ip_at);
  if (rest.size() < wire::Ipv4Header::kSize) return;
  const auto ip = wire::decode<wire::Ipv4Header>(rest.data());
  const std::size_t header = std::size_t{ip.ihl} * 4;
  if (ip.version != 4 || header < wire::Ipv4Header::kSize || header > rest.size()) return;
  view.is_ip = view.is_v4 = true;
  view.tos = net::TosByte::of(ip.dscp, ip.ecn);
  view.l4_at = view.headers = static_cast<std::uint16_t>(view.ip_at + header);
  view.flow = mix(mix(0, ip.src), ip.dst);
  // Later fragments have no ports: all fragments of a packet share one path.
  if (ip.mf || ip.fragment_offset != 0) return;
  read_ports(frame, static_cast<std::uint8_t>(ip.protocol), rules, view);
}

constexpr std::size_t kIpv6Bytes = wire::Ipv6Header::kSize;

void read_ipv6(std::span<const std::uint8_t> frame, const FrameRules& rules, FrameView& view) {
  const auto rest = frame.subspan(view.ip_at);
  if (rest.size() < wire::Ipv6Header::kSize) return;
  const auto ip = wire::decode<wire::Ipv6Header>(rest.data());
  if (ip.version != 6) return;
  view.is_ip = true;
  view.tos = net::TosByte::of(ip.dscp, ip.ecn);
  view.l4_at = view.headers = static_cast<std::uint16_t>(view.ip_at + wire::Ipv6Header::kSize);
  view.flow = mix(mix(0, ip.src), ip.dst);
  view.entropy = static_cast<std::uint16_t>(ip.flow_label);
  read_ports(frame, static_cast<std::uint8_t>(ip.next_header), rules, view);
  // Router solicitation to redirect. [RFC 4861]
  constexpr std::uint8_t kFirst = 133, kLast = 137;
  view.is_discovery = ip.next_header == IpProtocol::kIcmpV6 && rest.size() > kIpv6Bytes &&
                      rest[kIpv6Bytes] >= kFirst && rest[kIpv6Bytes] <= kLast;
}

/// RFC 1624: what a checksum becomes when one 16-bit word that it covers changes.
void replace_word(std::uint8_t* word, std::uint16_t value, std::uint8_t* checksum) {
  const auto old_word = base::load_be<std::uint16_t>(word);
  const auto old_sum = base::load_be<std::uint16_t>(checksum);
  std::uint32_t sum = static_cast<std::uint16_t>(~old_sum);
  sum += static_cast<std::uint16_t>(~old_word);
  sum += value;
  sum = (sum & 0xffff) + (sum >> 16);
  sum = (sum & 0xffff) + (sum >> 16);
  base::store_be(word, value);
  base::store_be(checksum, static_cast<std::uint16_t>(~sum));
}

}  // namespace

std::optional<FrameView> look_at(std::span<const std::uint8_t> frame, const FrameRules& rules) {
  if (frame.size() < wire::EthernetHeader::kSize) return std::nullopt;
  const auto eth = wire::decode<wire::EthernetHeader>(frame.data());
  FrameView view;
  view.destination = eth.dst;
  view.source = eth.src;
  view.flow = mix(mix(0, eth.src), eth.dst);
  std::size_t at = wire::EthernetHeader::kSize;
  EtherType type = eth.type;
  for (int tags = 0; type == EtherType::kVlan || type == EtherType::kQinQ; ++tags) {
    if (tags == kTagsMax || frame.size() < at + wire::VlanTag::kSize) break;
    type = wire::decode<wire::VlanTag>(frame.data() + at).type;
    at += wire::VlanTag::kSize;
  }
  view.ip_at = view.l4_at = view.headers = static_cast<std::uint16_t>(at);
  view.is_discovery = type == EtherType::kArp;
  if (type == EtherType::kIpv4) read_ipv4(frame, rules, view);
  if (type == EtherType::kIpv6) read_ipv6(frame, rules, view);
  return view;
}

std::uint64_t flow_between(const net::FabricAddress& source, const net::FabricAddress& destination,
                           const FrameRules& rules) {
  const auto address = [](const net::FabricAddress& a) {
    const std::span<const std::uint8_t> all(a.bytes());
    return a.is_v4() ? all.last(4) : all;
  };
  std::array<std::uint8_t, 2> port{};
  base::store_be(port.data(), rules.udp_port);
  const auto protocol = static_cast<std::uint8_t>(IpProtocol::kUdp);
  return mix(mix(mix(mix(0, address(source)), address(destination)), {&protocol, 1}), port);
}

void set_tos(std::span<std::uint8_t> frame, const FrameView& view, net::TosByte tos) {
  if (!view.is_ip) return;
  std::uint8_t* ip = frame.data() + view.ip_at;
  if (view.is_v4) {
    const auto word = static_cast<std::uint16_t>(ip[0] << 8 | tos.value);
    replace_word(ip, word, ip + kChecksum);
  } else {
    ip[0] = static_cast<std::uint8_t>((ip[0] & 0xf0) | tos.value >> 4);
    ip[1] = static_cast<std::uint8_t>((ip[1] & 0x0f) | tos.value << 4);
  }
}

void set_lengths(std::span<std::uint8_t> frame, const FrameView& view) {
  if (!view.is_ip) return;
  std::uint8_t* ip = frame.data() + view.ip_at;
  if (view.is_v4) {
    const auto total = base::load_be<std::uint16_t>(ip + kTotalLength);
    const auto here = std::min<std::size_t>(total, frame.size() - view.ip_at);
    replace_word(ip + kTotalLength, static_cast<std::uint16_t>(here), ip + kChecksum);
  } else {
    const auto payload = base::load_be<std::uint16_t>(ip + kPayloadLength);
    base::store_be(ip + kPayloadLength, static_cast<std::uint16_t>(std::min<std::size_t>(
                                            payload, frame.size() - view.l4_at)));
  }
  if (!view.is_udp) return;
  std::uint8_t* udp = frame.data() + view.l4_at;
  const auto length = base::load_be<std::uint16_t>(udp + kUdpLength);
  base::store_be(udp + kUdpLength, static_cast<std::uint16_t>(
                                       std::min<std::size_t>(length, frame.size() - view.l4_at)));
  base::store_be(udp + kUdpChecksum, std::uint16_t{0});
}

}  // namespace uet::fabric
