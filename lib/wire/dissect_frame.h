/// The decision tree over a captured frame: link header, tags, IP, UDP or entropy header, UET CRC,
/// then dissect.h. [WIRE 2]
#pragma once

#include "lib/wire/dissect.h"
#include "lib/wire/link_type.h"

namespace uet::wire {

/// Whether packets end in a UET CRC. Nothing on the wire says so. [WIRE 2.1]
enum class CrcPolicy : std::uint8_t {
  kDetect,  ///< it is there when it is right, or when exactly four bytes are left over
  kAlways,
  kNever,
};

struct DissectOptions {
  CrcPolicy crc = CrcPolicy::kDetect;
  std::uint16_t udp_port = kUdpPort;
  std::uint8_t native_protocol = kNativeProtocol;
  std::uint8_t dscp_trimmed = 26;
  std::uint8_t dscp_trimmed_lasthop = 28;
  std::uint32_t payload_mtu = 0;  ///< 0: any legal one
};

/// The one's complement sum over an IPv4 header as it should be in its checksum field.
std::uint16_t ipv4_checksum(std::span<const std::uint8_t> header);

/// Walks one frame. `wire_length` is its length on the wire, larger than the frame when the capture
/// was cut.
void dissect_frame(LinkType link, std::span<const std::uint8_t> frame, std::size_t wire_length,
                   const DissectOptions& options, DissectVisitor& visitor);

}  // namespace uet::wire
