/// What a switch reads of an Ethernet frame, and the few bytes that it may change: class and marks,
/// and the lengths of what it cut.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "lib/net/fabric_address.h"
#include "lib/net/frame_device.h"
#include "lib/net/port.h"

namespace uet::fabric {

/// Where UET is found. Everything else is ordinary traffic: forwarded, marked by its ECN field,
/// dropped rather than trimmed.
struct FrameRules {
  std::uint16_t udp_port = 4793;
  std::uint8_t ip_protocol = 253;  ///< native IP with entropy header
};

struct FrameView {
  net::MacAddress destination{};
  net::MacAddress source{};
  bool is_ip = false, is_v4 = false;
  bool is_uet = false;
  bool is_discovery = false;  ///< ARP or Neighbor Discovery
  bool is_udp = false;        ///< and not a later fragment
  std::uint16_t ip_at = 0;    ///< offset of the IP header
  std::uint16_t l4_at = 0;    ///< what follows it
  std::uint16_t headers = 0;  ///< bytes in front of the UET packet, or of what is unknown
  net::TosByte tos;
  std::uint64_t flow = 0;     ///< what keeps packets on one path, but for the entropy value
  std::uint16_t entropy = 0;  ///< UDP or TCP source port, entropy header, IPv6 flow label
};

/// Nothing for what is too short for an Ethernet header. Whatever else is wrong with a frame, it is
/// a frame: headers that are cut or odd end the reading.
std::optional<FrameView> look_at(std::span<const std::uint8_t> frame, const FrameRules& rules);

/// `FrameView::flow` of UET over UDP between these addresses, which are of one family.
std::uint64_t flow_between(const net::FabricAddress& source, const net::FabricAddress& destination,
                           const FrameRules& rules);

/// Changes DSCP and ECN of the IP packet, and what IPv4's checksum must change with them: a wrong
/// checksum stays as wrong as it was.
void set_tos(std::span<std::uint8_t> frame, const FrameView& view, net::TosByte tos);

/// After bytes were cut off the end: sets the lengths of IP and UDP to what is there. A UDP
/// checksum, which cannot be computed any more, becomes 0.
void set_lengths(std::span<std::uint8_t> frame, const FrameView& view);

}  // namespace uet::fabric
