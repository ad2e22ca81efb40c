/// Which memory of the machine is where: hugepages by node, and the nodes of devices and CPUs.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "lib/dpdk/device_spec.h"

namespace uet::dpdk {

inline constexpr int kAnyNode = -1;

/// Bytes in free hugepages, by node. A kernel that knows no nodes has one. `sys`: where sysfs is.
std::vector<std::size_t> free_hugepages(const std::string& sys = "/sys");

/// The node of a device, or of the kernel's interface under it; kAnyNode when the kernel does not say.
int node_of_device(const DeviceSpec& spec, const std::string& sys = "/sys");

/// The node that has all of these CPUs; kAnyNode when none does.
int node_of_cpus(const std::vector<int>& cpus, const std::string& sys = "/sys");

}  // namespace uet::dpdk
