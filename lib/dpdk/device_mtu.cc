#include "lib/dpdk/device_mtu.h"

#include <rte_mbuf.h>
#include <rte_mempool.h>
#include <unistd.h>

#include <algorithm>

#include "lib/net/packet.h"

namespace uet::dpdk {

namespace {

constexpr std::size_t kSmallest = 1280;
// What the kernel keeps free in front of each frame of an AF_XDP socket.
constexpr std::size_t kXdpHeadroom = 256;

std::string text_of(std::size_t mtu) {
  return "MTU " + std::to_string(mtu);
}

}  // namespace

MtuChoice choose_mtu(const MtuInputs& in) {
  MtuChoice out;
  const std::size_t expected = in.wanted != 0      ? in.wanted
                               : in.suggested != 0 ? std::min(in.suggested, kLargestIpMtu)
                               : in.own != 0       ? in.own
                                                   : 1500;
  if (expected < kSmallest || expected > kLargestIpMtu) {
    out.error = text_of(expected) + " is outside 1280 to 16128; set FI_UET_MTU";
    return out;
  }
  std::size_t limit = in.device_max != 0 ? in.device_max : kLargestIpMtu;
  std::string whose = "the driver carries at most " + text_of(limit);
  if (in.kernel != 0 && in.kernel < limit) {
    limit = in.kernel;
    whose = "the interface under it has " + text_of(limit);
  }
  if (expected <= limit) {
    out.ip_mtu = expected;
    return out;
  }
  if (limit < kSmallest) {
    out.error = whose + "; 1280 is the least that UET runs with";
    return out;
  }
  if (in.wanted != 0) {
    out.error = whose + ", which is less than FI_UET_MTU=" + std::to_string(in.wanted);
    return out;
  }
  out.ip_mtu = limit;
  out.remark = whose + " instead of " + std::to_string(expected) +
               "; peers must have the same: set FI_UET_MTU=" + std::to_string(limit) + " there";
  return out;
}

bool has_real_mtu(DeviceKind kind) {
  return kind == DeviceKind::kPci || kind == DeviceKind::kOtherBus || kind == DeviceKind::kTap ||
         kind == DeviceKind::kVirtio || kind == DeviceKind::kTeam;
}

bool names_real_mtu_max(DeviceKind kind) {
  // The least of its members' limits, some of which may be none.
  return has_real_mtu(kind) && kind != DeviceKind::kTeam;
}

std::size_t af_xdp_packet_bytes() {
  const auto page = static_cast<std::uint32_t>(sysconf(_SC_PAGESIZE));
  constexpr std::uint32_t kInFront =
      sizeof(rte_mbuf) + sizeof(net::PacketBuffer) + net::PacketPool::kHeadroom;
  // The mempool adds a header, and room that spreads the objects over the memory channels.
  std::uint32_t element = page;
  while (element > kInFront && rte_mempool_calc_obj_size(element, 0, nullptr) > page)
    element -= RTE_CACHE_LINE_SIZE;
  return element - kInFront;
}

std::size_t af_xdp_mtu_max() {
  return af_xdp_packet_bytes() - kXdpHeadroom - kFrameOverhead;
}

}  // namespace uet::dpdk
