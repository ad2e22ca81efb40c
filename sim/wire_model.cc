#include "sim/wire_model.h"

#include <algorithm>
#include <array>

namespace uet::sim {

std::size_t payload_bytes_of(std::span<const std::uint8_t> packet) {
  // By PDS type, then by next_hdr; 0 for types that carry no SES header. [WIRE 4.2, 4.3]
  constexpr std::array<std::uint8_t, 32> kPdsBytes = {0,  0,  12, 12, 8, 8,  4, 12,
                                                      32, 40, 0,  0,  0, 16, 16};
  constexpr std::array<std::uint8_t, 16> kSesBytes = {0, 20, 32, 44, 12, 20, 12};
  if (packet.size() < 2) return 0;
  const std::size_t pds = kPdsBytes[packet[0] >> 3];
  const std::size_t ses = kSesBytes[(packet[0] & 7) << 1 | packet[1] >> 7];
  if (pds == 0 || ses == 0 || packet.size() <= pds + ses) return 0;
  return packet.size() - pds - ses;
}

std::uint32_t WireModel::wire_bytes(std::span<const std::uint8_t> packet) const {
  if (size == Size::kActual) return static_cast<std::uint32_t>(packet.size()) + overhead;
  return static_cast<std::uint32_t>(payload_bytes_of(packet)) + kModelHeader;
}

void WireModel::trim(Frame& frame, bool last_hop) const {
  net::Packet& packet = frame.rx.packet;
  const std::size_t kept = frame.headers + kTrimmedBytes;
  if (packet.size() > kept) packet.trim_back(packet.size() - kept);
  frame.rx.tos =
      net::TosByte::of(last_hop ? dscp.trimmed_last_hop : dscp.trimmed, frame.rx.tos.ecn());
  frame.wire_bytes =
      size == Size::kModel ? kModelHeader : static_cast<std::uint32_t>(packet.size()) + overhead;
  frame.traffic_class = TrafficClass::kControl;
  frame.trimmable = false;
  frame.trimmed = true;
}

}  // namespace uet::sim
