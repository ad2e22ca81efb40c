#include "lib/dpdk/dpdk_device.h"

#include <rte_cycles.h>
#include <rte_dev.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_log.h>
#include <rte_mbuf.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>

#include "lib/dpdk/dpdk_log.h"
#include "lib/dpdk/eal.h"
#include "lib/dpdk/interrupt_thread.h"

namespace uet::dpdk {

using base::DropReason;
using net::Packet;

namespace {

constexpr std::uint16_t kQueue = 0;
constexpr std::size_t kFrameOverhead = 14 + 2 * 4;
constexpr std::uint64_t kLinkChecksPerSecond = 50;
// A connection that is being set up takes half a dozen turns of the interrupt thread; one that stands only ends.
constexpr std::uint64_t kTurnsPerSecondDown = 1000;
constexpr std::uint64_t kTurnsPerSecondUp = 10;
// While the thread is at work no memif of the process moves packets, so a plane without a link must not ask for much.
constexpr std::uint64_t kTurnsPerSecondBesideOthers = 250;
// A server whose device is not ready yet refuses, and the driver tells nobody. So a connection gets some time at first, and more
// each time. Not little: on a crowded machine its dozen steps take long, and a client that gives up a connection and makes
// another can mislead the server's driver for good. (docs/decisions/0022)
constexpr std::uint64_t kFirstPatiencePerSecond = 5;

bool driver_supports_interrupts(DeviceKind kind) {
  return kind == DeviceKind::kPci || kind == DeviceKind::kTap;
}

bool is_usable(const net::MacAddress& mac) {
  return mac != net::MacAddress{} && (mac[0] & 1) == 0;
}

/// A locally administered address.
net::MacAddress made_up_mac(std::size_t seed) {
  net::MacAddress mac{0x02};
  for (std::size_t i = 1; i < mac.size(); ++i) mac[i] = static_cast<std::uint8_t>(seed >> (8 * i));
  return mac;
}

/// Marks ports as ours, so that neither we nor the application open one twice.
std::uint64_t owner_id() {
  static const std::uint64_t id = [] {
    std::uint64_t fresh = RTE_ETH_DEV_NO_OWNER;
    rte_eth_dev_owner_new(&fresh);
    return fresh;
  }();
  return id;
}

}  // namespace

std::unique_ptr<DpdkDevice> DpdkDevice::open(const DpdkDeviceConfig& config, base::Trace& trace,
                                             std::string& error) {
  std::unique_ptr<DpdkDevice> device(new DpdkDevice(config, trace));
  const bool is_open = device->attach(error) && device->configure(error) &&
                       device->set_up_queues(error) && device->start(error);
  return is_open ? std::move(device) : nullptr;
}

DpdkDevice::DpdkDevice(const DpdkDeviceConfig& config, base::Trace& trace)
    : config_(config),
      trace_(trace),
      wants_interrupt_(driver_supports_interrupts(config.spec.kind)),
      interface_(config.spec.argument("iface")),
      is_watched_(config.spec.kind == DeviceKind::kMemif),
      is_kept_(config.spec.is_memif_client()),
      cycles_per_second_(rte_get_tsc_hz()) {}

DpdkDevice::~DpdkDevice() {
  const LogCapture quiet;
  if (is_attached_)
    control([this] {
      cancel_on_interrupt_thread(reconnect, this);
      rte_eth_dev_info info{};
      const bool has_info = rte_eth_dev_info_get(port_, &info) == 0;
      rte_eth_dev_stop(port_);
      rte_eth_dev_close(port_);
      if (is_plugged_ && has_info) rte_dev_remove(info.device);
    });
  // The mempool goes last: closing the device brings back the mbufs that the driver held.
  pool_.reset();
}

/// Runs something that changes the device's state, where its driver can stand it.
void DpdkDevice::control(const std::function<void()>& work) {
  if (config_.spec.kind == DeviceKind::kMemif)
    run_on_interrupt_thread(work);
  else
    work();
}

// --- Opening

bool DpdkDevice::attach(std::string& error) {
  const LogCapture log;
  const DeviceSpec& spec = config_.spec;
  rte_eth_dev_owner owner{};
  if (rte_eth_dev_get_port_by_name(spec.name.c_str(), &port_) == 0) {
    if (rte_eth_dev_owner_get(port_, &owner) == 0 && owner.id != RTE_ETH_DEV_NO_OWNER) {
      error = spec.name + " is open in this process already; give each port its own device name";
      return false;
    }
  } else {
    const int result = rte_dev_probe(spec.devargs().c_str());
    if (result != 0 || rte_eth_dev_get_port_by_name(spec.name.c_str(), &port_) != 0) {
      error = explain("DPDK cannot open it", result);
      return false;
    }
    is_plugged_ = true;
  }
  is_attached_ = true;
  owner.id = owner_id();
  std::snprintf(owner.name, sizeof owner.name, "uet");
  rte_eth_dev_owner_set(port_, &owner);
  return true;
}

std::string DpdkDevice::explain(const std::string& what, int code) const {
  std::string text = config_.spec.name + ": " + what;
  const std::string said = LogCapture::first_message();
  if (!said.empty())
    text += " (" + said + ")";
  else if (code != 0)
    text += std::string(" (") + rte_strerror(-code) + ")";
  switch (config_.spec.kind) {
    case DeviceKind::kAfPacket:
      return text + (geteuid() != 0
                         ? "; raw sockets need root or CAP_NET_RAW"
                         : "; iface=<interface> must name an interface that is there and up");
    case DeviceKind::kTap:
      return text + (geteuid() != 0 ? "; TAP interfaces need root or CAP_NET_ADMIN" : "");
    case DeviceKind::kMemif:
      return text +
             "; memif knows role=server|client, id=<number>, socket=<path>, "
             "socket-abstract=yes|no, "
             "bsize=<bytes>, rsize=<log2 of slots>, mac, zero-copy, secret";
    case DeviceKind::kPci:
      return text +
             "; the device must be bound to vfio-pci (or be an mlx5 device) and hugepages must be "
             "there: "
             "see dpdk-devbind.py and dpdk-hugepages.py";
    case DeviceKind::kOtherVdev:
      return text +
             "; devices are named net_memif0, net_af_packet0, net_tap0, net_af_xdp0, net_ring0, "
             "net_pcap0, "
             "net_null0, or by PCI address";
  }
  return text;
}

bool DpdkDevice::choose_mtu(std::string& error) {
  facts_.ip_mtu = config_.ip_mtu;
  std::uint16_t own = 0;
  const bool knows = rte_eth_dev_get_mtu(port_, &own) == 0 && own != 0;
  if (facts_.ip_mtu == 0) facts_.ip_mtu = default_ip_mtu(config_.spec);
  if (facts_.ip_mtu == 0) facts_.ip_mtu = knows ? own : 1500;
  constexpr std::size_t kSmallest = 1280;
  constexpr std::size_t kLargest = 16128;
  if (facts_.ip_mtu >= kSmallest && facts_.ip_mtu <= kLargest) return true;
  error = config_.spec.name + ": MTU " + std::to_string(facts_.ip_mtu) +
          " is outside 1280 to 16128; set FI_UET_MTU";
  return false;
}

bool DpdkDevice::configure(std::string& error) {
  const LogCapture log;
  if (!choose_mtu(error)) return false;
  rte_eth_dev_info info{};
  rte_eth_dev_info_get(port_, &info);
  rte_eth_conf conf{};
  // Several virtual drivers name an MTU limit that they do not have; only real NICs and TAP are
  // asked for theirs.
  const bool has_real_mtu =
      config_.spec.kind == DeviceKind::kPci || config_.spec.kind == DeviceKind::kTap;
  if (has_real_mtu && config_.ip_mtu != 0)
    conf.rxmode.mtu = static_cast<std::uint32_t>(config_.ip_mtu);
  conf.intr_conf.rxq = wants_interrupt_ ? 1 : 0;
  // Checksums stay in software: summing 20 bytes that are in the cache costs less than filling the
  // offload fields.
  int result = rte_eth_dev_configure(port_, 1, 1, &conf);
  if (result != 0 && wants_interrupt_) {
    wants_interrupt_ = false;
    conf.intr_conf.rxq = 0;
    result = rte_eth_dev_configure(port_, 1, 1, &conf);
  }
  if (result == 0)
    result = rte_eth_dev_adjust_nb_rx_tx_desc(port_, &descriptors_rx_, &descriptors_tx_);
  if (result != 0) {
    error = explain(
        result == -EBUSY ? "the application uses this device itself" : "cannot be configured",
        result);
    return false;
  }
  return true;
}

bool DpdkDevice::set_up_queues(std::string& error) {
  const LogCapture log;
  constexpr std::size_t kKiB = 1024;
  // Receive buffers in whole KiB: several NICs round down to that.
  const std::size_t wanted =
      std::max(facts_.ip_mtu + kFrameOverhead, packet_bytes_min(config_.spec));
  const std::size_t packet_bytes = (wanted + kKiB - 1) / kKiB * kKiB;
  const int node = rte_eth_dev_socket_id(port_);
  pool_ = MbufPool::create(config_.packets + descriptors_rx_ + descriptors_tx_, packet_bytes, node,
                           error);
  if (pool_ == nullptr) return false;
  int result = rte_eth_rx_queue_setup(port_, kQueue, descriptors_rx_, static_cast<unsigned>(node),
                                      nullptr, pool_->mempool());
  if (result == 0)
    result = rte_eth_tx_queue_setup(port_, kQueue, descriptors_tx_, static_cast<unsigned>(node),
                                    nullptr);
  if (result == 0) return true;
  error = explain("its queues cannot be set up", result);
  return false;
}

bool DpdkDevice::start(std::string& error) {
  const LogCapture log;
  int result = 0;
  control([&] { result = rte_eth_dev_start(port_); });
  if (result != 0 && wants_interrupt_) {
    // Some drivers only find out here that their interrupts do not work.
    wants_interrupt_ = false;
    if (!configure(error) || !set_up_queues(error)) return false;
    result = rte_eth_dev_start(port_);
  }
  is_started_ = result == 0;
  if (config_.spec.kind == DeviceKind::kMemif) gate_.join();
  patience_ = first_patience();
  give_up_connecting_ = rte_get_tsc_cycles() + patience_;
  // A memif client starts when its server is there; keep_link() tries again.
  if (!is_started_ && !is_kept_) {
    error = explain("does not start", result);
    return false;
  }
  // Neighbor Discovery asks groups. Drivers that cannot filter let everything in anyway.
  if (rte_eth_allmulticast_enable(port_) != 0 || config_.promiscuous)
    rte_eth_promiscuous_enable(port_);
  read_facts();
  if (wants_interrupt_) open_interrupt();
  // A peer that leaves is nothing that its driver should tell the user's terminal about.
  if (is_own_eal()) rte_log_set_level_pattern("pmd.net.memif", RTE_LOG_CRIT);
  return true;
}

void DpdkDevice::read_facts() {
  facts_.name = "dpdk:" + config_.spec.name;
  rte_ether_addr mac{};
  if (rte_eth_macaddr_get(port_, &mac) == 0) std::copy_n(mac.addr_bytes, 6, facts_.mac.begin());
  if (!is_usable(facts_.mac)) {
    facts_.mac = made_up_mac(config_.mac_seed);
    std::copy_n(facts_.mac.begin(), 6, mac.addr_bytes);
    rte_eth_dev_default_mac_addr_set(port_, &mac);
  }
  rte_eth_link link{};
  const bool has_rate = config_.spec.kind == DeviceKind::kPci &&
                        rte_eth_link_get_nowait(port_, &link) == 0 &&
                        link.link_speed != RTE_ETH_SPEED_NUM_UNKNOWN && link.link_speed != 0;
  // What virtual drivers report as speed is made up.
  if (has_rate)
    facts_.link_rate = base::BitRate::from_bps(std::uint64_t{link.link_speed} * 1'000'000);
  facts_.promiscuous = rte_eth_promiscuous_get(port_) == 1;
}

// --- Sleeping

void DpdkDevice::open_interrupt() {
  interrupt_fd_ = rte_eth_dev_rx_intr_ctl_q_get_fd(port_, kQueue);
  if (interrupt_fd_ < 0) return;
  // Some drivers have the descriptor but not the switch.
  if (rte_eth_dev_rx_intr_enable(port_, kQueue) != 0)
    interrupt_fd_ = -1;
  else
    rte_eth_dev_rx_intr_disable(port_, kQueue);
}

bool DpdkDevice::arm_wakeup() {
  if (interrupt_fd_ < 0) return true;
  if (!is_armed_) is_armed_ = rte_eth_dev_rx_intr_enable(port_, kQueue) == 0;
  // What arrived before the switch was on makes no interrupt.
  return rte_eth_rx_queue_count(port_, kQueue) <= 0;
}

void DpdkDevice::disarm() {
  is_armed_ = false;
  rte_eth_dev_rx_intr_disable(port_, kQueue);
  std::uint64_t events = 0;
  // An eventfd stays readable until read; a TAP descriptor is emptied by receiving.
  if (config_.spec.kind == DeviceKind::kPci && read(interrupt_fd_, &events, sizeof events) < 0)
    return;
}

// --- Data path

std::size_t DpdkDevice::receive_frames(std::span<Packet> out) {
  register_thread();
  if (is_watched_) keep_link();
  if (is_armed_) [[unlikely]]
    disarm();
  if (!is_started_ || (is_watched_ && !gate_.begin())) [[unlikely]]
    return 0;
  const std::size_t n = receive_bursts(out);
  if (is_watched_) gate_.end();
  return n;
}

std::size_t DpdkDevice::receive_bursts(std::span<Packet> out) {
  std::size_t n = 0;
  while (n < out.size()) {
    rte_mbuf* mbufs[kBurst];
    const auto want = static_cast<std::uint16_t>(std::min<std::size_t>(kBurst, out.size() - n));
    const std::uint16_t got = rte_eth_rx_burst(port_, kQueue, mbufs, want);
    for (std::uint16_t i = 0; i < got; ++i) {
      out[n] = take(mbufs[i]);
      if (out[n]) ++n;
    }
    if (got < want) break;
  }
  return n;
}

/// The packet in `mbuf`; null when it is in pieces that do not fit one buffer.
Packet DpdkDevice::take(rte_mbuf* mbuf) {
  if (mbuf->nb_segs != 1) [[unlikely]] {
    const std::size_t bytes = mbuf->pkt_len;
    if (rte_pktmbuf_linearize(mbuf) != 0) {
      rte_pktmbuf_free(mbuf);
      count_drop(DropReason::kTooLarge, bytes);
      return Packet();
    }
  }
  const std::size_t bytes = mbuf->pkt_len;
  Packet packet = pool_->adopt(mbuf);
  if (!packet) [[unlikely]]
    count_drop(DropReason::kNoBuffer, bytes);
  return packet;
}

/// Rare enough for a clock reading of its own.
void DpdkDevice::count_drop(DropReason reason, std::size_t bytes) {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  trace_.drop(base::Instant::from_ns(t.tv_sec * 1'000'000'000 + t.tv_nsec), reason, bytes);
}

std::size_t DpdkDevice::send_frames(std::span<Packet> in) {
  register_thread();
  if (is_watched_) keep_link();
  if (!is_started_ || (is_watched_ && !gate_.begin())) [[unlikely]]
    return 0;
  const std::size_t n = send_bursts(in);
  if (is_watched_) gate_.end();
  return n;
}

std::size_t DpdkDevice::send_bursts(std::span<Packet> in) {
  std::size_t n = 0;
  while (n < in.size()) {
    rte_mbuf* mbufs[kBurst];
    const std::size_t count = std::min<std::size_t>(kBurst, in.size() - n);
    for (std::size_t i = 0; i < count; ++i) mbufs[i] = MbufPool::to_mbuf(in[n + i]);
    const std::uint16_t sent =
        rte_eth_tx_burst(port_, kQueue, mbufs, static_cast<std::uint16_t>(count));
    // The driver owns what it took.
    for (std::uint16_t i = 0; i < sent; ++i) (void)in[n + i].release();
    n += sent;
    if (sent < count) break;
  }
  return n;
}

// --- Links

/// The data path of a memif knows anyway; the others are asked, which nobody does who has only one port.
bool DpdkDevice::has_link() {
  if (is_watched_) return was_up_;
  const bool is_up = is_started_ && reads_link_up();
  if (is_up && !std::exchange(was_up_, is_up)) ++link_generation_;
  was_up_ = is_up;
  return is_up;
}

/// Drivers on top of an interface of the kernel report a link that is always up.
bool DpdkDevice::reads_link_up() const {
  if (!interface_.empty()) return kernel_link_is_up(interface_);
  rte_eth_link link{};
  return rte_eth_link_get_nowait(port_, &link) != 0 || link.link_status == RTE_ETH_LINK_UP;
}

/// Gives the interrupt thread its turns, and looks at the link: often while it is down, because who sends before we know
/// that it is up has to ask for its neighbors twice.
void DpdkDevice::keep_link() {
  const std::uint64_t now = rte_get_tsc_cycles();
  if (now < next_link_check_) [[likely]]
    return;
  const std::uint64_t checks_per_second = was_up_                ? kLinkChecksPerSecond
                                          : config_.has_siblings ? kTurnsPerSecondBesideOthers
                                                                 : kTurnsPerSecondDown;
  next_link_check_ = now + cycles_per_second_ / checks_per_second;
  if (!was_up_ || now >= next_interrupts_) {
    next_interrupts_ = now + cycles_per_second_ / kTurnsPerSecondUp;
    InterruptGate::instance().let_through();
  }
  const Reconnect state = reconnect_.load(std::memory_order_acquire);
  if (state == Reconnect::kRunning) return;
  if (state == Reconnect::kStarted) {
    reconnect_.store(Reconnect::kIdle, std::memory_order_relaxed);
    is_started_ = true;
    was_up_ = false;
    patience_ = std::min(patience_ * 2, cycles_per_second_);
    give_up_connecting_ = now + patience_;
  }
  if (is_started_) {
    rte_eth_link link{};
    if (rte_eth_link_get_nowait(port_, &link) == 0 && link.link_status == RTE_ETH_LINK_UP) {
      if (!std::exchange(was_up_, true)) ++link_generation_;
      patience_ = first_patience();
      return;
    }
    if (!was_up_ && now < give_up_connecting_) return;
  }
  if (is_kept_)
    begin_reconnect();
  else
    was_up_ = false;  // a server only waits
}

std::uint64_t DpdkDevice::first_patience() const {
  // As many turns as otherwise.
  constexpr auto kLonger = kTurnsPerSecondDown / kTurnsPerSecondBesideOthers;
  return cycles_per_second_ / kFirstPatiencePerSecond * (config_.has_siblings ? kLonger : 1);
}

void DpdkDevice::begin_reconnect() {
  needs_stop_ = is_started_;
  is_started_ = false;
  was_up_ = false;
  reconnect_.store(Reconnect::kRunning, std::memory_order_release);
  if (!post_to_interrupt_thread(reconnect, this))
    reconnect_.store(Reconnect::kFailed, std::memory_order_relaxed);
}

/// On the interrupt thread.
void DpdkDevice::reconnect(void* device) {
  auto* self = static_cast<DpdkDevice*>(device);
  const LogCapture quiet;
  if (self->needs_stop_) rte_eth_dev_stop(self->port_);
  const bool is_started = rte_eth_dev_start(self->port_) == 0;
  self->reconnect_.store(is_started ? Reconnect::kStarted : Reconnect::kFailed,
                         std::memory_order_release);
}

}  // namespace uet::dpdk
