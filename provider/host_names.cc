#include "provider/host_names.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstring>
#include <memory>

namespace uet::provider {

std::vector<net::FabricAddress> look_up(const char* name) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(name, nullptr, &hints, &found) != 0) return {};
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(found, freeaddrinfo);
  std::vector<net::FabricAddress> out;
  for (const addrinfo* a = found; a != nullptr; a = a->ai_next) {
    if (a->ai_family == AF_INET) {
      sockaddr_in v4;
      std::memcpy(&v4, a->ai_addr, sizeof v4);
      out.push_back(net::FabricAddress::from_v4(ntohl(v4.sin_addr.s_addr)));
    } else if (a->ai_family == AF_INET6) {
      sockaddr_in6 v6;
      std::memcpy(&v6, a->ai_addr, sizeof v6);
      std::array<std::uint8_t, 16> bytes;
      std::memcpy(bytes.data(), &v6.sin6_addr, bytes.size());
      out.push_back(net::FabricAddress::from_v6(bytes));
    }
  }
  return out;
}

}  // namespace uet::provider
