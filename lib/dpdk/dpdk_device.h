/// One queue pair of one ethdev as a FrameDevice. The data path: no malloc, no system call, no
/// lock, but for a look at the link of a memif some fifty times a second.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>

#include "lib/base/trace.h"
#include "lib/dpdk/caretaker.h"
#include "lib/dpdk/device_health.h"
#include "lib/dpdk/device_spec.h"
#include "lib/dpdk/flow_rules.h"
#include "lib/dpdk/interrupt_gate.h"
#include "lib/dpdk/kernel_interface.h"
#include "lib/dpdk/mbuf_pool.h"
#include "lib/dpdk/xdp_left_overs.h"
#include "lib/net/frame_device.h"

struct rte_eth_conf;
struct rte_eth_dev_info;

namespace uet::dpdk {

struct DpdkDeviceConfig {
  DeviceSpec spec;
  std::size_t packets = 8192;  ///< that the endpoint may hold; the driver's descriptors come on top
  std::size_t ip_mtu = 0;      ///< 0: the device's own
  /// Seeds the MAC address of devices that have none.
  std::size_t mac_seed = 0;
  std::uint16_t vlan = 0;            ///< that frames for us carry
  std::uint16_t rx_descriptors = 0;  ///< 0: 1024
  std::uint16_t tx_descriptors = 0;
  std::uint16_t burst = 0;   ///< frames that the driver is asked for at a time; 0: 32
  bool promiscuous = false;  ///< take frames for every address
  bool has_siblings =
      false;  ///< one of several planes: the others go on while this one has no link
  bool sends_own_pool_only = false;  ///< frames to send come from pool()
  /// How long open() waits for the link of hardware, which tells its rate only then: autonegotiation takes seconds.
  std::chrono::milliseconds link_patience{4000};
  /// Where the kernel uses the device beside us: take nothing but this.
  std::optional<FlowTarget> flow;
};

/// One thread at a time. EAL must run before one is made, and keeps running after it is gone. In a forked child it receives and sends
/// nothing, and its end leaves everything to the parent.
class DpdkDevice final : public net::FrameDevice, private Caretaker::Ward {
 public:
  static constexpr std::size_t kBurstMax = 128;

  /// Null: `error` says what to do. Otherwise `error` is empty, or holds what the user should know.
  static std::unique_ptr<DpdkDevice> open(const DpdkDeviceConfig& config, base::Trace& trace,
                                          std::string& error);
  ~DpdkDevice() override;

  const net::FrameDeviceFacts& facts() const override { return facts_; }
  net::PacketPool& pool() override { return *pool_; }
  std::size_t receive_frames(std::span<net::Packet> out) override;
  std::size_t send_frames(std::span<net::Packet> in) override;
  bool has_link() override;
  std::uint32_t link_generation() const override { return link_generation_; }
  int wakeup_fd() const override { return interrupt_fd_; }
  bool arm_wakeup() override;

  /// True when only the packets of DpdkDeviceConfig::flow come here and the kernel has the rest.
  bool is_shared_with_kernel() const { return is_isolated_; }
  /// The kernel's interface under the device; empty: none.
  const std::string& interface() const { return interface_; }

 private:
  static constexpr std::uint16_t kQueue = 0;  ///< the pair

  DpdkDevice(const DpdkDeviceConfig& config, base::Trace& trace);

  // Opening; in dpdk_device_open.cc, as closing.
  bool bring_up(std::string& error);
  bool attach(std::string& error);
  bool find_or_plug_in(std::string& error);
  bool plug_in(std::string& error);
  void take_out();
  static void unplug(std::uint16_t port);
  bool find_port(const std::string& devargs);
  bool share_with_kernel(const rte_eth_dev_info& info, std::string& error);
  bool settle_mtu(const rte_eth_dev_info& info, std::string& error);
  bool prepare(std::string& error);
  bool configure(std::string& error);
  void ask_for(const rte_eth_dev_info& info, rte_eth_conf& conf) const;
  void set_mtu() const;
  bool make_pool(std::string& error);
  std::size_t packets_in_all() const;
  std::size_t packet_bytes() const;
  bool set_up_queues(std::string& error);
  bool start(std::string& error);
  int start_driver(std::string& error);
  bool direct_traffic(std::string& error);
  bool check_mtu(std::string& error);
  void watch_health();
  void read_facts();
  void read_link_rate();
  void open_interrupt();
  void shut();
  void stop_driver();
  void abandon();
  std::string explain(const std::string& what, int code) const;

