#include "provider/interfaces.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>

#include "lib/udp/passing_addresses.h"

namespace uet::provider {
namespace {

std::string read_line(const std::string& path) {
  std::ifstream in(path);
  std::string line;
  std::getline(in, line);
  return line;
}

std::string link_name(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::read_symlink(path, ignored).filename().string();
}

std::uint64_t number_or_zero(const std::string& text) {
  const long long n = std::atoll(text.c_str());
  return n > 0 ? static_cast<std::uint64_t>(n) : 0;
}

Interface describe_interface(const char* name, unsigned flags) {
  const std::string dir = std::string("/sys/class/net/") + name;
  Interface out;
  out.name = name;
  out.is_up = (flags & IFF_UP) != 0 && (flags & IFF_RUNNING) != 0;
  out.is_loopback = (flags & IFF_LOOPBACK) != 0;
  out.mtu = number_or_zero(read_line(dir + "/mtu"));
  out.bits_per_second = number_or_zero(read_line(dir + "/speed")) * 1'000'000;
  out.mac = read_line(dir + "/address");
  out.driver = link_name(dir + "/device/driver");
  out.pci = parse_pci_address(link_name(dir + "/device"));
  return out;
}

std::optional<net::FabricAddress> address_of(const sockaddr* address) {
  if (address->sa_family == AF_INET) {
    sockaddr_in v4;
    std::memcpy(&v4, address, sizeof v4);
    return net::FabricAddress::from_v4(ntohl(v4.sin_addr.s_addr));
  }
  if (address->sa_family == AF_INET6) {
    sockaddr_in6 v6;
    std::memcpy(&v6, address, sizeof v6);
    if (IN6_IS_ADDR_LINKLOCAL(&v6.sin6_addr)) return std::nullopt;
    std::array<std::uint8_t, 16> bytes;
    std::memcpy(bytes.data(), &v6.sin6_addr, bytes.size());
    return net::FabricAddress::from_v6(bytes);
  }
  return std::nullopt;
}

}  // namespace

std::optional<PciAddress> parse_pci_address(const std::string& text) {
  unsigned domain = 0, bus = 0, device = 0, function = 0;
  int used = 0;
  const auto is_whole = [&](int fields, int wanted) {
    return fields == wanted && used == static_cast<int>(text.size());
  };
  if (!is_whole(
          std::sscanf(text.c_str(), "%4x:%2x:%2x.%1x%n", &domain, &bus, &device, &function, &used),
          4)) {
    domain = 0;
    used = 0;
    if (!is_whole(std::sscanf(text.c_str(), "%2x:%2x.%1x%n", &bus, &device, &function, &used), 3)) {
      return std::nullopt;
    }
  }
  return PciAddress{static_cast<std::uint16_t>(domain), static_cast<std::uint8_t>(bus),
                    static_cast<std::uint8_t>(device), static_cast<std::uint8_t>(function)};
}

std::optional<net::FabricAddress> Interface::primary() const {
  if (addresses.empty()) return std::nullopt;
  return addresses.front();
}

base::Result<std::vector<Interface>, int> list_interfaces() {
  ifaddrs* head = nullptr;
  if (getifaddrs(&head) != 0) return errno;
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(head, freeifaddrs);
  std::vector<Interface> out;
  for (const ifaddrs* entry = head; entry != nullptr; entry = entry->ifa_next) {
    auto at = std::ranges::find(out, std::string_view(entry->ifa_name), &Interface::name);
    if (at == out.end()) {
      out.push_back(describe_interface(entry->ifa_name, entry->ifa_flags));
      at = out.end() - 1;
    }
    if (entry->ifa_addr == nullptr) continue;
    if (const auto address = address_of(entry->ifa_addr)) at->addresses.push_back(*address);
  }
  const auto passing = udp::PassingAddresses::read();
  for (Interface& i : out) {
    std::ranges::stable_sort(
        i.addresses, {}, [&](const net::FabricAddress& a) { return passing.rank_of(i.name, a); });
  }
  return out;
}

const Interface* find_interface(const std::vector<Interface>& all, net::FabricAddress address) {
  for (const Interface& i : all) {
    if (std::ranges::find(i.addresses, address.host()) != i.addresses.end()) return &i;
  }
  if (address.is_v4() && address.is_loopback()) {
    const auto at = std::ranges::find_if(all, &Interface::is_loopback);
    if (at != all.end()) return &*at;
  }
  return nullptr;
}

}  // namespace uet::provider
