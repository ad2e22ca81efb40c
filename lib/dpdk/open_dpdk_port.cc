/// The entry of libuet-dpdk.so.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "lib/dpdk/dpdk_device.h"
#include "lib/dpdk/eal.h"
#include "lib/dpdk/kernel_interface.h"
#include "lib/dpdk/kernel_neighbors.h"
#include "lib/dpdk/memory_nodes.h"
#include "lib/net/forked_child.h"
#include "lib/net/ip_port.h"
#include "lib/net/plugin_abi.h"
#include "lib/net/port_plugin.h"
#include "lib/net/port_wrapper.h"

namespace uet::dpdk {

namespace {

using net::FabricAddress;

/// Behind an af_packet or pcap device the kernel sees every frame too. When it owns our address it answers
/// ARP, Neighbor Discovery and echo, so we must not; and a socket that is not read keeps it from
/// refusing UET packets with ICMP errors.
class KernelClaim {
 public:
  ~KernelClaim() {
    if (fd_ >= 0) close(fd_);
  }

  /// False: errno says why.
  bool take(const FabricAddress& address, std::uint16_t port) {
    sockaddr_in v4{};
    v4.sin_family = AF_INET;
    v4.sin_port = htons(port);
    v4.sin_addr.s_addr = htonl(address.v4());
    sockaddr_in6 v6{};
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(port);
    std::memcpy(&v6.sin6_addr, address.bytes().data(), 16);
    fd_ = socket(address.is_v4() ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd_ < 0) return false;
    const int smallest = 0;
    setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &smallest, sizeof smallest);
    return address.is_v4() ? bind(fd_, reinterpret_cast<const sockaddr*>(&v4), sizeof v4) == 0
                           : bind(fd_, reinterpret_cast<const sockaddr*>(&v6), sizeof v6) == 0;
  }
  void abandon_in_child() const { net::make_null(fd_); }

 private:
  int fd_ = -1;
};

/// An IpPort that lives as long as the claim on the kernel's port.
class ClaimedPort final : public net::PortWrapper {
 public:
  ClaimedPort(std::unique_ptr<net::IpPort> port, std::unique_ptr<KernelClaim> claim)
      : PortWrapper(std::move(port)), claim_(std::move(claim)) {}
  void abandon_in_child() override {
    claim_->abandon_in_child();
    PortWrapper::abandon_in_child();
  }

