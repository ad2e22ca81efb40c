/// Opening and closing a DpdkDevice, by the words of its driver.

#include <rte_cycles.h>
#include <rte_dev.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_log.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <map>
#include <mutex>
#include <thread>

#include "lib/dpdk/closing_numbers.h"
#include "lib/dpdk/device_mtu.h"
#include "lib/dpdk/dpdk_device.h"
#include "lib/dpdk/dpdk_log.h"
#include "lib/dpdk/eal.h"
#include "lib/dpdk/guest_thread.h"
#include "lib/dpdk/interrupt_thread.h"
#include "lib/dpdk/memif_keys.h"
#include "lib/dpdk/memif_relay.h"
#include "lib/dpdk/memif_sockets.h"
#include "lib/dpdk/memory_descriptors.h"

namespace uet::dpdk {

namespace {

constexpr unsigned kXdpAttempts = 80;
constexpr std::chrono::milliseconds kXdpPause{25};
constexpr std::chrono::seconds kVhostPatience{5};
constexpr std::chrono::milliseconds kVhostPause{20};
constexpr std::chrono::milliseconds kLinkPause{20};
// Set when a device of this process left an AF_XDP socket to close.
std::atomic<bool> xdp_was_in_use{false};

bool driver_supports_interrupts(const DeviceSpec& spec) {
  return spec.is_hardware() || spec.kind == DeviceKind::kTap;
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

/// Processes of one job open their ports at once, and virtio_user wants a vhost that is there and listens.
class VhostWait {
 public:
  explicit VhostWait(const DeviceSpec& spec) {
    if (spec.kind != DeviceKind::kVirtio || spec.argument("server") == "1") return;
    const std::string socket = spec.argument("path");
    if (socket.empty()) return;
    end_ = std::chrono::steady_clock::now() + kVhostPatience;
    while (access(socket.c_str(), F_OK) != 0 && pause()) {
    }
  }

  /// After a failure: true, some time later, when it is worth another try. A vhost makes its socket, then listens on it.
  bool may_try_again(const std::string& error) const {
    const auto says = [&](int code) { return error.find(std::strerror(code)) != error.npos; };
    return (says(ECONNREFUSED) || says(ENOENT)) && pause();
  }

 private:
  /// False when the time is over.
  bool pause() const {
    if (std::chrono::steady_clock::now() >= end_) return false;
    std::this_thread::sleep_for(kVhostPause);
    return true;
  }

  std::chrono::steady_clock::time_point end_{};  ///< long ago: no vhost is waited for
};

/// Marks ports as ours, so that neither we nor the application open one twice.
std::uint64_t owner_id() {
  static const std::uint64_t id = [] {
    std::uint64_t fresh = RTE_ETH_DEV_NO_OWNER;
    rte_eth_dev_owner_new(&fresh);
    return fresh;
  }();
  return id;
}

/// The largest IP packet, by what the driver says of itself; 0: it says nothing.
std::size_t mtu_max(const rte_eth_dev_info& info) {
  constexpr std::size_t kEthernet = 14 + 4;
  if (info.max_mtu != 0 && info.max_mtu != UINT16_MAX) return info.max_mtu;
  return info.max_rx_pktlen > kEthernet ? info.max_rx_pktlen - kEthernet : 0;
}

/// Devices that EAL found when it started, as NICs, or made by --vdev: once closed they come back only when they were taken out, and then with the
/// arguments that they had.
class EarlierDevices {
 public:
  void remember(const std::string& name, std::string devargs) {
    const std::lock_guard lock(mutex_);
    devargs_[name] = std::move(devargs);
  }
  /// `otherwise` for a device that was not there before us.
  std::string devargs_of(const std::string& name, std::string otherwise) {
    const std::lock_guard lock(mutex_);
    const auto known = devargs_.find(name);
    return known == devargs_.end() ? std::move(otherwise) : known->second;
  }

 private:
  std::mutex mutex_;
  std::map<std::string, std::string> devargs_;
};

EarlierDevices& earlier_devices() {
  static auto* const instance = new EarlierDevices;
  return *instance;
}

/// EAL's lists of devices and their arguments have no lock: one thread at a time plugs a device in or takes one out. Held by the
/// interrupt thread too, so nothing waits for that thread while holding it.
std::mutex& plugging() {
  static auto* const mutex = new std::mutex;
  return *mutex;
}

int probe(const std::string& devargs) {
  const std::lock_guard lock(plugging());
  return rte_dev_probe(devargs.c_str());
}

/// Taking a device out takes all its ports.
bool has_more_ports(const rte_device& device, std::uint16_t port) {
  std::uint16_t other = RTE_MAX_ETHPORTS;
  RTE_ETH_FOREACH_DEV_OF(other, &device) {
    if (other != port) return true;
  }
  return false;
}

/// Planes send from each other's pools.
bool sends_own_mbufs(const DpdkDeviceConfig& config) {
  return config.sends_own_pool_only && !config.has_siblings;
}

std::string cannot_find(const std::string& interface, int error) {
  return "cannot find the interface " + interface + " under it: " + std::strerror(error) +
         (error == EMFILE ? "; close some, or raise the limit of this process (ulimit -n)" : "");
}

void set_if_given(std::uint16_t given, std::uint16_t& value) {
  if (given != 0) value = given;
}

}  // namespace

std::unique_ptr<DpdkDevice> DpdkDevice::open(const DpdkDeviceConfig& config, base::Trace& trace,
                                             std::string& error) {
  // An AF_XDP socket that was just closed may still have its queue, and the driver does not survive hearing so.
  const unsigned attempts = config.spec.kind == DeviceKind::kAfXdp ? kXdpAttempts : 1;
  const VhostWait vhost(config.spec);
  for (unsigned i = 1;; ++i) {
    std::unique_ptr<DpdkDevice> device(new DpdkDevice(config, trace));
    if (device->bring_up(error)) return device;
    device.reset();
    if (vhost.may_try_again(error)) continue;
    if (i >= attempts || !xdp_was_in_use) return nullptr;
    std::this_thread::sleep_for(kXdpPause);
  }
}

bool DpdkDevice::bring_up(std::string& error) {
  error.clear();
  bool is_up = false;
  run_on_guest_thread([&] {
    const auto work = [&] { is_up = attach(error) && prepare(error) && start(error); };
    if (config_.spec.kind == DeviceKind::kAfXdp)
      descriptors_ = xdp_descriptors_opened_by(work);
    else
      work();
  });
  if (is_up && !kernel_interface_.open(interface_) && errno != ENODEV) {
    error = config_.spec.name + ": " + cannot_find(interface_, errno);
    is_up = false;
  }
  if (is_up && config_.spec.is_hardware()) read_link_rate();
  if (is_up && !remark_.empty()) error = config_.spec.name + ": " + remark_;
  return is_up;
}

DpdkDevice::DpdkDevice(const DpdkDeviceConfig& config, base::Trace& trace)
    : config_(config),
      trace_(trace),
      wants_interrupt_(driver_supports_interrupts(config.spec)),
      calls_kernel_(!config.spec.is_hardware()),
      interface_(config.spec.argument("iface")),
      is_memif_(config.spec.kind == DeviceKind::kMemif),
      is_kept_(config.spec.is_memif_client()),
      notes_sent_(config.spec.is_without_copying() && sends_own_mbufs(config)),
      cycles_per_second_(rte_get_tsc_hz()) {
  set_if_given(config.rx_descriptors, descriptors_rx_);
  set_if_given(config.tx_descriptors, descriptors_tx_);
  set_if_given(std::min<std::uint16_t>(config.burst, kBurstMax), burst_);
}

DpdkDevice::~DpdkDevice() {
  if (is_forked_child()) {
    abandon();
    return;
  }
  if (is_ward_) Caretaker::instance().remove(*this);
  try {
    run_on_guest_thread([this] { shut(); });
  } catch (const std::exception&) {
    abandon();  // out of memory half-way: the driver may still use it
  }
}

/// In a child the device, its memory and the threads that know it are the parent's.
void DpdkDevice::abandon() {
  (void)pool_.release();
}

void DpdkDevice::shut() {
  const LogCapture quiet;
  if (is_relayed_) stop_relay(config_.spec);
  if (is_attached_) {
    health_.unwatch();
    for (; stashed_first_ < stashed_count_; ++stashed_first_)
      rte_pktmbuf_free(stashed_[stashed_first_]);
    control([this] {
      cancel_on_interrupt_thread(reconnect, this);
      stop_driver();
      if (is_plugged_ && is_memif_)
        park_memif(config_.spec, {port_, std::move(pool_)});
      else
        take_out();
    });
  }
  if (close_xdp_descriptors(descriptors_)) xdp_was_in_use = true;
  // The mempool goes last: closing the device brings back the mbufs that the driver held.
  pool_.reset();
}

void DpdkDevice::stop_driver() {
  if (!is_memif_) {
    rte_eth_dev_stop(port_);
    return;
  }
  close_connections([this] {
    rte_eth_dev_stop(port_);
    // Before anything opens a file: it would get the number of DPDK's memory.
    if (!config_.spec.is_without_copying()) return;
    restore_memory_descriptors();
    if (pool_ != nullptr) pool_->take_back_forgotten();
  });
}

/// A device that was there before us is remembered by what brings it back.
void DpdkDevice::take_out() {
  rte_eth_dev_info info{};
  const rte_devargs* before = nullptr;
  if (!is_plugged_ && rte_eth_dev_info_get(port_, &info) == 0 && info.device != nullptr)
    before = rte_dev_devargs(info.device);
  if (before != nullptr && before->args != nullptr)
    earlier_devices().remember(config_.spec.name, std::string(before->name) + ',' + before->args);
  unplug(port_);
}

void DpdkDevice::unplug(std::uint16_t port) {
  const std::lock_guard lock(plugging());
  rte_eth_dev_info info{};
  const bool may_remove = rte_eth_dev_info_get(port, &info) == 0 && info.device != nullptr &&
                          !has_more_ports(*info.device, port);
  // failsafe frees its interrupt only when it is taken out with its port still open.
  const bool must_be_open = may_remove && info.driver_name == std::string_view("net_failsafe");
  if (!must_be_open) rte_eth_dev_close(port);
  if (may_remove) rte_dev_remove(info.device);
}

/// Runs something that changes the device's state, where its driver can stand it.
void DpdkDevice::control(const std::function<void()>& work) {
  if (config_.spec.kind == DeviceKind::kMemif)
    run_on_interrupt_thread(work);
  else
    work();
}

// --- Finding the device

bool DpdkDevice::attach(std::string& error) {
  const LogCapture log;
  if (!find_or_plug_in(error)) return false;
  is_attached_ = true;
  rte_eth_dev_owner owner{};
  owner.id = owner_id();
  std::snprintf(owner.name, sizeof owner.name, "uet");
  rte_eth_dev_owner_set(port_, &owner);
  return true;
}

bool DpdkDevice::find_or_plug_in(std::string& error) {
  if (is_memif_) {
    if (auto parked = take_parked_memif(config_.spec, error)) {
      port_ = parked->port;
      pool_ = std::move(parked->pool);
      is_plugged_ = true;
      return true;
    }
    if (!error.empty()) return false;
  }
  if (!find_port(config_.spec.name) || parked_memif_with(port_) != NameTaken::kNo)
    return plug_in(error);
  rte_eth_dev_owner owner{};
  if (rte_eth_dev_owner_get(port_, &owner) != 0 || owner.id == RTE_ETH_DEV_NO_OWNER) return true;
  error =
      config_.spec.name + " is open in this process already; give each port its own device name";
  return false;
}

bool DpdkDevice::plug_in(std::string& error) {
  DeviceSpec spec = config_.spec;
  if (spec.is_memif_server()) {
    const SocketPlace place = driver_place_for(SocketPlace::of(spec));
    spec.set_argument("socket", place.path);
    spec.set_argument("socket-abstract", place.is_abstract ? "yes" : "no");
  }
  // The name may belong to a device that was closed with other arguments.
  for (unsigned n = 2; find_port(spec.name); ++n) {
    if (parked_memif_with(port_) == NameTaken::kByClient) {
      const ParkedMemif parked = take_parked_client(port_);
      run_on_interrupt_thread([&] { unplug(parked.port); });
    } else {
      spec.name = config_.spec.name + "x" + std::to_string(n);
    }
  }
  const std::string devargs = earlier_devices().devargs_of(spec.name, spec.devargs());
  int result = probe(devargs);
  // There may be no place left for one more port.
  while (result != 0) {
    const auto parked = take_any_parked_client();
    if (!parked) break;
    run_on_interrupt_thread([&] { unplug(parked->port); });
    result = probe(devargs);
  }
  is_plugged_ = result == 0 && find_port(spec.name);
  if (!is_plugged_) error = explain("DPDK cannot open it", result);
  return is_plugged_;
}

/// Devices of buses other than PCI and the virtual one get ports with names of the driver's choice.
bool DpdkDevice::find_port(const std::string& device) {
  if (rte_eth_dev_get_port_by_name(device.c_str(), &port_) == 0) return true;
  if (config_.spec.kind != DeviceKind::kOtherBus) return false;
  rte_dev_iterator iterator;
  std::uint16_t id = RTE_MAX_ETHPORTS;
  RTE_ETH_FOREACH_MATCHING_DEV(id, device.c_str(), &iterator) {
    port_ = id;
    rte_eth_iterator_cleanup(&iterator);
    return true;
  }
  return false;
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
    case DeviceKind::kAfXdp:
      return text + (geteuid() != 0 ? "; AF_XDP sockets need root or CAP_NET_RAW and CAP_BPF"
                                    : "; iface=<interface> must be up, used by no other AF_XDP "
                                      "socket, and have an MTU that its "
                                      "kernel driver runs XDP with: about " +
                                          std::to_string(af_xdp_mtu_max()) + " at most");
    case DeviceKind::kTap:
      return text + (geteuid() != 0 ? "; TAP interfaces need root or CAP_NET_ADMIN" : "");
    case DeviceKind::kMemif:
      if (const SocketPlace place = SocketPlace::of(config_.spec); !place.is_abstract)
        if (const auto folder = std::filesystem::path(place.path).parent_path();
            !folder.empty() && access(folder.c_str(), F_OK) != 0)
          return text + "; there is no folder " + folder.string() +
                 " for its socket: make it first";
      return text + "; " + memif_keys_sentence();
    case DeviceKind::kPci:
      return text +
             "; the device must be bound to vfio-pci (or be an mlx5 device) and hugepages must be "
             "there: "
             "see dpdk-devbind.py and dpdk-hugepages.py";
    case DeviceKind::kOtherBus:
      return text +
             "; write auxiliary:mlx5_core.sf.<number> for a sub-function, vmbus:<uuid> for a "
             "device of Hyper-V";
    case DeviceKind::kPcap:
    case DeviceKind::kVirtio:
    case DeviceKind::kTeam:
    case DeviceKind::kOtherVdev:
      return text +
             "; devices are named net_memif0, net_af_packet0, net_tap0, net_af_xdp0, net_ring0, "
             "net_pcap0, net_virtio_user0, net_vhost0, "
             "net_null0, or by PCI address";
  }
  return text;
}

// --- Configuring it

/// The kernel goes on with what is its own where the driver works beside the kernel's.
bool DpdkDevice::share_with_kernel(const rte_eth_dev_info& info, std::string& error) {
  if (!config_.flow || !is_bifurcated(info.driver_name)) return true;
  interface_ = interface_name(info.if_index);
  if (interface_.empty() && errno != ENODEV) {
    error = config_.spec.name + ": " +
            cannot_find("with index " + std::to_string(info.if_index), errno);
    return false;
  }
  const net::FabricAddress& address = config_.flow->address;
  if (!kernel_owns(address, interface_)) {
    if (!kernel_uses(interface_)) return true;
    error = config_.spec.name + ": the kernel uses " + interface_ +
            " as well, and would lose all traffic there; give it " + address.to_string() +
            " (ip addr add " + address.to_string() + "/<prefix> dev " + interface_ +
            "), then it keeps what is not for the endpoint";
    return false;
  }
  is_isolated_ = isolate_flows(port_, error);
  if (!is_isolated_)
    error = config_.spec.name + ": cannot leave the kernel its traffic (" + error + ")";
  return is_isolated_;
}

bool DpdkDevice::settle_mtu(const rte_eth_dev_info& info, std::string& error) {
  const DeviceSpec& spec = config_.spec;
  MtuInputs in{.wanted = config_.ip_mtu, .suggested = default_ip_mtu(spec)};
  std::uint16_t own = 0;
  if (rte_eth_dev_get_mtu(port_, &own) == 0) in.own = own;
  if (names_real_mtu_max(spec.kind)) in.device_max = mtu_max(info);
  if (spec.kind == DeviceKind::kAfXdp) in.device_max = af_xdp_mtu_max();
  if (!spec.argument("iface").empty() && spec.kind != DeviceKind::kTap)
    in.kernel = kernel_mtu(spec.argument("iface"));
  const MtuChoice choice = choose_mtu(in);
  facts_.ip_mtu = choice.ip_mtu;
  remark_ = choice.remark;
  if (choice.ip_mtu == 0) error = spec.name + ": " + choice.error;
  return choice.ip_mtu != 0;
}

bool DpdkDevice::prepare(std::string& error) {
  const LogCapture log;
  rte_eth_dev_info info{};
  rte_eth_dev_info_get(port_, &info);
  if (!settle_mtu(info, error)) return false;
  // Parked as it is wanted again: the queues are there.
  if (pool_ != nullptr && pool_->capacity() == packets_in_all() &&
      pool_->max_packet_bytes() == packet_bytes())
    return true;
  pool_.reset();
  return configure(error) && make_pool(error) && set_up_queues(error);
}

bool DpdkDevice::configure(std::string& error) {
  const LogCapture log;
  rte_eth_dev_info info{};
  rte_eth_dev_info_get(port_, &info);
  if (!share_with_kernel(info, error)) return false;
  rte_eth_conf conf{};
  ask_for(info, conf);
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
  set_mtu();
  return true;
}

/// Checksums stay in software: summing 20 bytes that are in the cache costs less than filling the
/// offload fields.
void DpdkDevice::ask_for(const rte_eth_dev_info& info, rte_eth_conf& conf) const {
  if (has_real_mtu(config_.spec.kind)) conf.rxmode.mtu = static_cast<std::uint32_t>(facts_.ip_mtu);
  conf.intr_conf.rxq = wants_interrupt_ ? 1 : 0;
  // A virtual function lets no tag pass that it was not told of.
  if (config_.vlan != 0)
    conf.rxmode.offloads |= info.rx_offload_capa & RTE_ETH_RX_OFFLOAD_VLAN_FILTER;
  // Its conditions: one mempool, one reference, nothing attached.
  if (config_.spec.is_hardware() && sends_own_mbufs(config_))
    conf.txmode.offloads |= info.tx_offload_capa & RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE;
}

/// What configuring says about the MTU only sizes queues with some drivers.
void DpdkDevice::set_mtu() const {
  if (has_real_mtu(config_.spec.kind))
    rte_eth_dev_set_mtu(port_, static_cast<std::uint16_t>(facts_.ip_mtu));
}

std::size_t DpdkDevice::packets_in_all() const {
  return config_.packets + descriptors_rx_ + descriptors_tx_;
}

std::size_t DpdkDevice::packet_bytes() const {
  if (config_.spec.kind == DeviceKind::kAfXdp) return af_xdp_packet_bytes();
  constexpr std::size_t kKiB = 1024;
  // Receive buffers in whole KiB: several NICs round down to that.
  const std::size_t wanted =
      std::max(facts_.ip_mtu + kFrameOverhead, packet_bytes_min(config_.spec));
  return (wanted + kKiB - 1) / kKiB * kKiB;
}

bool DpdkDevice::make_pool(std::string& error) {
  const LogCapture log;
  const int node = rte_eth_dev_socket_id(port_);
  pool_ = MbufPool::create(packets_in_all(), packet_bytes(), node, error);
  // Devices that were closed may hold what is missing.
  if (pool_ == nullptr && drop_parked_pools())
    pool_ = MbufPool::create(packets_in_all(), packet_bytes(), node, error);
  if (pool_ != nullptr) error.clear();
  return pool_ != nullptr;
}

bool DpdkDevice::set_up_queues(std::string& error) {
  const LogCapture log;
  const auto node = static_cast<unsigned>(rte_eth_dev_socket_id(port_));
  int result =
      rte_eth_rx_queue_setup(port_, kQueue, descriptors_rx_, node, nullptr, pool_->mempool());
  if (result == 0) result = rte_eth_tx_queue_setup(port_, kQueue, descriptors_tx_, node, nullptr);
  if (result == 0) return true;
  error = explain("its queues cannot be set up", result);
  return false;
}

// --- Starting it

bool DpdkDevice::start(std::string& error) {
  const LogCapture log;
  if (config_.spec.is_without_copying()) {
    keep_memory_descriptors();
    if (!restore_memory_descriptors()) {
      error =
          config_.spec.name +
          ": an earlier device with zero-copy=yes cost DPDK the descriptor of its memory; leave "
          "zero-copy out, or open such a device once in a process";
      return false;
    }
    InterruptGate::instance().set_on_return(restore_memory_descriptors);
  }
  const int result = start_driver(error);
  if (!error.empty()) return false;
  if (config_.spec.kind == DeviceKind::kMemif) gate_.join();
  be_patient();
  // A memif client starts when its server is there; keep_link() tries again.
  if (!is_started_ && !is_kept_) {
    error = explain("does not start", result);
    return false;
  }
  if (!direct_traffic(error) || !check_mtu(error)) return false;
  // Only now: a driver that is not started sends clients away.
  if (config_.spec.is_memif_server() && !(is_relayed_ = start_relay(config_.spec, error)))
    return false;
  read_facts();
  if (wants_interrupt_) open_interrupt();
  watch_health();
  // A peer that leaves is nothing that its driver should tell the user's terminal about.
  if (is_own_eal()) rte_log_set_level_pattern("pmd.net.memif", RTE_LOG_CRIT);
  return true;
}

int DpdkDevice::start_driver(std::string& error) {
  int result = 0;
  control([&] { result = rte_eth_dev_start(port_); });
  if (result != 0 && wants_interrupt_) {
    // Some drivers only find out here that their interrupts do not work.
    wants_interrupt_ = false;
    if (!configure(error) || !set_up_queues(error)) return result;
    result = rte_eth_dev_start(port_);
  }
  is_started_ = result == 0;
  return result;
}

bool DpdkDevice::direct_traffic(std::string& error) {
  if (config_.vlan != 0) rte_eth_dev_vlan_filter(port_, config_.vlan, 1);
  if (is_isolated_) {
    if (steer_flows(port_, kQueue, *config_.flow, error)) return true;
    error = config_.spec.name + ": cannot tell its packets from the kernel's (" + error + ")";
    return false;
  }
  // Neighbor Discovery asks groups. Drivers that cannot filter let everything in anyway.
  if (rte_eth_allmulticast_enable(port_) != 0 || config_.promiscuous)
    rte_eth_promiscuous_enable(port_);
  return true;
}

/// What a driver takes without a word it may still have cut.
bool DpdkDevice::check_mtu(std::string& error) {
  std::uint16_t now = 0;
  if (!has_real_mtu(config_.spec.kind) || rte_eth_dev_get_mtu(port_, &now) != 0 || now == 0 ||
      now >= facts_.ip_mtu)
    return true;
  MtuInputs in{.wanted = config_.ip_mtu, .own = facts_.ip_mtu, .device_max = now};
  const MtuChoice choice = choose_mtu(in);
  facts_.ip_mtu = choice.ip_mtu;
  remark_ = choice.remark;
  if (choice.ip_mtu == 0) error = config_.spec.name + ": " + choice.error;
  return choice.ip_mtu != 0;
}

/// A memif has no statistics of a NIC, and its link is kept on the data path.
void DpdkDevice::watch_health() {
  if (config_.spec.kind == DeviceKind::kMemif) return;
  health_.watch(port_);
  Caretaker::instance().add(*this);
  is_ward_ = true;
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
  facts_.promiscuous = rte_eth_promiscuous_get(port_) == 1;
}

/// Of hardware: what virtual drivers report as speed is made up.
void DpdkDevice::read_link_rate() {
  const auto patient_until = std::chrono::steady_clock::now() + config_.link_patience;
  rte_eth_link link{};
  while (rte_eth_link_get_nowait(port_, &link) == 0 && link.link_status != RTE_ETH_LINK_UP &&
         std::chrono::steady_clock::now() < patient_until)
    std::this_thread::sleep_for(kLinkPause);
  if (link.link_speed != RTE_ETH_SPEED_NUM_UNKNOWN && link.link_speed != 0) {
    facts_.link_rate = base::BitRate::from_bps(std::uint64_t{link.link_speed} * 1'000'000);
    return;
  }
  if (!remark_.empty()) remark_ += "; ";
  remark_ += link.link_status == RTE_ETH_LINK_UP ? "the driver does not tell the rate of the link"
                                                 : "no link yet, so that its rate is unknown";
  remark_ +=
      config_.has_siblings
          ? ": it counts as fast as the slowest of the other planes"
          : ": congestion control reckons with 25 Gb/s unless FI_UET_LINK_GBPS says otherwise";
}

void DpdkDevice::open_interrupt() {
  interrupt_fd_ = rte_eth_dev_rx_intr_ctl_q_get_fd(port_, kQueue);
  if (interrupt_fd_ < 0) return;
  // Some drivers have the descriptor but not the switch.
  if (rte_eth_dev_rx_intr_enable(port_, kQueue) != 0)
    interrupt_fd_ = -1;
  else
    rte_eth_dev_rx_intr_disable(port_, kQueue);
}

}  // namespace uet::dpdk
