/// For tools that fill a port's request from options (--address, --native-ip and the like): what goes wrong, in their words.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "lib/net/fabric_address.h"

namespace uet::ports {

/// What opening a port said, with the options of a tool where it names settings of the provider.
inline std::string in_options(std::string text) {
  constexpr std::pair<std::string_view, std::string_view> kWords[] = {
      {"set FI_UET_ENCAP=udp", "leave --native-ip out"},
      {"set FI_UET_POOL lower or give", "give"},
      {"set FI_UET_ADDR", "set --address"},
      {"FI_UET_ADDR", "--address"},
      {"set FI_UET_MTU=", "set --mtu "},
      {"FI_UET_MTU=", "--mtu "},
      {"FI_UET_MTU", "--mtu"},
      {"FI_UET_PORT", "--port"},
      {"FI_UET_IMPAIR", "--impair"},
  };
  for (const auto& [setting, option] : kWords)
    for (std::size_t at = 0; (at = text.find(setting, at)) != std::string::npos;
         at += option.size())
      text.replace(at, setting.size(), option);
  return text;
}

/// Empty, or why packets from `ours` never come to `peer`. An unspecified address is not known yet.
inline std::string why_unreachable(const net::FabricAddress& ours, const net::FabricAddress& peer) {
  if (ours.is_unspecified() || ours.is_v4() == peer.is_v4()) return {};
  const auto name = [](const net::FabricAddress& address) {
    return address.to_string() + (address.is_v4() ? " is an IPv4 address" : " is an IPv6 address");
  };
  return "our address " + name(ours) + ", and the peer's " + name(peer) +
         ": give two of one family";
}

}  // namespace uet::ports
