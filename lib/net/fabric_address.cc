#include "lib/net/fabric_address.h"

#include <arpa/inet.h>

namespace uet::net {

std::optional<FabricAddress> FabricAddress::parse(std::string_view text) {
  const std::string s(text);
  in_addr v4{};
  if (inet_pton(AF_INET, s.c_str(), &v4) == 1) return from_v4(ntohl(v4.s_addr));
  std::array<std::uint8_t, 16> v6{};
  if (inet_pton(AF_INET6, s.c_str(), v6.data()) == 1) return from_v6(v6);
  return std::nullopt;
}

std::string FabricAddress::to_string() const {
  char text[INET6_ADDRSTRLEN] = {};
  if (!is_v4()) {
    inet_ntop(AF_INET6, bytes_.data(), text, sizeof text);
    return text;
  }
  inet_ntop(AF_INET, bytes_.data() + 12, text, sizeof text);
  return udp_port() == 0 ? text : text + (":" + std::to_string(udp_port()));
}

}  // namespace uet::net
