#include "lib/dpdk/device_spec.h"

#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cctype>
#include <cstdlib>

#include "lib/dpdk/device_mtu.h"
#include "lib/dpdk/kernel_interface.h"
#include "lib/dpdk/memif_keys.h"

namespace uet::dpdk {

namespace {

// 8192 bytes of payload behind 164 bytes of headers, and a little room. [WIRE 7.2]
constexpr std::size_t kVirtualIpMtu = 8960;

bool is_pci(const std::string& name) {
  // 01:00.0 or 0000:01:00.0
  const auto is_part = [](char c) {
    return std::isxdigit(static_cast<unsigned char>(c)) || c == ':' || c == '.';
  };
  return name.find(':') != std::string::npos && name.find('.') != std::string::npos &&
         std::all_of(name.begin(), name.end(), is_part);
}

DeviceKind kind_of(const std::string& name) {
  const auto is = [&](const char* prefix) { return name.rfind(prefix, 0) == 0; };
  if (is_pci(name)) return DeviceKind::kPci;
  if (is("auxiliary:") || is("vmbus:")) return DeviceKind::kOtherBus;
  if (is("net_memif")) return DeviceKind::kMemif;
  if (is("net_af_packet") || is("eth_af_packet")) return DeviceKind::kAfPacket;
  if (is("net_af_xdp")) return DeviceKind::kAfXdp;
  if (is("net_pcap") || is("eth_pcap")) return DeviceKind::kPcap;
  if (is("net_tap")) return DeviceKind::kTap;
  if (is("net_virtio_user") || is("virtio_user")) return DeviceKind::kVirtio;
  if (is("net_bonding") || is("net_failsafe")) return DeviceKind::kTeam;
  return DeviceKind::kOtherVdev;
}

/// Where the part that begins at `at` ends: at a comma outside of brackets.
std::size_t end_of_part(const std::string& text, std::size_t at) {
  int depth = 0;
  for (; at < text.size(); ++at) {
    if (text[at] == '(' || text[at] == '[') ++depth;
    if (text[at] == ')' || text[at] == ']') --depth;
    if (text[at] == ',' && depth <= 0) break;
  }
  return at;
}

/// Of memif alone: other drivers refuse what they do not know.
bool check_arguments(const DeviceSpec& spec, std::string& error) {
  if (spec.kind != DeviceKind::kMemif) return true;
  for (const std::string& argument : spec.arguments) {
    if (argument.find('=') == std::string::npos) {
      error = "'" + argument + "' is not a setting; write key=value after the device";
      return false;
    }
    const std::string key = argument.substr(0, argument.find('='));
    if (is_memif_key(key)) continue;
    error = "unknown key '" + key + "'; " + memif_keys_sentence();
    return false;
  }
  return true;
}

void add(DeviceSpec& spec, const std::string& key, std::size_t value) {
  if (!spec.has_argument(key)) spec.arguments.push_back(key + "=" + std::to_string(value));
}

}  // namespace

bool DeviceSpec::has_argument(const std::string& key) const {
  const std::string start = key + "=";
  return std::any_of(arguments.begin(), arguments.end(),
                     [&](const std::string& a) { return a.rfind(start, 0) == 0; });
}

std::string DeviceSpec::argument(const std::string& key) const {
  const std::string start = key + "=";
  for (const std::string& a : arguments)
    if (a.rfind(start, 0) == 0) return a.substr(start.size());
  return {};
}

void DeviceSpec::set_argument(const std::string& key, const std::string& value) {
  std::erase_if(arguments, [&](const std::string& a) { return a.rfind(key + "=", 0) == 0; });
  arguments.push_back(key + "=" + value);
}

std::string DeviceSpec::devargs() const {
  std::string out = name;
  for (const std::string& a : arguments) out += "," + a;
  return out;
}

bool parse_device_spec(const std::string& text, DeviceSpec& spec, std::string& error) {
  const std::string start = "dpdk:";
  if (text.rfind(start, 0) != 0 || text.size() == start.size()) {
    error = "write dpdk:<device>, e.g. dpdk:net_memif0,role=client or dpdk:0000:01:00.0";
    return false;
  }
  std::size_t at = start.size();
  while (at <= text.size()) {
    const std::size_t end = end_of_part(text, at);
    const std::string part = text.substr(at, end - at);
    at = end + 1;
    if (spec.name.empty() && spec.arguments.empty())
      spec.name = part;
    else
      spec.arguments.push_back(part);
  }
  if (spec.name.empty()) {
    error = "the device is missing; write e.g. dpdk:net_memif0,role=client";
    return false;
  }
  spec.kind = kind_of(spec.name);
  return check_arguments(spec, error);
}

std::string why_no_plane(const DeviceSpec& spec) {
  if (spec.kind != DeviceKind::kAfPacket || spec.argument("qdisc_bypass") != "0") return {};
  return "with qdisc_bypass=0 the driver waits for an interface that does not drain, and would "
         "hold up the other planes; leave qdisc_bypass out";
}

void add_default_arguments(std::size_t ip_mtu, DeviceSpec& spec, std::size_t page) {
  const std::size_t frame = std::min(ip_mtu, kLargestIpMtu) + kFrameOverhead;
  if (spec.kind == DeviceKind::kMemif) {
    // One slot per packet: chains of the default 2 KiB slots cost a copy more on our side.
    add(spec, "bsize", (frame + 255) / 256 * 256);
    add(spec, "rsize", 9);
  } else if (spec.kind == DeviceKind::kAfPacket) {
    // The kernel puts its own header in front of each frame of the ring.
    constexpr std::size_t kKernelHeader = 96;
    if (frame + kKernelHeader <= 2048) return;
    // The driver takes frames to lie without gaps, and a block is whole pages: a block is one frame, or a page of some.
    constexpr std::size_t kSmallestPage = 4096;
    if (page == 0) page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    std::size_t slot = (frame + kKernelHeader + kSmallestPage - 1) / kSmallestPage * kSmallestPage;
    if (page > kSmallestPage) slot = std::bit_ceil(slot);
    add(spec, "framesz", slot);
    add(spec, "blocksz", std::max(slot, page));
    add(spec, "framecnt", 256);
  }
}

std::size_t packet_bytes_min(const DeviceSpec& spec) {
  // Nothing on the way tells the sender of a memif what its receiver takes: any payload that is legal.
  if (spec.kind == DeviceKind::kMemif) return kVirtualIpMtu + kFrameOverhead;
  if (spec.kind != DeviceKind::kAfPacket) return 0;
  const std::string framesz = spec.argument("framesz");
  return framesz.empty() ? 2048 : std::strtoul(framesz.c_str(), nullptr, 10);
}

std::size_t default_ip_mtu(const DeviceSpec& spec) {
  const std::size_t mtu = kernel_mtu(spec.argument("iface"));
  switch (spec.kind) {
    case DeviceKind::kAfPacket:
    case DeviceKind::kAfXdp:
    case DeviceKind::kPcap:
      return mtu != 0 ? mtu : 1500;
    case DeviceKind::kMemif:
    case DeviceKind::kVirtio:
    case DeviceKind::kOtherVdev:
      return mtu != 0 ? mtu : kVirtualIpMtu;
    case DeviceKind::kTap:
    case DeviceKind::kTeam:
    case DeviceKind::kPci:
    case DeviceKind::kOtherBus:
      return 0;  // the device knows
  }
  return 1500;
}

}  // namespace uet::dpdk