 private:
  std::unique_ptr<KernelClaim> claim_;
};

std::size_t descriptors_of(const DpdkDeviceConfig& config) {
  constexpr std::size_t kUsual = 1024;
  return std::max<std::size_t>(config.rx_descriptors, kUsual) +
         std::max<std::size_t>(config.tx_descriptors, kUsual);
}

/// Starts EAL, unless it runs, with the user's `arguments` and memory for `devices` of this kind.
std::unique_ptr<DpdkDevice> open_device(DpdkDeviceConfig& config, std::size_t devices,
                                        const std::string& arguments, base::Trace& trace,
                                        std::string& error) {
  DeviceSpec& spec = config.spec;
  const std::size_t wanted = config.ip_mtu != 0 ? config.ip_mtu : default_ip_mtu(spec);
  if (wanted != 0) add_default_arguments(wanted, spec);
  EalNeeds needs{.user_arguments = arguments};
  if (spec.is_hardware()) needs.device = spec.devargs();
  needs.single_file = spec.kind == DeviceKind::kMemif && spec.argument("zero-copy") == "yes";
  needs.is_pci = spec.kind == DeviceKind::kPci;
  needs.node = node_of_device(spec);
  // The largest MTU when only the device knows it.
  const std::size_t largest = std::max(wanted != 0 ? wanted + 1024 : 9728, packet_bytes_min(spec));
  needs.memory_bytes =
      devices * MbufPool::memory_bytes(config.packets + descriptors_of(config), largest);
  if (!ensure_eal(needs, error)) return nullptr;
  return DpdkDevice::open(config, trace, error);
}

void configure(const net::PortRequest& request, DpdkDeviceConfig& config) {
  config.packets = request.packets;
  config.ip_mtu = request.mtu;
  config.vlan = request.vlan;
  config.rx_descriptors = request.dpdk.rx_descriptors;
  config.tx_descriptors = request.dpdk.tx_descriptors;
  config.burst = request.dpdk.burst;
  config.has_siblings = request.planes > 1;
  config.sends_own_pool_only = request.planes == 1;
  config.mac_seed = request.address.hash() + request.plane;
  config.flow = FlowTarget{.address = request.address,
                           .udp_port = request.udp_port,
                           .native_ip = request.native_ip,
                           .ip_protocol = request.ip_protocol,
                           .vlan = request.vlan};
}

std::unique_ptr<net::Port> open_port(const net::PortRequest& request, base::Trace& trace,
                                     std::string& error) {
  DpdkDeviceConfig device_config;
  net::IpPortConfig ip_config;
  if (!parse_device_spec(request.spec, device_config.spec, error) ||
      !net::read_ip_config(request, ip_config, error))
    return nullptr;
  DeviceSpec& spec = device_config.spec;
  if (request.planes > 1 && !(error = why_no_plane(spec)).empty()) return nullptr;
  std::unique_ptr<KernelClaim> claim;
  if (spec.is_seen_by_kernel() && kernel_owns(request.address)) {
    claim = std::make_unique<KernelClaim>();
    // The first of several planes claims for all: their address is one.
    if (!request.native_ip && request.plane == 0 &&
        !claim->take(request.address, request.udp_port)) {
      error = "address in use: UDP port " + std::to_string(request.udp_port) + " of " +
              request.address.to_string() + ": " + std::strerror(errno);
      return nullptr;
    }
    ip_config.answers = false;
  }
  configure(request, device_config);
  auto device = open_device(device_config, request.planes, request.dpdk.arguments, trace, error);
  if (device == nullptr) return nullptr;
  // Isolated, the device brings no ARP and no Neighbor Discovery: the kernel answers, and is asked.
  if (device->is_shared_with_kernel()) {
    ip_config.answers = false;
    std::string why;
    ip_config.resolver = KernelNeighbors::open(device->interface(), why);
    if (ip_config.resolver == nullptr) {
      error = why;
      return nullptr;
    }
  }
  auto port = std::make_unique<net::IpPort>(std::move(device), ip_config, trace);
  if (claim == nullptr) return port;
  return std::make_unique<ClaimedPort>(std::move(port), std::move(claim));
}

std::unique_ptr<net::FrameDevice> open_frame_device(const net::FrameDeviceRequest& request,
                                                    base::Trace& trace, std::string& error) {
  DpdkDeviceConfig config{.packets = request.packets,
                          .ip_mtu = request.mtu,
                          .mac_seed = request.mac_seed,
                          .promiscuous = true};
  if (!parse_device_spec(request.spec, config.spec, error)) return nullptr;
  return open_device(config, request.devices, "", trace, error);
}

}  // namespace
}  // namespace uet::dpdk

extern "C" __attribute__((visibility("default"))) constinit const char* const uet_dpdk_plugin_abi =
    uet::net::kPluginAbi;

/// A net::OpenPortFunction, found by name (net::kDpdkPluginEntry).
extern "C" __attribute__((visibility("default"))) std::unique_ptr<uet::net::Port>
uet_open_dpdk_port(const uet::net::PortRequest& request, uet::base::Trace& trace,
                   std::string& error) {
  auto port = uet::dpdk::open_port(request, trace, error);
  if (port == nullptr && error.rfind(request.spec, 0) != 0) error = request.spec + ": " + error;
  return port;
}

/// A net::OpenFrameDeviceFunction, found by name (net::kDpdkFrameEntry).
extern "C" __attribute__((visibility("default"))) std::unique_ptr<uet::net::FrameDevice>
uet_open_dpdk_frame_device(const uet::net::FrameDeviceRequest& request, uet::base::Trace& trace,
                           std::string& error) {
  auto device = uet::dpdk::open_frame_device(request, trace, error);
  if (device == nullptr && error.rfind(request.spec, 0) != 0) error = request.spec + ": " + error;
  return device;
}
