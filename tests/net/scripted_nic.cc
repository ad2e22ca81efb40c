#include "tests/net/scripted_nic.h"

#include <rte_dev.h>
#include <rte_errno.h>
#include <rte_flow.h>
#include <rte_mbuf.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "lib/base/check.h"

namespace uet::dpdk {

namespace {

constexpr std::size_t kTag = 4;
constexpr std::size_t kEthernet = 14;

ScriptedNic* current = nullptr;

bool has_tag(const Frame& frame) {
  return frame.size() > kEthernet + kTag && frame[12] == 0x81 && frame[13] == 0x00;
}

std::uint16_t tag_of(const Frame& frame) {
  return static_cast<std::uint16_t>(frame[14] << 8 | frame[15]);
}

/// The frame in mbufs of the queue's pool, as long as each may be; null when there are none.
rte_mbuf* mbufs_of(const ScriptedNic& nic, const Frame& frame) {
  const std::size_t step = nic.traits.buffer_max != 0 ? nic.traits.buffer_max : frame.size();
  rte_mbuf* head = nullptr;
  for (std::size_t at = 0; at < frame.size(); at += step) {
    rte_mbuf* part = rte_pktmbuf_alloc(nic.pool);
    const std::size_t bytes = std::min(step, frame.size() - at);
    if (part == nullptr) break;
    std::memcpy(rte_pktmbuf_append(part, static_cast<std::uint16_t>(bytes)), frame.data() + at,
                bytes);
    if (head == nullptr)
      head = part;
    else
      rte_pktmbuf_chain(head, part);
  }
  if (head != nullptr && rte_pktmbuf_pkt_len(head) == frame.size()) return head;
  rte_pktmbuf_free(head);
  return nullptr;
}

rte_mbuf* receive_one(ScriptedNic& nic) {
  Frame frame = std::move(nic.waiting.front());
  nic.waiting.pop_front();
  std::uint16_t tag = 0;
  const bool is_stripped = nic.traits.strips_tags && has_tag(frame);
  if (is_stripped) {
    tag = tag_of(frame);
    frame.erase(frame.begin() + 12, frame.begin() + 16);
  }
  rte_mbuf* mbuf = mbufs_of(nic, frame);
  if (mbuf == nullptr) {
    ++nic.statistics.rx_nombuf;
    return nullptr;
  }
  if (is_stripped) {
    mbuf->ol_flags |= RTE_MBUF_F_RX_VLAN | RTE_MBUF_F_RX_VLAN_STRIPPED;
    mbuf->vlan_tci = tag;
  }
  return mbuf;
}

std::uint16_t receive_burst(void* queue, rte_mbuf** out, std::uint16_t count) {
  auto& nic = *static_cast<ScriptedNic*>(queue);
  if (!nic.is_started) nic.misuse = "received from while stopped";
  std::uint16_t n = 0;
  while (n < count && !nic.waiting.empty())
    if (rte_mbuf* mbuf = receive_one(nic)) out[n++] = mbuf;
  return n;
}

std::uint16_t transmit_burst(void* queue, rte_mbuf** in, std::uint16_t count) {
  auto& nic = *static_cast<ScriptedNic*>(queue);
  if (!nic.is_started) nic.misuse = "sent to while stopped";
  std::uint16_t n = 0;
  for (; n < count && nic.transmit_room > 0; ++n, --nic.transmit_room) {
    const auto* const bytes = rte_pktmbuf_mtod(in[n], const std::uint8_t*);
    nic.sent.emplace_back(bytes, bytes + in[n]->data_len);
    const bool frees_fast = (nic.conf.txmode.offloads & RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE) != 0;
    if (frees_fast && (in[n]->pool != nic.pool || rte_mbuf_refcnt_read(in[n]) != 1))
      nic.misuse = "given a foreign mbuf to free fast";
    rte_pktmbuf_free(in[n]);
  }
  return n;
}

std::uint32_t count_waiting(void* queue) {
  return static_cast<std::uint32_t>(static_cast<ScriptedNic*>(queue)->waiting.size());
}

void connect_bursts(ScriptedNic& nic) {
  static void* data[1];
  data[0] = &nic;
  auto& ops = rte_eth_fp_ops[ScriptedNic::kPort];
  ops.rx_pkt_burst = receive_burst;
  ops.tx_pkt_burst = transmit_burst;
  ops.rx_queue_count = nic.traits.counts_waiting ? count_waiting : nullptr;
  ops.rxq.data = data;
  ops.txq.data = data;
}

}  // namespace

NicTraits family(const std::string& name) {
  constexpr std::uint64_t kFilter = RTE_ETH_RX_OFFLOAD_VLAN_FILTER;
  constexpr std::uint64_t kFastFree = RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE;
  if (name == "mlx5")
    return {.driver = "mlx5_pci",
            .mtu = 9000,
            .max_mtu = 65535,
            .max_frame = 65536,
            .tx_offloads = kFastFree,
            .has_interrupts = true,
            .counts_waiting = true,
            .if_index = 1,
            .can_isolate = true};
  if (name == "ice")
    return {.driver = "net_ice",
            .max_mtu = 9702,
            .max_frame = 9728,
            .rx_offloads = kFilter,
            .tx_offloads = kFastFree,
            .has_interrupts = true};
  if (name == "iavf")
    return {.driver = "net_iavf",
            .max_mtu = 9702,
            .max_frame = 9728,
            .rx_offloads = kFilter,
            .tx_offloads = kFastFree,
            .filters_tags = true,
            .has_interrupts = true,
            .starts_with_interrupts = false};
  if (name == "ixgbevf")
    return {.driver = "net_ixgbe_vf",
            .max_mtu = 9710,
            .max_frame = 9728,
            .mtu_taken = 1500,
            .strips_tags = true};
  if (name == "ena")
    return {.driver = "net_ena",
            .mtu = 9001,
            .max_mtu = 9216,
            .max_frame = 9234,
            .descriptors_max = 1024,
            .has_interrupts = true,
            .counts_waiting = false};
  if (name == "gve")
    return {.driver = "net_gve",
            .mtu = 1460,
            .max_mtu = 1460,
            .max_frame = 1482,
            .sets_mtu = false,
            .descriptors_max = 512,
            .buffer_max = 2048};
  if (name == "virtio")
    return {.driver = "net_virtio",
            .max_mtu = 9698,
            .max_frame = 9728,
            .descriptors_max = 256,
            .counts_waiting = false};
  if (name == "bnxt")
    return {.driver = "net_bnxt",
            .max_mtu = 9500,
            .max_frame = 9526,
            .tx_offloads = kFastFree,
            .buffer_max = 4096};
  return {};
}

ScriptedNic::ScriptedNic(NicTraits t) : traits(std::move(t)), mtu(traits.mtu) {
  UET_CHECK(current == nullptr);
  current = this;
  event_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  connect_bursts(*this);
}

ScriptedNic::~ScriptedNic() {
  close(event_fd);
  current = nullptr;
}

ScriptedNic& ScriptedNic::now() {
  UET_CHECK(current != nullptr);
  return *current;
}

void ScriptedNic::arrive(Frame frame) {
  if (!is_started || !has_cable) return;
  const bool is_tagged = has_tag(frame);
  if (frame.size() > kEthernet + kTag * (is_tagged ? 1 : 0) + mtu) {
    ++statistics.ierrors;
    return;
  }
  const auto id = static_cast<std::uint16_t>(is_tagged ? tag_of(frame) & 0xfff : 0);
  if (is_tagged && traits.filters_tags && std::find(vlans.begin(), vlans.end(), id) == vlans.end())
    return;  // no NIC counts these
  if (waiting.size() >= rx_descriptors) {
    ++statistics.imissed;
    return;
  }
  waiting.push_back(std::move(frame));
  const std::uint64_t one = 1;
  if (is_armed && write(event_fd, &one, sizeof one) < 0) misuse = "event lost";
}

void ScriptedNic::raise(rte_eth_event_type event) {
  if (event == RTE_ETH_EVENT_INTR_RESET) {
    // A virtual function's queues are gone with its host's.
    is_started = false;
    waiting.clear();
  }
  for (const Listener& l : std::vector<Listener>(listeners))
    if (l.event == event) l.function(kPort, event, l.argument, nullptr);
}

}  // namespace uet::dpdk