  std::size_t receive_bursts(std::span<net::Packet> out);
  std::size_t take_stashed(std::span<net::Packet> out);
  std::size_t send_bursts(std::span<net::Packet> in);
  std::size_t drop_all(std::span<net::Packet> in);
  bool is_ready();
  bool is_at_work();
  void look_after() override;
  bool bring_back();
  bool keep_mac() const;
  void report_health();
  bool reads_link_up();
  void keep_link();
  void on_link_up();
  std::uint64_t turns_per_second_down() const;
  void be_patient();
  void begin_reconnect();
  static void reconnect(void* device);
  void control(const std::function<void()>& work);
  void disarm();
  net::Packet take(rte_mbuf* mbuf);
  void count_drop(base::DropReason reason, std::size_t bytes);

  DpdkDeviceConfig config_;
  base::Trace& trace_;
  net::FrameDeviceFacts facts_;
  std::unique_ptr<MbufPool> pool_;
  std::string remark_;  ///< what the user should know although it works
  std::uint16_t port_ = 0;
  bool is_attached_ = false;    ///< port_ is ours
  bool is_plugged_ = false;     ///< we plugged the device in; it was not there before
  bool is_relayed_ = false;     ///< clients reach it by a listener of ours
  XdpDescriptors descriptors_;  ///< that its driver opened and will forget
  bool is_isolated_ = false;
  std::atomic<bool> is_started_{false};  ///< written by the caretaker too
  bool wants_interrupt_ = false;
  const bool calls_kernel_;  ///< its driver, in bursts
  std::uint16_t descriptors_rx_ = 1024;
  std::uint16_t descriptors_tx_ = 1024;
  std::uint16_t burst_ = 32;
  int interrupt_fd_ = -1;
  bool is_armed_ = false;
  /// Received before a sleep that did not take place.
  std::array<rte_mbuf*, 32> stashed_{};
  std::size_t stashed_count_ = 0;
  std::size_t stashed_first_ = 0;

  DeviceHealth health_;
  unsigned failed_resets_ = 0;  ///< in a row; the caretaker's
  bool is_ward_ = false;
  bool is_gone_told_ = false;

  /// A memif client has to connect again itself. The interrupt thread does the work; the data path only looks at how far
  /// it is and keeps its hands off the device meanwhile.
  enum class Reconnect : std::uint8_t { kIdle, kRunning, kStarted, kFailed };
  std::string interface_;             ///< of the kernel, under the device; empty: none
  KernelInterface kernel_interface_;  ///< open unless `interface_` is none
  bool is_interface_gone_ = false;
  bool is_memif_ = false;    ///< its peer may come and go
  bool is_kept_ = false;     ///< and we have to connect again
  bool notes_sent_ = false;  ///< a memif without copying, which forgets what it holds
  std::uint32_t link_generation_ = 0;
  bool was_up_ = false;
  InterruptGate::Member gate_;  ///< joined by memif
  std::atomic<Reconnect> reconnect_{Reconnect::kIdle};
  bool needs_stop_ = false;  ///< before the next start; the interrupt thread's while kRunning
  std::uint64_t next_link_check_ = 0;  ///< this and the others in cycles
  std::uint64_t next_interrupts_ = 0;
  std::uint64_t patience_ = 0;    ///< looks at the link that a connection gets to come up
  std::uint64_t looks_left_ = 0;  ///< of them
  std::uint64_t attempts_ = 0;    ///< to connect that came to nothing, since the link was up
  std::uint64_t cycles_per_second_ = 0;
};

}  // namespace uet::dpdk
