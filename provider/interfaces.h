/// What the kernel says about network interfaces, for choosing an address and for the nic
/// attributes of fi_info.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lib/base/result.h"
#include "lib/net/fabric_address.h"

namespace uet::provider {

struct PciAddress {
  std::uint16_t domain = 0;
  std::uint8_t bus = 0;
  std::uint8_t device = 0;
  std::uint8_t function = 0;
};
/// "0000:01:00.0" or "01:00.0".
std::optional<PciAddress> parse_pci_address(const std::string& text);

struct Interface {
  std::string name;
  bool is_up = false;
  bool is_loopback = false;
  std::size_t mtu = 0;
  std::uint64_t bits_per_second = 0;  ///< 0 when unknown
  std::string mac;
  std::string driver;
  std::optional<PciAddress> pci;
  std::vector<net::FabricAddress>
      addresses;  ///< in the order of udp::AddressRank; no link-local IPv6

  /// The address a port on this interface uses by default.
  std::optional<net::FabricAddress> primary() const;
};

/// In the kernel's order; errno where the kernel does not tell.
base::Result<std::vector<Interface>, int> list_interfaces();

/// The interface that holds `address`; all of 127.0.0.0/8 is on the loopback interface.
const Interface* find_interface(const std::vector<Interface>& all, net::FabricAddress address);

}  // namespace uet::provider