// --- The calls

using uet::dpdk::ScriptedNic;

namespace {

ScriptedNic& nic() {
  return ScriptedNic::now();
}

std::uint16_t legal_mtu(std::uint16_t wanted) {
  const auto& traits = nic().traits;
  return traits.mtu_taken != 0 ? std::min(wanted, traits.mtu_taken) : wanted;
}

}  // namespace

#define UET_WRAP(name) __wrap_##name

extern "C" {

int UET_WRAP(rte_dev_probe)(const char*) {
  return -ENODEV;
}
int UET_WRAP(rte_dev_remove)(rte_device*) {
  return 0;
}

int UET_WRAP(rte_eth_dev_get_port_by_name)(const char* name, std::uint16_t* port) {
  *port = ScriptedNic::kPort;
  return name == std::string(ScriptedNic::kName) ? 0 : -ENODEV;
}

int UET_WRAP(rte_eth_dev_owner_new)(std::uint64_t* id) {
  *id = 77;
  return 0;
}
int UET_WRAP(rte_eth_dev_owner_get)(std::uint16_t, rte_eth_dev_owner* owner) {
  owner->id = RTE_ETH_DEV_NO_OWNER;
  return 0;
}
int UET_WRAP(rte_eth_dev_owner_set)(std::uint16_t, const rte_eth_dev_owner*) {
  return 0;
}

int UET_WRAP(rte_eth_dev_info_get)(std::uint16_t, rte_eth_dev_info* info) {
  const auto& t = nic().traits;
  *info = {};
  info->driver_name = t.driver.c_str();
  info->if_index = t.if_index;
  info->min_mtu = 68;
  info->max_mtu = t.max_mtu;
  info->max_rx_pktlen = t.max_frame;
  info->rx_offload_capa = t.rx_offloads;
  info->tx_offload_capa = t.tx_offloads;
  return 0;
}

int UET_WRAP(rte_eth_dev_socket_id)(std::uint16_t) {
  return nic().traits.node;
}

int UET_WRAP(rte_eth_dev_get_mtu)(std::uint16_t, std::uint16_t* mtu) {
  *mtu = nic().mtu;
  return 0;
}

// As ethdev: 1500 where nothing is said, and nothing outside of what the driver names.
int UET_WRAP(rte_eth_dev_configure)(std::uint16_t, std::uint16_t, std::uint16_t,
                                    const rte_eth_conf* conf) {
  ScriptedNic& n = nic();
  if (n.is_started) return -EBUSY;
  const std::uint32_t wanted =
      conf->rxmode.mtu != 0 ? conf->rxmode.mtu : std::min<std::uint32_t>(n.traits.max_mtu, 1500);
  if (wanted > n.traits.max_mtu || wanted + 18 > n.traits.max_frame + 4) return -EINVAL;
  if ((conf->rxmode.offloads & ~n.traits.rx_offloads) != 0) return -EINVAL;
  if ((conf->txmode.offloads & ~n.traits.tx_offloads) != 0) return -EINVAL;
  if (conf->intr_conf.rxq != 0 && !n.traits.has_interrupts) return -ENOTSUP;
  n.conf = *conf;
  // Drivers that set their MTU by its own call keep it here.
  if (!n.traits.sets_mtu) n.mtu = legal_mtu(static_cast<std::uint16_t>(wanted));
  n.is_configured = true;
  return 0;
}

int UET_WRAP(rte_eth_dev_set_mtu)(std::uint16_t, std::uint16_t mtu) {
  ScriptedNic& n = nic();
  if (!n.traits.sets_mtu) return -ENOTSUP;
  if (!n.is_configured) return -EINVAL;
  if (mtu > n.traits.max_mtu) return -EINVAL;
  n.mtu = legal_mtu(mtu);
  return 0;
}

int UET_WRAP(rte_eth_dev_adjust_nb_rx_tx_desc)(std::uint16_t, std::uint16_t* rx,
                                               std::uint16_t* tx) {
  *rx = std::min(*rx, nic().traits.descriptors_max);
  *tx = std::min(*tx, nic().traits.descriptors_max);
  return 0;
}

int UET_WRAP(rte_eth_rx_queue_setup)(std::uint16_t, std::uint16_t, std::uint16_t count, unsigned,
                                     const rte_eth_rxconf*, rte_mempool* pool) {
  nic().rx_descriptors = count;
  nic().pool = pool;
  return nic().is_configured && count <= nic().traits.descriptors_max ? 0 : -EINVAL;
}
int UET_WRAP(rte_eth_tx_queue_setup)(std::uint16_t, std::uint16_t, std::uint16_t count, unsigned,
                                     const rte_eth_txconf*) {
  nic().tx_descriptors = count;
  return nic().is_configured && count <= nic().traits.descriptors_max ? 0 : -EINVAL;
}

int UET_WRAP(rte_eth_dev_start)(std::uint16_t) {
  ScriptedNic& n = nic();
  if (n.conf.intr_conf.rxq != 0 && !n.traits.starts_with_interrupts) return -EIO;
  n.is_started = n.rx_descriptors != 0;
  return n.is_started ? 0 : -EINVAL;
}
int UET_WRAP(rte_eth_dev_stop)(std::uint16_t) {
  nic().is_started = false;
  return 0;
}
int UET_WRAP(rte_eth_dev_close)(std::uint16_t) {
  nic().is_closed = true;
  return 0;
}
// Everything is forgotten.
int UET_WRAP(rte_eth_dev_reset)(std::uint16_t) {
  ScriptedNic& n = nic();
  ++n.resets;
  if (n.resets_to_fail > 0) {
    --n.resets_to_fail;
    return -EAGAIN;
  }
  n.is_started = n.is_configured = false;
  n.rx_descriptors = n.tx_descriptors = 0;
  n.pool = nullptr;
  n.vlans.clear();
  n.rules = 0;
  n.mtu = n.traits.mtu;
  n.statistics = {};
  n.waiting.clear();
  if (n.draws_mac) n.mac.addr_bytes[5] = 0x77;
  return 0;
}

int UET_WRAP(rte_eth_dev_vlan_filter)(std::uint16_t, std::uint16_t id, int on) {
  ScriptedNic& n = nic();
  if ((n.conf.rxmode.offloads & RTE_ETH_RX_OFFLOAD_VLAN_FILTER) == 0) return -ENOSYS;
  if (on != 0) n.vlans.push_back(id);
  return 0;
}

int UET_WRAP(rte_eth_allmulticast_enable)(std::uint16_t) {
  return 0;
}
int UET_WRAP(rte_eth_promiscuous_enable)(std::uint16_t) {
  return 0;
}
int UET_WRAP(rte_eth_promiscuous_get)(std::uint16_t) {
  return 0;
}
int UET_WRAP(rte_eth_macaddr_get)(std::uint16_t, rte_ether_addr* mac) {
  *mac = nic().mac;
  return 0;
}
int UET_WRAP(rte_eth_dev_default_mac_addr_set)(std::uint16_t, rte_ether_addr* mac) {
  nic().mac = *mac;
  return 0;
}

int UET_WRAP(rte_eth_link_get_nowait)(std::uint16_t, rte_eth_link* link) {
  *link = {};
  int& looks = nic().traits.looks_without_link;
  if (looks > 0 || !nic().has_cable) {
    looks -= looks > 0 ? 1 : 0;
    return 0;
  }
  link->link_speed = nic().traits.link_speed;
  link->link_status = RTE_ETH_LINK_UP;
  return 0;
}

int UET_WRAP(rte_eth_dev_rx_intr_ctl_q_get_fd)(std::uint16_t, std::uint16_t) {
  return nic().conf.intr_conf.rxq != 0 ? nic().event_fd : -1;
}
int UET_WRAP(rte_eth_dev_rx_intr_enable)(std::uint16_t, std::uint16_t) {
  nic().is_armed = true;
  return 0;
}
int UET_WRAP(rte_eth_dev_rx_intr_disable)(std::uint16_t, std::uint16_t) {
  nic().is_armed = false;
  return 0;
}

int UET_WRAP(rte_eth_stats_get)(std::uint16_t, rte_eth_stats* stats) {
  *stats = nic().statistics;
  return nic().traits.has_statistics ? 0 : -ENOTSUP;
}

int UET_WRAP(rte_eth_dev_callback_register)(std::uint16_t, rte_eth_event_type event,
                                            rte_eth_dev_cb_fn function, void* argument) {
  nic().listeners.push_back({event, function, argument});
  return 0;
}
int UET_WRAP(rte_eth_dev_callback_unregister)(std::uint16_t, rte_eth_event_type event,
                                              rte_eth_dev_cb_fn, void* argument) {
  std::erase_if(nic().listeners, [&](const ScriptedNic::Listener& l) {
    return l.event == event && l.argument == argument;
  });
  return 0;
}

int UET_WRAP(rte_flow_isolate)(std::uint16_t, int on, rte_flow_error* error) {
  if (!nic().traits.can_isolate) {
    error->message = "flow isolation is not supported";
    return -ENOTSUP;
  }
  if (nic().is_started) nic().misuse = "isolated while started";
  nic().is_isolated = on != 0;
  return 0;
}
rte_flow* UET_WRAP(rte_flow_create)(std::uint16_t, const rte_flow_attr*,
                                    const rte_flow_item items[], const rte_flow_action[],
                                    rte_flow_error*) {
  if (!nic().is_started) nic().misuse = "rule before start";
  if (items[0].type != RTE_FLOW_ITEM_TYPE_ETH) nic().misuse = "rule without Ethernet";
  ++nic().rules;
  return reinterpret_cast<rte_flow*>(&nic());
}

}  // extern "C"
