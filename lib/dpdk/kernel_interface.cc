#include "lib/dpdk/kernel_interface.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <functional>
#include <utility>

namespace uet::dpdk {

namespace {

using net::FabricAddress;

bool can_be_name(const std::string& interface) {
  return !interface.empty() && interface.size() < IFNAMSIZ;
}

/// For questions about interfaces; -1 with errno.
int open_any_socket() {
  return socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
}

/// False with errno when the kernel has no answer about this interface.
bool ask_kernel(int any_socket, const std::string& interface, unsigned long question,
                ifreq& request) {
  request = {};
  interface.copy(request.ifr_name, IFNAMSIZ - 1);
  return ioctl(any_socket, question, &request) == 0;
}

/// Into `answer.ifr_name`. False with errno; ENODEV: no interface has this index.
bool read_name(int any_socket, unsigned index, ifreq& answer) {
  answer = {};
  answer.ifr_ifindex = static_cast<int>(index);
  return ioctl(any_socket, SIOCGIFNAME, &answer) == 0;
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
  const int any_socket = can_be_name(interface) ? open_any_socket() : -1;
  if (any_socket < 0) return 0;
  ifreq request;
  const bool is_known = ask_kernel(any_socket, interface, SIOCGIFMTU, request);
  close(any_socket);
  return is_known ? static_cast<std::size_t>(request.ifr_mtu) : 0;
}

KernelInterface::~KernelInterface() {
  if (socket_ >= 0) close(socket_);
}

bool KernelInterface::open(const std::string& name) {
  errno = ENODEV;
  if (!can_be_name(name)) return false;
  socket_ = open_any_socket();
  if (socket_ < 0) return false;
  ifreq request;
  if (ask_kernel(socket_, name, SIOCGIFINDEX, request)) {
    index_ = static_cast<unsigned>(request.ifr_ifindex);
    return true;
  }
  const int why = errno;
  close(std::exchange(socket_, -1));
  errno = why;
  return false;
}

KernelLink KernelInterface::link() {
  constexpr int kBoth = IFF_UP | IFF_RUNNING;
  ifreq request;
  if (!read_name(socket_, index_, request)) {
    if (errno == ENODEV) link_ = KernelLink::kGone;
  } else if (ioctl(socket_, SIOCGIFFLAGS, &request) == 0) {
    link_ = (request.ifr_flags & kBoth) == kBoth ? KernelLink::kUp : KernelLink::kDown;
  }
  return link_;
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

std::string interface_name(unsigned index) {
  const int any_socket = open_any_socket();
  if (any_socket < 0) return "";
  ifreq request;
  const bool is_there = read_name(any_socket, index, request);
  const int why = errno;
  close(any_socket);
  errno = why;
  return is_there ? request.ifr_name : "";
}

}  // namespace uet::dpdk
