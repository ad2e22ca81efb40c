#include "lib/dpdk/memory_nodes.h"

#include <dirent.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>

namespace uet::dpdk {

namespace {

namespace fs = std::filesystem;

std::string node_folder(const std::string& sys, std::size_t node) {
  return sys + "/devices/system/node/node" + std::to_string(node);
}

/// `fallback` where there is no such file or no number in it.
long number_in(const std::string& path, long fallback) {
  std::ifstream file(path);
  long number = 0;
  return file >> number ? number : fallback;
}

std::size_t free_bytes_in(const std::string& folder) {
  std::size_t total = 0;
  for (const std::size_t kib : {std::size_t{2048}, std::size_t{1048576}}) {
    const long pages =
        number_in(folder + "/hugepages-" + std::to_string(kib) + "kB/free_hugepages", 0);
    total += static_cast<std::size_t>(std::max(pages, 0L)) * kib * 1024;
  }
  return total;
}

/// One more than the number of the last node; numbers may be missing between. Not by std::filesystem, whose iterator ends the process
/// where it finds no memory.
std::size_t node_count(const std::string& sys) {
  const std::string path = sys + "/devices/system/node";
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir(path.c_str()), closedir);
  std::size_t count = 0;
  while (const dirent* const entry = folder == nullptr ? nullptr : readdir(folder.get())) {
    const std::string name = entry->d_name;
    const bool is_node =
        name.rfind("node", 0) == 0 && name.size() > 4 && name.size() < 8 &&
        std::all_of(name.begin() + 4, name.end(), [](char c) { return c >= '0' && c <= '9'; });
    if (is_node) count = std::max(count, std::stoul(name.substr(4)) + 1);
  }
  return count;
}

bool has_cpu(const std::string& sys, std::size_t node, int cpu) {
  return fs::exists(node_folder(sys, node) + "/cpu" + std::to_string(cpu));
}

/// Where the kernel describes the device; empty: nowhere.
std::string folder_of(const DeviceSpec& spec, const std::string& sys) {
  if (spec.kind == DeviceKind::kPci) {
    const bool has_domain = std::count(spec.name.begin(), spec.name.end(), ':') == 2;
    return sys + "/bus/pci/devices/" + (has_domain ? "" : "0000:") + spec.name;
  }
  if (spec.kind == DeviceKind::kOtherBus) {
    const std::size_t colon = spec.name.find(':');
    const std::string device =
        sys + "/bus/" + spec.name.substr(0, colon) + "/devices/" + spec.name.substr(colon + 1);
    // A sub-function is where its parent is.
    return fs::exists(device + "/numa_node") ? device : device + "/..";
  }
  const std::string interface = spec.argument("iface");
  return interface.empty() ? "" : sys + "/class/net/" + interface + "/device";
}

}  // namespace

std::vector<std::size_t> free_hugepages(const std::string& sys) {
  const std::size_t nodes = node_count(sys);
  if (nodes == 0) return {free_bytes_in(sys + "/kernel/mm/hugepages")};
  std::vector<std::size_t> bytes(nodes);
  for (std::size_t node = 0; node < nodes; ++node)
    bytes[node] = free_bytes_in(node_folder(sys, node) + "/hugepages");
  return bytes;
}

int node_of_device(const DeviceSpec& spec, const std::string& sys) {
  const std::string folder = folder_of(spec, sys);
  return folder.empty() ? kAnyNode : static_cast<int>(number_in(folder + "/numa_node", kAnyNode));
}

int node_of_cpus(const std::vector<int>& cpus, const std::string& sys) {
  for (std::size_t node = 0; node < node_count(sys); ++node) {
    const auto is_there = [&](int cpu) { return has_cpu(sys, node, cpu); };
    if (!cpus.empty() && std::all_of(cpus.begin(), cpus.end(), is_there))
      return static_cast<int>(node);
  }
  return kAnyNode;
}

}  // namespace uet::dpdk
