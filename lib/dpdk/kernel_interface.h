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

/// The interface under an open device, by its index: devices stay with the one that they were opened on, whatever its name becomes and
/// whichever has that name later. Has a socket to ask with, and so answers where the process has no descriptor left. One thread.
class KernelInterface {
 public:
  KernelInterface() = default;
  KernelInterface(const KernelInterface&) = delete;
  KernelInterface& operator=(const KernelInterface&) = delete;
  ~KernelInterface();

  /// Finds the interface with this name, once. False with errno: ENODEV when there is none, else why the kernel does not tell.
  bool open(const std::string& name);
  bool is_open() const { return index_ != 0; }
  /// Of an open one. Where the kernel gives no answer, its last one.
  KernelLink link();

 private:
  int socket_ = -1;
  unsigned index_ = 0;
  KernelLink link_ = KernelLink::kDown;
};

/// Whether the kernel has this address, on this interface or (empty) on whatever one.
bool kernel_owns(const net::FabricAddress& address, const std::string& interface = "");

/// Whether the kernel speaks IP on this interface. The link-local addresses that every IPv6 interface has do not count.
bool kernel_uses(const std::string& interface);

/// The name behind an index. Empty with errno: ENODEV when there is none, else why the kernel does not tell.
std::string interface_name(unsigned index);

}  // namespace uet::dpdk
