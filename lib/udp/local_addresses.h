/// What the kernel says about this host's interfaces and addresses. Opens no lasting descriptor,
/// needs no privilege.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "lib/base/result.h"
#include "lib/base/units.h"
#include "lib/net/fabric_address.h"
#include "lib/udp/passing_addresses.h"

namespace uet::udp {

struct LocalAddress {
  std::string interface;
  unsigned interface_index = 0;
  net::FabricAddress address;
  AddressRank rank = AddressRank::kV4;
  unsigned prefix_length = 0;
  bool is_up = false;
  bool is_loopback = false;
};

/// Every IPv4 and IPv6 address, in the kernel's order of interfaces; errno where it does not tell.
base::Result<std::vector<LocalAddress>, int> local_addresses();
/// The addresses alone, for a fraction of the time; none where the kernel does not tell.
std::vector<net::FabricAddress> bare_local_addresses();
/// What a user is told where a list was refused with errno `error`.
std::string why_not_listed(int error);

/// 0 with errno: ENODEV when there is none of this name, else why the kernel does not tell.
unsigned interface_index(const std::string& name);
/// The name that the interface with this index has now; empty: there is none. `any_socket` saves opening one.
std::string interface_name(int any_socket, unsigned index);
/// Up, and with a carrier. `any_socket` saves opening one.
bool interface_is_running(int any_socket, const std::string& name);
/// 0 when unknown.
std::size_t interface_mtu(const std::string& name);
/// What a user is told whose process has `address` because nothing is configured and no interface but the loopback is there.
std::string loopback_warning(const net::FabricAddress& address);
/// The same where there is `network`, at which other processes left no place.
std::string no_place_warning(const net::FabricAddress& network, const net::FabricAddress& address);
base::BitRate interface_rate(const std::string& name);

/// The address that a program would expect of `interface`, which is the one with the lowest rank; of the first interface that is up and
/// not the loopback when `interface` is empty. Null `interface` in the result: there is none. `all` are in the order of local_addresses().
LocalAddress primary_of(std::span<const LocalAddress> all, const std::string& interface);

}  // namespace uet::udp
