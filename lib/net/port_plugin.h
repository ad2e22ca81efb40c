/// How a port is named, and how the DPDK plug-in library is entered.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "lib/base/hash_key.h"
#include "lib/base/trace.h"
#include "lib/net/frame_device.h"
#include "lib/net/port.h"

namespace uet::net {

/// What only ports on DPDK care for.
struct DpdkTuning {
  std::string arguments;             ///< of EAL, as on a command line
  std::uint16_t rx_descriptors = 0;  ///< 0 here and below: the usual number
  std::uint16_t tx_descriptors = 0;
  std::uint16_t burst = 0;  ///< frames that a driver is asked for, or given, at a time
};

/// Everything that opening a port may need; texts as the user wrote them.
struct PortRequest {
  std::string spec;            ///< "udp[:ifname or address]" or "dpdk:<vdev or PCI>[,key=value...]"
  unsigned plane = 0;          ///< which of the endpoint's ports this is
  unsigned planes = 1;         ///< and how many there are
  FabricAddress address;       ///< unspecified: the port's own choice
  unsigned prefix_length = 0;  ///< 0: 24 for IPv4, 64 for IPv6
  FabricAddress gateway;       ///< unspecified: none
  std::uint16_t vlan = 0;      ///< 802.1Q VID, 0 for untagged
  bool native_ip = false;      ///< FI_UET_ENCAP=ip
  std::uint16_t udp_port = 4793;
  bool may_share =
      false;  ///< its own choice may be a UDP port beside that of another process [decision 168]
  std::uint8_t ip_protocol = 253;
  std::size_t packets = 8192;            ///< pool size
  std::size_t mtu = 0;                   ///< IP MTU wanted, 0 for the device's own
  base::HashKey hash_key{base::Rng(1)};  ///< of tables whose keys other hosts choose
  DpdkTuning dpdk;
};

/// Opens a port or returns null with a sentence in `error` that says what to do. With a port `error` is empty, or what the user should
/// know about it.
/// `trace` counts drops of the port; it must outlive the port.
using OpenPortFunction = std::unique_ptr<Port> (*)(const PortRequest& request, base::Trace& trace,
                                                   std::string& error);

/// Symbol in libuet-dpdk.so of a text that equals kPluginAbi (plugin_abi.h) when both were built from the same declarations.
inline constexpr const char* kDpdkPluginAbi = "uet_dpdk_plugin_abi";

/// Symbol of that function in libuet-dpdk.so.
inline constexpr const char* kDpdkPluginEntry = "uet_open_dpdk_port";

/// What opening a device takes when no IP host shall sit on it: a software switch has several.
struct FrameDeviceRequest {
  std::string spec;            ///< "dpdk:<vdev or PCI>[,key=value...]"
  std::size_t packets = 1024;  ///< pool size
  std::size_t mtu = 0;         ///< IP MTU wanted, 0 for the device's own
  std::size_t mac_seed = 0;    ///< for devices without an address
  std::size_t devices = 1;     ///< that the process will open in all: sizes its memory
};

/// Opens a device that takes frames for every address, or returns null with a sentence in `error`.
using OpenFrameDeviceFunction = std::unique_ptr<FrameDevice> (*)(const FrameDeviceRequest& request,
                                                                 base::Trace& trace,
                                                                 std::string& error);

/// Symbol of that function in libuet-dpdk.so.
inline constexpr const char* kDpdkFrameEntry = "uet_open_dpdk_frame_device";

}  // namespace uet::net
