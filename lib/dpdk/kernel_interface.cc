#include "lib/dpdk/kernel_interface.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <functional>

namespace uet::dpdk {

namespace {

using net::FabricAddress;

/// False when the kernel has no answer about this interface.
bool ask_kernel(const std::string& interface, unsigned long question, ifreq& request) {
  if (interface.empty() || interface.size() >= IFNAMSIZ) return false;
  const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return false;
  request = {};
  interface.copy(request.ifr_name, IFNAMSIZ - 1);
  const bool ok = ioctl(fd, question, &request) == 0;
  close(fd);
  return ok;
}

bool any_address(const std::function<bool(const ifaddrs&)>& wanted) {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return false;
  bool found = false;
  for (const ifaddrs* i = list; i != nullptr && !found; i = i->ifa_next)
    found = i->ifa_addr != nullptr && wanted(*i);
  freeifaddrs(list);
  return found;
}

bool matches(const sockaddr& sa, const FabricAddress& address) {
  if (sa.sa_family == AF_INET && address.is_v4()) {
    sockaddr_in in;
    std::memcpy(&in, &sa, sizeof in);
    return ntohl(in.sin_addr.s_addr) == address.v4();
  }
  if (sa.sa_family != AF_INET6 || address.is_v4()) return false;
  sockaddr_in6 in6;
  std::memcpy(&in6, &sa, sizeof in6);
  return std::memcmp(&in6.sin6_addr, address.bytes().data(), 16) == 0;
}

bool is_for_use(const sockaddr& sa) {
  if (sa.sa_family == AF_INET) return true;
  if (sa.sa_family != AF_INET6) return false;
  sockaddr_in6 in6;
  std::memcpy(&in6, &sa, sizeof in6);
  return !IN6_IS_ADDR_LINKLOCAL(&in6.sin6_addr);
}

}  // namespace

std::size_t kernel_mtu(const std::string& interface) {
  ifreq request;
  return ask_kernel(interface, SIOCGIFMTU, request) ? static_cast<std::size_t>(request.ifr_mtu) : 0;
}

KernelLink kernel_link(unsigned index) {
  constexpr int kBoth = IFF_UP | IFF_RUNNING;
  const std::string name = interface_name(index);
  if (name.empty()) return KernelLink::kGone;
  ifreq request;
  return ask_kernel(name, SIOCGIFFLAGS, request) && (request.ifr_flags & kBoth) == kBoth
             ? KernelLink::kUp
             : KernelLink::kDown;
}

bool kernel_owns(const FabricAddress& address, const std::string& interface) {
  return any_address([&](const ifaddrs& i) {
    return (interface.empty() || interface == i.ifa_name) && matches(*i.ifa_addr, address);
  });
}

bool kernel_uses(const std::string& interface) {
  return any_address(
      [&](const ifaddrs& i) { return interface == i.ifa_name && is_for_use(*i.ifa_addr); });
}

unsigned interface_index(const std::string& interface) {
  return interface.empty() || interface.size() >= IFNAMSIZ ? 0 : if_nametoindex(interface.c_str());
}

std::string interface_name(unsigned index) {
  char name[IF_NAMESIZE] = {};
  return index != 0 && if_indextoname(index, name) != nullptr ? name : "";
}

}  // namespace uet::dpdk
