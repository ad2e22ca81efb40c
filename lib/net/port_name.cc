#include "lib/net/port_name.h"

#include <algorithm>
#include <charconv>

#include "lib/net/port.h"

namespace uet::net {

namespace {

std::string_view trim(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

bool begins_plane(std::string_view rest) {
  rest = trim(rest);
  return is_udp_port(rest) || rest.starts_with("dpdk:");
}

/// What two planes must not have in common: the name of the device or interface.
std::string_view place_of(std::string_view plane) {
  const std::size_t colon = plane.find(':');
  if (colon == std::string_view::npos) return {};
  plane.remove_prefix(colon + 1);
  return plane.substr(0, plane.find(','));
}

bool parse_udp_option(std::string_view option, UdpPortName& out, std::string& error) {
  const std::string_view key = option.substr(0, option.find('='));
  const std::string_view value = option.substr(std::min(key.size() + 1, option.size()));
  if (key == "sockets") {
    const char* const end = value.data() + value.size();
    const auto [stop, code] = std::from_chars(value.data(), end, out.sockets);
    const bool is_number = code == std::errc() && stop == end;
    if (is_number && out.sockets >= 1 && out.sockets <= kMaxUdpSockets) return true;
    error = "sockets=" + std::string(value) + ": sockets is a number from 1 to " +
            std::to_string(kMaxUdpSockets);
  } else if (key == "merge") {
    out.merge = value == "1";
    if (value == "0" || value == "1") return true;
    error = "merge=" + std::string(value) + ": merge is 0 or 1";
  } else {
    error = "unknown setting '" + std::string(option) + "'; the udp port knows sockets=<1 to " +
            std::to_string(kMaxUdpSockets) +
            "> (source ports to spread over) and merge=<0 or 1> (packets pass through the kernel "
            "in runs)";
  }
  return false;
}

}  // namespace

std::vector<std::string> planes_of(const std::string& spec) {
  std::vector<std::string> out;
  std::string_view rest = spec;
  for (std::size_t at = 0; (at = rest.find('+', at)) != std::string_view::npos;) {
    if (!begins_plane(rest.substr(at + 1))) {
      ++at;
      continue;
    }
    out.emplace_back(trim(rest.substr(0, at)));
    rest.remove_prefix(at + 1);
    at = 0;
  }
  out.emplace_back(trim(rest));
  return out;
}

std::string why_not_planes(const std::vector<std::string>& planes) {
  if (planes.size() <= 1) return {};
  if (planes.size() > kMaxPlanes)
    return std::to_string(planes.size()) + " planes; an endpoint can have " +
           std::to_string(kMaxPlanes);
  const bool is_udp = is_udp_port(planes.front());
  for (auto plane = planes.begin(); plane != planes.end(); ++plane) {
    if (is_udp_port(*plane) != is_udp)
      return "the planes of an endpoint must all be udp ports or all be dpdk ports";
    const std::string_view place = place_of(*plane);
    if (place.empty())
      return is_udp ? "each of several planes names its interface: udp:eth0+udp:eth1"
                    : "the device is missing; write dpdk:<device>+dpdk:<device>";
    const bool is_twice = std::any_of(
        planes.begin(), plane, [&](const std::string& other) { return place_of(other) == place; });
    if (is_twice)
      return "two planes use " + std::string(place) + "; each needs a device of its own";
  }
  return {};
}

bool is_udp_port(std::string_view plane) {
  return plane == "udp" || plane.starts_with("udp:") || plane.starts_with("udp,");
}

bool parse_udp_port(std::string_view plane, UdpPortName& out, std::string& error) {
  if (!is_udp_port(plane)) {
    error = "not a udp port; write udp, udp:<interface> or udp:<address>";
    return false;
  }
  plane.remove_prefix(3);
  if (plane.empty()) return true;
  const bool has_place = plane.front() == ':';
  plane.remove_prefix(1);
  for (bool is_first = has_place; !plane.empty(); is_first = false) {
    const std::size_t comma = std::min(plane.find(','), plane.size());
    const std::string_view part = plane.substr(0, comma);
    plane.remove_prefix(std::min(comma + 1, plane.size()));
    if (!is_first) {
      if (!parse_udp_option(part, out, error)) return false;
    } else if (const auto address = FabricAddress::parse(part)) {
      out.address = *address;
    } else {
      out.interface = part;
    }
  }
  return true;
}

}  // namespace uet::net
