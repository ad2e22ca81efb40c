/// What the user wrote behind "dpdk:", and what we add to it for the drivers whose defaults do not
/// suit UET.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace uet::dpdk {

/// kTeam: bonding and failsafe, which are made of other devices. The last two are hardware: a PCI function, or a device of another bus
/// (sub-functions on the auxiliary bus, VMBus).
enum class DeviceKind {
  kMemif,
  kAfPacket,
  kAfXdp,
  kPcap,
  kTap,
  kVirtio,
  kTeam,
  kOtherVdev,
  kPci,
  kOtherBus
};

struct DeviceSpec {
  DeviceKind kind = DeviceKind::kOtherVdev;
  std::string name;                    ///< "net_memif0", "0000:01:00.0", "auxiliary:mlx5_core.sf.2"
  std::vector<std::string> arguments;  ///< "role=server"

  bool has_argument(const std::string& key) const;
  /// The value of `key`, or empty.
  std::string argument(const std::string& key) const;
  void set_argument(const std::string& key, const std::string& value);
  /// As DPDK wants it: name and arguments, joined by commas.
  std::string devargs() const;
  bool is_hardware() const { return kind == DeviceKind::kPci || kind == DeviceKind::kOtherBus; }
  bool is_memif_client() const {
    return kind == DeviceKind::kMemif && argument("role") != "server";
  }
  bool is_memif_server() const {
    return kind == DeviceKind::kMemif && argument("role") == "server";
  }
  /// A client whose peer reads and writes our packets where they lie.
  bool is_without_copying() const { return is_memif_client() && argument("zero-copy") == "yes"; }
  /// Whether frames also pass the kernel, which answers for its addresses: what it does with the interface under the device.
  bool is_seen_by_kernel() const {
    return kind == DeviceKind::kAfPacket || (kind == DeviceKind::kPcap && has_argument("iface"));
  }
};

/// `text` is the whole spec, "dpdk:..."; false and a sentence in `error` when it is malformed. Of most drivers the arguments are
/// passed on as they are, be they key=value, a word, or brackets with commas inside.
bool parse_device_spec(const std::string& text, DeviceSpec& spec, std::string& error);

/// Why this device cannot be one of several planes; empty: it can.
std::string why_no_plane(const DeviceSpec& spec);

/// Adds the arguments that carry packets of `ip_mtu` in one piece, where the user said nothing
/// about it. `page`: bytes of a page of memory; 0: as on this machine.
void add_default_arguments(std::size_t ip_mtu, DeviceSpec& spec, std::size_t page = 0);

/// What a packet buffer must hold whatever the MTU: af_packet insists on room for a whole slot of its ring, and the other side of a
/// memif may have a larger MTU.
std::size_t packet_bytes_min(const DeviceSpec& spec);

/// The IP MTU when neither the user nor the device has an opinion; 0: the device has one.
std::size_t default_ip_mtu(const DeviceSpec& spec);

}  // namespace uet::dpdk
