/// Leaving the kernel its traffic: NICs whose driver works beside the kernel's (mlx4, mlx5) give a DPDK port all unicast traffic of the
/// interface unless told otherwise. Isolated, a port gets what its rules name.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lib/net/fabric_address.h"

struct rte_flow;

namespace uet::dpdk {

/// The packets that an endpoint wants.
struct FlowTarget {
  net::FabricAddress address;
  std::uint16_t udp_port = 4793;
  bool native_ip = false;
  std::uint8_t ip_protocol = 253;
  std::uint16_t vlan = 0;
};

/// Whether a driver of this name shares its device with the kernel.
bool is_bifurcated(const std::string& driver);

/// Before the port is configured. False: `error` is what the driver said.
bool isolate_flows(std::uint16_t port, std::string& error);

/// On a started port: what `target` names goes to `queue`, the rest stays with the kernel.
bool steer_flows(std::uint16_t port, std::uint16_t queue, const FlowTarget& target,
                 std::string& error);

}  // namespace uet::dpdk
