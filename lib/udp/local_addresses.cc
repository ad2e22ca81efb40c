#include "lib/udp/local_addresses.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "lib/udp/descriptor.h"

namespace uet::udp {

namespace {

net::FabricAddress address_of(const sockaddr& sa) {
  if (sa.sa_family == AF_INET) {
    sockaddr_in in;
    std::memcpy(&in, &sa, sizeof in);
    return net::FabricAddress::from_v4(ntohl(in.sin_addr.s_addr));
  }
  sockaddr_in6 in6;
  std::memcpy(&in6, &sa, sizeof in6);
  std::array<std::uint8_t, 16> bytes;
  std::memcpy(bytes.data(), &in6.sin6_addr, bytes.size());
  return net::FabricAddress::from_v6(bytes);
}

unsigned prefix_length_of(const sockaddr* mask, bool is_v4) {
  if (mask == nullptr) return is_v4 ? 32 : 128;
  const net::FabricAddress bits = address_of(*mask);
  if (is_v4) return static_cast<unsigned>(std::popcount(bits.v4()));
  unsigned n = 0;
  for (const std::uint8_t b : bits.bytes()) n += static_cast<unsigned>(std::popcount(b));
  return n;
}

/// Calls `take` for each entry with an IPv4 or IPv6 address. errno, or 0.
template <typename Take>
int for_each_address(Take&& take) {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return errno;
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(list, freeifaddrs);
  for (const ifaddrs* i = list; i != nullptr; i = i->ifa_next) {
    if (i->ifa_addr == nullptr) continue;
    const int family = i->ifa_addr->sa_family;
    if (family == AF_INET || family == AF_INET6) take(*i);
  }
  return 0;
}

/// For questions to the kernel.
Descriptor any_socket() {
  return Descriptor::open([] { return socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0); });
}

/// 0 with errno. Not if_nametoindex(), whose errno says nothing where there is no descriptor left.
unsigned index_of(int any_socket, const std::string& name) {
  ifreq request{};
  name.copy(request.ifr_name, IFNAMSIZ - 1);
  return ioctl(any_socket, SIOCGIFINDEX, &request) == 0 ? static_cast<unsigned>(request.ifr_ifindex)
                                                        : 0;
}

}  // namespace

base::Result<std::vector<LocalAddress>, int> local_addresses() {
  std::vector<LocalAddress> out;
  const Descriptor d = any_socket();
  if (!d) return errno;
  const PassingAddresses passing = PassingAddresses::read();
  const int error = for_each_address([&](const ifaddrs& i) {
    LocalAddress a;
    a.interface = i.ifa_name;
    a.interface_index = index_of(d.fd(), a.interface);
    a.address = address_of(*i.ifa_addr);
    a.rank = passing.rank_of(a.interface, a.address);
    a.prefix_length = prefix_length_of(i.ifa_netmask, i.ifa_addr->sa_family == AF_INET);
    a.is_up = (i.ifa_flags & IFF_UP) != 0 && (i.ifa_flags & IFF_RUNNING) != 0;
    a.is_loopback = (i.ifa_flags & IFF_LOOPBACK) != 0;
    out.push_back(std::move(a));
  });
  if (error != 0) return error;
  std::stable_sort(out.begin(), out.end(), [](const LocalAddress& x, const LocalAddress& y) {
    return x.interface_index < y.interface_index;
  });
  return out;
}

std::vector<net::FabricAddress> bare_local_addresses() {
  std::vector<net::FabricAddress> out;
  for_each_address([&](const ifaddrs& i) { out.push_back(address_of(*i.ifa_addr)); });
  return out;
}

std::string why_not_listed(int error) {
  return "cannot list the network interfaces: " + error_text(error);
}

unsigned interface_index(const std::string& name) {
  if (name.empty() || name.size() >= IFNAMSIZ) {
    errno = ENODEV;
    return 0;
  }
  const Descriptor d = any_socket();
  return d ? index_of(d.fd(), name) : 0;
}

std::string interface_name(int any_socket, unsigned index) {
  ifreq request{};
  request.ifr_ifindex = static_cast<int>(index);
  return ioctl(any_socket, SIOCGIFNAME, &request) == 0 ? request.ifr_name : "";
}

bool interface_is_running(int any_socket, const std::string& name) {
  ifreq request{};
  name.copy(request.ifr_name, IFNAMSIZ - 1);
  constexpr int kBoth = IFF_UP | IFF_RUNNING;
  return ioctl(any_socket, SIOCGIFFLAGS, &request) == 0 && (request.ifr_flags & kBoth) == kBoth;
}

std::size_t interface_mtu(const std::string& name) {
  const Descriptor d = any_socket();
  if (!d || name.size() >= IFNAMSIZ) return 0;
  ifreq request{};
  name.copy(request.ifr_name, IFNAMSIZ - 1);
  return ioctl(d.fd(), SIOCGIFMTU, &request) == 0 ? static_cast<std::size_t>(request.ifr_mtu) : 0;
}

base::BitRate interface_rate(const std::string& name) {
  const std::string path = "/sys/class/net/" + name + "/speed";
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "re"),
                                                             std::fclose);
  long mbps = 0;
  if (file == nullptr || std::fscanf(file.get(), "%ld", &mbps) != 1 || mbps <= 0) return {};
  // A tap says 10 Mb/s, whatever it carries; a window for that is a packet.
  const bool is_virtual = access(("/sys/class/net/" + name + "/device").c_str(), F_OK) != 0;
  if (is_virtual && mbps <= 10) return {};
  return base::BitRate::from_bps(static_cast<std::uint64_t>(mbps) * 1'000'000);
}

LocalAddress primary_of(std::span<const LocalAddress> all, const std::string& interface) {
  LocalAddress best;
  for (const LocalAddress& a : all) {
    if (interface.empty() ? (!a.is_up || a.is_loopback) : a.interface != interface) continue;
    // Nothing configured: addresses of a later interface do not compete with those of the first.
    if (interface.empty() && !best.interface.empty() && a.interface != best.interface &&
        best.rank < AddressRank::kLinkLocal)
      break;
    if (best.interface.empty() || a.rank < best.rank) best = a;
  }
  return best;
}

std::string loopback_warning(const net::FabricAddress& address) {
  return "no network interface but the loopback is up and has an address, so the address of this "
         "process is " +
         address.to_string() +
         ", which no other host can reach; where others should, start it when the network is up, "
         "or set FI_UET_ADDR";
}

std::string no_place_warning(const net::FabricAddress& network, const net::FabricAddress& address) {
  return "other processes leave no place at " + network.host().to_string() +
         ", so the address of this one is " + address.to_string() +
         ", which no other host can reach; where others should, set FI_UET_ADDR to a list of "
         "addresses (a|b), of which each process takes the first that is free";
}

}  // namespace uet::udp
