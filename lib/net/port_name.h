/// The name of a port as users write it: one plane, or several joined by +.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "lib/net/fabric_address.h"

namespace uet::net {

/// Source ports that one kernel-UDP port can have.
inline constexpr std::size_t kMaxUdpSockets = 64;

/// What the name of a kernel-UDP port says: udp[:interface or address][,sockets=n][,merge=0].
struct UdpPortName {
  std::string interface;
  FabricAddress address;
  std::size_t sockets = 8;  ///< source ports to spread over
  bool merge = true;        ///< packets pass through the kernel in runs
};

/// "udp:eth0+udp:eth1" is "udp:eth0" and "udp:eth1". Only a + in front of another port begins a plane, so that paths and
/// names may contain one. At least one entry.
std::vector<std::string> planes_of(const std::string& spec);

/// Nothing, or why these planes cannot be one endpoint.
std::string why_not_planes(const std::vector<std::string>& planes);

/// "udp", "udp:..." or "udp,..."
bool is_udp_port(std::string_view plane);

/// One plane. False: `error` says what is no name of a kernel-UDP port.
bool parse_udp_port(std::string_view plane, UdpPortName& out, std::string& error);

}  // namespace uet::net
