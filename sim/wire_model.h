/// How simulated links see UET packets: how large they are, which class they travel in, what
/// trimming leaves of them.
#pragma once

#include <cstdint>
#include <span>

#include "lib/net/port.h"
#include "sim/frame.h"

namespace uet::sim {

/// DSCP values that switches act on. [WIRE 2.7]
struct DscpValues {
  std::uint8_t data = 0, trimmable = 18, trimmable_rtx = 20, trimmed = 26, trimmed_last_hop = 28,
               control = 46;
};

struct WireModel {
  enum class Size : std::uint8_t {
    kActual,  ///< the UET packet plus `overhead`
    kModel,   ///< payload plus 64 bytes; packets without payload are 64 bytes: comparable with
              ///< published simulations
  };
  Size size = Size::kActual;
  std::uint32_t overhead = 66;  ///< with kActual: Ethernet with preamble and gap, IPv4 and UDP
  DscpValues dscp;

  std::uint32_t wire_bytes(std::span<const std::uint8_t> uet_packet) const;
  TrafficClass traffic_class(net::TosByte tos) const {
    const std::uint8_t d = tos.dscp();
    return d == dscp.data || is_trimmable(tos) ? TrafficClass::kData : TrafficClass::kControl;
  }
  bool is_trimmable(net::TosByte tos) const {
    return tos.dscp() == dscp.trimmable || tos.dscp() == dscp.trimmable_rtx;
  }
  /// Cuts the payload off and changes class, size and DSCP.
  void trim(Frame& frame, bool last_hop) const;

  /// UET bytes that a trimmed packet keeps: every PDS and SES header fits. [WIRE 2.7]
  static constexpr std::size_t kTrimmedBytes = 64;
  /// Size of a packet without payload under kModel.
  static constexpr std::uint32_t kModelHeader = 64;
};

/// Bytes behind the PDS and SES headers, read from the first two bytes alone; 0 for what is too
/// short or unknown. [WIRE 4.1-4.3]
std::size_t payload_bytes_of(std::span<const std::uint8_t> uet_packet);

}  // namespace uet::sim
