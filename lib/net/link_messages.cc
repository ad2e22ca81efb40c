#include "lib/net/link_messages.h"

#include <algorithm>

#include "lib/net/checksum.h"
#include "lib/wire/codec.h"

namespace uet::net {

using base::DropReason;

namespace {

constexpr std::uint8_t kOptionSourceMac = 1;
constexpr std::uint8_t kOptionTargetMac = 2;
constexpr std::uint32_t kFlagSolicited = 1u << 30;
constexpr std::uint32_t kFlagOverride = 1u << 29;
constexpr std::size_t kTargetEnd = IcmpHeader::kSize + 16;

/// Looks for one link-layer option; false when the options are malformed.
bool read_options(std::span<const std::uint8_t> options, std::uint8_t wanted,
                  std::optional<MacAddress>& mac) {
  while (!options.empty()) {
    if (options.size() < 8) return false;
    const std::size_t bytes = std::size_t{options[1]} * 8;
    if (bytes == 0 || bytes > options.size()) return false;
    if (options[0] == wanted && bytes == 8) {
      mac.emplace();
      std::copy_n(options.begin() + 2, 6, mac->begin());
    }
    options = options.subspan(bytes);
  }
  return true;
}

}  // namespace

base::Result<ArpMessage, DropReason> parse_arp(std::span<const std::uint8_t> bytes) {
  const auto arp = wire::parse<ArpMessage>(bytes);
  if (!arp) return arp.error();
  const bool is_ethernet_ipv4 = arp->hardware_type == 1 && arp->protocol_type == 0x0800 &&
                                arp->hardware_size == 6 && arp->protocol_size == 4;
  const bool is_known =
      arp->operation == ArpMessage::kRequest || arp->operation == ArpMessage::kReply;
  if (!is_ethernet_ipv4 || !is_known) return DropReason::kBadLinkMessage;
  if (is_multicast(arp->sender_mac) || arp->sender_ip >= 0xe000'0000)
    return DropReason::kBadLinkMessage;
  return *arp;
}

base::Result<NeighborMessage, DropReason> parse_neighbor_message(
    std::span<const std::uint8_t> icmp) {
  if (icmp.size() < kTargetEnd) return DropReason::kTruncated;
  const auto header = wire::decode<IcmpHeader>(icmp.data());
  NeighborMessage m;
  m.is_advertisement = header.type == IcmpHeader::kNeighborAdvertisement;
  m.is_solicited = m.is_advertisement && (header.rest & kFlagSolicited) != 0;
  m.overrides = m.is_advertisement && (header.rest & kFlagOverride) != 0;
  std::array<std::uint8_t, 16> target;
  std::copy_n(icmp.begin() + IcmpHeader::kSize, 16, target.begin());
  m.target = FabricAddress::from_v6(target);
  if (header.code != 0 || is_multicast(m.target) || m.target.is_v4())
    return DropReason::kBadLinkMessage;
  const auto wanted = m.is_advertisement ? kOptionTargetMac : kOptionSourceMac;
  if (!read_options(icmp.subspan(kTargetEnd), wanted, m.mac)) return DropReason::kBadLinkMessage;
  if (m.mac && is_multicast(*m.mac)) return DropReason::kBadLinkMessage;
  return m;
}

void emit_neighbor_message(const NeighborMessage& message, const FabricAddress& source,
                           const FabricAddress& destination, std::uint8_t* out) {
  IcmpHeader header;
  header.type = message.is_advertisement ? IcmpHeader::kNeighborAdvertisement
                                         : IcmpHeader::kNeighborSolicitation;
  if (message.is_advertisement)
    header.rest =
        (message.overrides ? kFlagOverride : 0) | (message.is_solicited ? kFlagSolicited : 0);
  wire::emit(header, out);
  std::copy_n(message.target.bytes().begin(), 16, out + IcmpHeader::kSize);
  out[kTargetEnd] = message.is_advertisement ? kOptionTargetMac : kOptionSourceMac;
  out[kTargetEnd + 1] = 1;  // in units of 8 bytes
  std::copy_n(message.mac->begin(), 6, out + kTargetEnd + 2);
  base::store_be(out + IcmpHeader::kChecksumOffset,
                 icmp6_checksum(source, destination, {out, kNeighborMessageBytes}));
}

std::uint16_t icmp6_checksum(const FabricAddress& source, const FabricAddress& destination,
                             std::span<const std::uint8_t> icmp) {
  std::uint32_t sum = checksum_add(source.bytes());
  sum = checksum_add(destination.bytes(), sum);
  sum += static_cast<std::uint32_t>(icmp.size()) + 58;  // upper-layer length and next header
  return checksum_fold(checksum_add(icmp, sum));
}

void make_echo_reply(std::span<std::uint8_t> icmp, bool is_v4) {
  const std::uint8_t request = icmp[0];
  const std::uint8_t reply = is_v4 ? IcmpHeader::kEchoReplyV4 : IcmpHeader::kEchoReplyV6;
  icmp[0] = reply;
  // The checksum changes by what the type byte changed (upper half of its word). [RFC 1624]
  // The addresses of the pseudo header only swap, which leaves their sum alone.
  std::uint8_t* const at = icmp.data() + IcmpHeader::kChecksumOffset;
  const std::uint32_t old_sum = static_cast<std::uint16_t>(~base::load_be<std::uint16_t>(at));
  const std::uint32_t old_word = static_cast<std::uint16_t>(~(request << 8));
  base::store_be(at, checksum_fold(old_sum + old_word + (std::uint32_t{reply} << 8)));
}

FabricAddress solicited_node_address(const FabricAddress& unicast) {
  std::array<std::uint8_t, 16> b{0xff, 0x02, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff};
  std::copy_n(unicast.bytes().begin() + 13, 3, b.begin() + 13);
  return FabricAddress::from_v6(b);
}

MacAddress multicast_mac(const FabricAddress& v6_multicast) {
  MacAddress mac{0x33, 0x33};
  std::copy_n(v6_multicast.bytes().begin() + 12, 4, mac.begin() + 2);
  return mac;
}

}  // namespace uet::net
