/// Which MTU a device runs with: what the user wants, what the interface of the kernel under it carries, and what its driver says.
#pragma once

#include <cstddef>
#include <string>

#include "lib/dpdk/device_spec.h"

namespace uet::dpdk {

struct MtuInputs {
  std::size_t wanted = 0;      ///< by the user; 0: nothing said
  std::size_t suggested = 0;   ///< of this kind of device; 0: the device's own
  std::size_t own = 0;         ///< that the device has now; 0: unknown
  std::size_t device_max = 0;  ///< that its driver names; 0: none, or one that is not meant
  std::size_t kernel = 0;      ///< of the interface under it; 0: none
};

struct MtuChoice {
  std::size_t ip_mtu = 0;  ///< 0: `error` says why not
  std::string remark;      ///< a sentence when it is less than what was to be expected; else empty
  std::string error;
};

/// Of a frame beside its IP packet: the Ethernet header and two VLAN tags.
inline constexpr std::size_t kFrameOverhead = 14 + 2 * 4;

/// An interface that carries more is used with this.
inline constexpr std::size_t kLargestIpMtu = 16128;

/// Without a wish of the user the MTU is cut to what all can carry; a wish that one of them cannot carry is refused.
MtuChoice choose_mtu(const MtuInputs& in);

/// Whether the driver of such a device is asked to set the MTU, and passes nothing larger.
bool has_real_mtu(DeviceKind kind);
/// Whether the limit that it names is meant. Several virtual ones name a limit that they do not have, and carry what fits their buffers.
bool names_real_mtu_max(DeviceKind kind);

/// af_xdp lays each buffer into one page: what is left in it for the bytes of a packet behind the headroom, and the largest IP MTU then.
std::size_t af_xdp_packet_bytes();
std::size_t af_xdp_mtu_max();

}  // namespace uet::dpdk
