/// What the kernel knows about the network interface under a device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "lib/net/fabric_address.h"

namespace uet::dpdk {

/// The IP MTU of this interface; 0 when there is none of that name.
std::size_t kernel_mtu(const std::string& interface);

enum class KernelLink : std::uint8_t {
  kUp,  ///< and with a carrier
  kDown,
  kGone,  ///< no interface has this index
};

/// By its index: devices stay with the interface that they were opened on, whatever its name becomes and whichever has that name later.
KernelLink kernel_link(unsigned index);

/// Whether the kernel has this address, on this interface or (empty) on whatever one.
bool kernel_owns(const net::FabricAddress& address, const std::string& interface = "");

/// Whether the kernel speaks IP on this interface. The link-local addresses that every IPv6 interface has do not count.
bool kernel_uses(const std::string& interface);

/// 0 when there is none of that name.
unsigned interface_index(const std::string& interface);

/// The name behind an index; empty when there is none.
std::string interface_name(unsigned index);

}  // namespace uet::dpdk
