/// A NIC made of memory, under the calls that DPDK's drivers would serve: it behaves as a family of drivers does, where families differ
/// in ways that a port has to know. One at a time, found under the name of a PCI device. The test program is linked so that the calls
/// of lib/dpdk end here (meson.build); memory and mbufs are DPDK's own.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include <rte_ethdev.h>

namespace uet::dpdk {

using Frame = std::vector<std::uint8_t>;

/// What a driver says and does.
struct NicTraits {
  std::string driver = "net_plain";
  std::uint16_t mtu = 1500;  ///< that it has before it is configured
  std::uint16_t max_mtu = 9600;
  std::uint32_t max_frame = 9622;
  bool sets_mtu = true;         ///< has the call
  std::uint16_t mtu_taken = 0;  ///< what it makes of any larger one without a word; 0: takes it
  std::uint16_t descriptors_max = 4096;
  std::uint64_t rx_offloads = 0;
  std::uint64_t tx_offloads = 0;
  bool strips_tags = false;      ///< whether asked to or not
  bool filters_tags = false;     ///< passes only VLANs that were named
  std::uint16_t buffer_max = 0;  ///< longer frames come in several mbufs; 0: as long as the buffer
  bool has_interrupts = false;
  bool starts_with_interrupts = true;
  bool counts_waiting = true;  ///< rx_queue_count
  bool has_statistics = true;
  int node = 0;
  unsigned if_index = 0;
  bool can_isolate = false;
  std::uint32_t link_speed = RTE_ETH_SPEED_NUM_100G;  ///< while it has a link
  int looks_without_link = 0;                         ///< until autonegotiation has ended
};

/// mlx5: beside the kernel's driver. ice, i40e: strip only when asked, interrupts. iavf, ixgbevf: virtual functions behind a host that
/// filters or strips, and resets them. ena: a small MTU limit of its own cloud, no queue count. gve: short rings, small buffers. virtio:
/// no interrupts as asked. bnxt: takes MTUs by its own call only.
NicTraits family(const std::string& name);

class ScriptedNic {
 public:
  static constexpr std::uint16_t kPort = RTE_MAX_ETHPORTS - 1;
  static constexpr const char* kName = "0000:17:00.0";

  explicit ScriptedNic(NicTraits traits);
  ~ScriptedNic();
  static ScriptedNic& now();

  /// A frame comes in by the wire.
  void arrive(Frame frame);
  void raise(rte_eth_event_type event);

  NicTraits traits;
  rte_eth_conf conf{};
  std::uint16_t mtu = 0;
  bool is_configured = false;
  bool is_started = false;
  bool is_closed = false;
  bool is_isolated = false;
  bool has_cable = true;
  rte_ether_addr mac{{2, 0, 0, 0, 0, 0xa}};
  bool draws_mac = false;  ///< a reset gives it another MAC, as that of a VF may be
  int resets = 0;
  int resets_to_fail = 0;
  unsigned rules = 0;
  std::size_t transmit_room = SIZE_MAX;  ///< frames that it takes from now on
  std::uint16_t rx_descriptors = 0, tx_descriptors = 0;
  rte_mempool* pool = nullptr;
  rte_eth_stats statistics{};
  std::vector<std::uint16_t> vlans;
  std::deque<Frame> waiting;
  std::vector<Frame> sent;
  std::string misuse;  ///< what a driver would have done undefined things for
  bool is_armed = false;
  int event_fd = -1;

  struct Listener {
    rte_eth_event_type event;
    rte_eth_dev_cb_fn function;
    void* argument;
  };
  std::vector<Listener> listeners;
};

}  // namespace uet::dpdk
