/// UDP ports of the processes that share an IPv4 address with the first one there. [decision 168]
#pragma once

#include "lib/wire/net_headers.h"

namespace uet::net {

inline constexpr std::uint16_t kFirstSharedPort = wire::ReturnPort::kFirst;
inline constexpr std::uint16_t kSharedPorts = wire::ReturnPort::kCount;
constexpr bool is_shared_port(std::uint16_t udp_port) {
  return wire::ReturnPort::is_one(udp_port);
}

}  // namespace uet::net
