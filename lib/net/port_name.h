/// The name of a port as users write it: one plane, or several joined by +.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace uet::net {

/// "udp:eth0+udp:eth1" is "udp:eth0" and "udp:eth1". Only a + in front of another port begins a plane, so that paths and
/// names may contain one. At least one entry.
std::vector<std::string> planes_of(const std::string& spec);

/// Nothing, or why these planes cannot be one endpoint.
std::string why_not_planes(const std::vector<std::string>& planes);

/// "udp", "udp:..." or "udp,..."
bool is_udp_port(std::string_view plane);

}  // namespace uet::net
