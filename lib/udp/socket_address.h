/// FabricAddress to and from the kernel's sockaddr.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstring>

#include "lib/net/fabric_address.h"

namespace uet::udp {

/// A sockaddr of either family. IPv6 link-local addresses also need the interface.
struct SocketAddress {
  union {
    sockaddr any;
    sockaddr_in v4;
    sockaddr_in6 v6;
  };
  socklen_t length = 0;

  SocketAddress() { std::memset(&v6, 0, sizeof v6); }
  SocketAddress(const net::FabricAddress& address, std::uint16_t port, unsigned scope)
      : SocketAddress() {
    set(address, port, scope);
  }
  /// Another address, of either family.
  void set(const net::FabricAddress& address, std::uint16_t port, unsigned scope) {
    if (address.is_v4()) {
      v4.sin_family = AF_INET;
      v4.sin_port = htons(port);
      v4.sin_addr.s_addr = htonl(address.v4());
      length = sizeof v4;
      return;
    }
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(port);
    v6.sin6_flowinfo = 0;
    std::memcpy(&v6.sin6_addr, address.bytes().data(), 16);
    v6.sin6_scope_id = address.is_link_local() ? scope : 0;
    length = sizeof v6;
  }

  net::FabricAddress address() const {
    if (any.sa_family == AF_INET) return net::FabricAddress::from_v4(ntohl(v4.sin_addr.s_addr));
    std::array<std::uint8_t, 16> bytes;
    std::memcpy(bytes.data(), &v6.sin6_addr, bytes.size());
    return net::FabricAddress::from_v6(bytes);
  }
  std::uint16_t port() const {
    return ntohs(any.sa_family == AF_INET ? v4.sin_port : v6.sin6_port);
  }
};

}  // namespace uet::udp
