#include "lib/dpdk/dpdk_device.h"

#include <rte_cycles.h>
#include <rte_ethdev.h>
#include <rte_ether.h>
#include <rte_mbuf.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <optional>
#include <utility>

#include "lib/base/cancellation.h"
#include "lib/dpdk/dpdk_log.h"
#include "lib/dpdk/eal.h"
#include "lib/dpdk/guest_thread.h"
#include "lib/dpdk/interrupt_thread.h"
#include "lib/dpdk/memory_descriptors.h"

namespace uet::dpdk {

using base::DropReason;
using net::Packet;

namespace {

constexpr std::uint64_t kLinkChecksPerSecond = 50;
// A connection that is being set up takes half a dozen turns of the interrupt thread; one that stands only ends.
constexpr std::uint64_t kTurnsPerSecondDown = 1000;
constexpr std::uint64_t kTurnsPerSecondUp = 10;
// While the thread is at work no memif of the process moves packets, so a plane without a link must not ask for much.
constexpr std::uint64_t kTurnsPerSecondBesideOthers = 250;
// A server whose device is not ready yet refuses, and the driver does not report it. So a connection gets some looks at its link at first, and more
// each time. Not few: it takes a dozen turns of either end, and a client that gives up a connection and makes another can mislead the
// driver of a server of another make for good (docs/decisions/0022). Looks and not time: in a program that turns its loop seldom, and on
// a crowded machine, the connection comes on as slowly as the looks.
constexpr std::uint64_t kPatienceFirst = 200;

// A device that does not come back from a reset within about so many seconds is given up.
constexpr unsigned kResetsMax = 30;

base::Instant clock_now() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return base::Instant::from_ns(t.tv_sec * 1'000'000'000 + t.tv_nsec);
}

}  // namespace

// --- Sleeping

bool DpdkDevice::arm_wakeup() {
  if (interrupt_fd_ < 0 || is_forked_child() || !is_at_work()) return true;
  const base::WithoutCancellation without_cancellation;
  if (stashed_count_ != 0) return false;
  if (!is_armed_) is_armed_ = rte_eth_dev_rx_intr_enable(port_, kQueue) == 0;
  // What arrived before the switch was on makes no interrupt.
  const int waiting = rte_eth_rx_queue_count(port_, kQueue);
  if (waiting >= 0) return waiting == 0;
  // A driver that cannot count: take what there is.
  stashed_first_ = 0;
  stashed_count_ =
      rte_eth_rx_burst(port_, kQueue, stashed_.data(), static_cast<std::uint16_t>(stashed_.size()));
  return stashed_count_ == 0;
}

void DpdkDevice::disarm() {
  const base::WithoutCancellation without_cancellation;
  is_armed_ = false;
  rte_eth_dev_rx_intr_disable(port_, kQueue);
  std::uint64_t events = 0;
  // An eventfd stays readable until read; a TAP descriptor is emptied by receiving.
  if (config_.spec.is_hardware() && read(interrupt_fd_, &events, sizeof events) < 0) return;
}

// --- Data path

std::size_t DpdkDevice::receive_frames(std::span<Packet> out) {
  if (is_forked_child()) [[unlikely]]
    return 0;
  std::optional<base::WithoutCancellation> without_cancellation;
  if (calls_kernel_) without_cancellation.emplace();
  register_thread();
  if (is_memif_) keep_link();
  if (is_armed_) [[unlikely]]
    disarm();
  if (!is_ready()) [[unlikely]]
    return 0;
  const std::size_t n = receive_bursts(out);
  if (is_memif_) gate_.end();
  return n;
}

/// Whether the device may be touched now; after true a memif's burst has begun.
bool DpdkDevice::is_ready() {
  return is_started_ && (health_.state() == DeviceHealth::State::kGood || is_at_work()) &&
         (!is_memif_ || gate_.begin());
}

std::size_t DpdkDevice::receive_bursts(std::span<Packet> out) {
  std::size_t n = stashed_count_ == 0 ? 0 : take_stashed(out);
  while (n < out.size()) {
    rte_mbuf* mbufs[kBurstMax];
    const auto want = static_cast<std::uint16_t>(std::min<std::size_t>(burst_, out.size() - n));
    const std::uint16_t got = rte_eth_rx_burst(port_, kQueue, mbufs, want);
    for (std::uint16_t i = 0; i < got; ++i) {
      out[n] = take(mbufs[i]);
      if (out[n]) ++n;
    }
    if (got < want) break;
  }
  return n;
}

std::size_t DpdkDevice::take_stashed(std::span<Packet> out) {
  std::size_t n = 0;
  while (stashed_first_ < stashed_count_ && n < out.size()) {
    out[n] = take(stashed_[stashed_first_++]);
    if (out[n]) ++n;
  }
  if (stashed_first_ == stashed_count_) stashed_first_ = stashed_count_ = 0;
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
  // Some ports take tags off whether asked to or not: a virtual function whose host says so. Whose VLAN it was is IpPort's to judge.
  if ((mbuf->ol_flags & RTE_MBUF_F_RX_VLAN_STRIPPED) != 0) [[unlikely]] {
    if (rte_vlan_insert(&mbuf) != 0) {
      count_drop(DropReason::kVlanMismatch, mbuf->pkt_len);
      rte_pktmbuf_free(mbuf);
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
  trace_.drop(clock_now(), reason, bytes);
}

std::size_t DpdkDevice::send_frames(std::span<Packet> in) {
  if (is_forked_child()) [[unlikely]]
    return 0;
  std::optional<base::WithoutCancellation> without_cancellation;
  if (calls_kernel_) without_cancellation.emplace();
  register_thread();
  if (is_memif_) keep_link();
  if (!is_ready()) [[unlikely]]
    return health_.state() == DeviceHealth::State::kGone ? drop_all(in) : 0;
  const std::size_t n = send_bursts(in);
  if (is_memif_) gate_.end();
  return n;
}

std::size_t DpdkDevice::send_bursts(std::span<Packet> in) {
  std::size_t n = 0;
  while (n < in.size()) {
    rte_mbuf* mbufs[kBurstMax];
    const std::size_t count = std::min<std::size_t>(burst_, in.size() - n);
    for (std::size_t i = 0; i < count; ++i) mbufs[i] = MbufPool::to_mbuf(in[n + i]);
    const std::uint16_t sent =
        rte_eth_tx_burst(port_, kQueue, mbufs, static_cast<std::uint16_t>(count));
    if (notes_sent_) MbufPool::note_sent({mbufs, sent});
    // The driver owns what it took.
    for (std::uint16_t i = 0; i < sent; ++i) (void)in[n + i].release();
    n += sent;
    if (sent < count) break;
  }
  return n;
}

std::size_t DpdkDevice::drop_all(std::span<Packet> in) {
  for (Packet& packet : in) {
    count_drop(DropReason::kDeviceGone, packet.size());
    packet.reset();
  }
  return in.size();
}

// --- Health

/// What to do with a device about which there is something to say; false: keep off it.
bool DpdkDevice::is_at_work() {
  using State = DeviceHealth::State;
  switch (health_.state()) {
    case State::kGood:
      return true;
    case State::kGrown:
      health_.change(State::kGrown, State::kGood);
      report_health();
      return true;
    case State::kResetWanted:
      // The driver makes another descriptor, and this number may be another file's then: from now on the loop polls.
      interrupt_fd_ = -1;
      is_armed_ = false;
      if (health_.change(State::kResetWanted, State::kReleased)) Caretaker::instance().wake();
      return false;
    case State::kBack:
      if (!health_.change(State::kBack, State::kGood)) return false;
      ++link_generation_;  // its neighbors may have changed
      return true;
    case State::kReleased:
      return false;
    case State::kGone:
      // Once by itself: who only receives has nothing to lose, and would wait for ever without a sign.
      if (!std::exchange(is_gone_told_, true)) count_drop(DropReason::kDeviceGone, 0);
      return false;
  }
  return false;
}

void DpdkDevice::report_health() {
  const auto losses = health_.take_losses();
  for (std::size_t i = 0; i < losses.size(); ++i)
    if (losses[i] != 0) trace_.drop_elsewhere(clock_now(), DeviceHealth::kCounted[i], losses[i]);
}

/// On the caretaker's thread.
void DpdkDevice::look_after() {
  using State = DeviceHealth::State;
  const LogCapture quiet;
  const State state = health_.state();
  if (state == State::kGood || state == State::kGrown) return health_.read_statistics();
  if (state != State::kReleased) return;
  if (bring_back()) {
    health_.forget_statistics();
    health_.change(State::kReleased, State::kBack);
    return;
  }
  if (++failed_resets_ < kResetsMax) return;  // again in a second
  health_.change(State::kReleased, State::kGone);
}

/// After a reset the driver knows nothing of its queues. Their packets came from the pool, which stays.
bool DpdkDevice::bring_back() {
  std::string ignored;
  if (rte_eth_dev_reset(port_) != 0 || !configure(ignored) || !set_up_queues(ignored)) return false;
  if (start_driver(ignored) != 0 || !direct_traffic(ignored) || !keep_mac()) return false;
  failed_resets_ = 0;
  return true;
}

/// Peers know our MAC, and packets bear it. A reset may have changed the device's: that of a VF is drawn anew, or set by its host.
bool DpdkDevice::keep_mac() const {
  rte_ether_addr ours{}, now{};
  std::copy_n(facts_.mac.begin(), 6, ours.addr_bytes);
  if (rte_eth_macaddr_get(port_, &now) == 0 && rte_is_same_ether_addr(&ours, &now)) return true;
  return rte_eth_dev_default_mac_addr_set(port_, &ours) == 0;
}

// --- Links

/// The data path of a memif knows anyway; the others are asked, which an owner of only one port does not do.
bool DpdkDevice::has_link() {
  if (is_forked_child()) return false;
  const base::WithoutCancellation without_cancellation;
  if (is_memif_) return was_up_;
  const bool is_up = is_started_ &&
                     (health_.state() == DeviceHealth::State::kGood || is_at_work()) &&
                     reads_link_up();
  if (is_up && !std::exchange(was_up_, is_up)) ++link_generation_;
  was_up_ = is_up;
  return is_up;
}

/// Drivers on top of an interface of the kernel report a link that is always up.
bool DpdkDevice::reads_link_up() {
  if (kernel_interface_.is_open()) {
    const KernelLink link = kernel_interface_.link();
    if (link == KernelLink::kGone && !std::exchange(is_interface_gone_, true))
      std::fprintf(stderr,
                   "uet: interface %s under port %s is gone, and one that is made anew is another: "
                   "the port has no link until the program starts again\n",
                   interface_.c_str(), facts_.name.c_str());
    return link == KernelLink::kUp;
  }
  rte_eth_link link{};
  return rte_eth_link_get_nowait(port_, &link) != 0 || link.link_status == RTE_ETH_LINK_UP;
}

/// Gives the interrupt thread its turns, and looks at the link: often while it is down, because who sends before we know
/// that it is up has to ask for its neighbors twice.
void DpdkDevice::keep_link() {
  const std::uint64_t now = rte_get_tsc_cycles();
  if (now < next_link_check_) [[likely]]
    return;
  const std::uint64_t checks_per_second = was_up_ ? kLinkChecksPerSecond : turns_per_second_down();
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
    patience_ = std::min(patience_ * 2, turns_per_second_down());
    looks_left_ = patience_;
  }
  if (is_started_) {
    rte_eth_link link{};
    if (rte_eth_link_get_nowait(port_, &link) == 0 && link.link_status == RTE_ETH_LINK_UP) {
      if (!std::exchange(was_up_, true)) on_link_up();
      patience_ = kPatienceFirst;
      return;
    }
    if (!was_up_ && looks_left_ != 0) {
      --looks_left_;
      return;
    }
  }
  if (is_kept_)
    begin_reconnect();
  else
    was_up_ = false;  // a server only waits
}

void DpdkDevice::on_link_up() {
  ++link_generation_;
  attempts_ = 0;
  if (config_.spec.is_without_copying()) restore_memory_descriptors();
}

std::uint64_t DpdkDevice::turns_per_second_down() const {
  return config_.has_siblings ? kTurnsPerSecondBesideOthers : kTurnsPerSecondDown;
}

void DpdkDevice::be_patient() {
  patience_ = looks_left_ = kPatienceFirst;
}

void DpdkDevice::begin_reconnect() {
  // The trace tells of a connection that a server took and did not bring up. A device that found no server listening was not started, and
  // tries again at every look at the link: thousands of events that say nothing new.
  if (is_started_ && !was_up_)
    trace_.emit(clock_now(), base::EventId::kLinkRetried, 0, {}, ++attempts_);
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
  if (self->needs_stop_) self->stop_driver();
  // Another file in the place of DPDK's memory must not go to the peer.
  if (self->config_.spec.is_without_copying() && !restore_memory_descriptors())
    self->health_.change(DeviceHealth::State::kGood, DeviceHealth::State::kGone);
  const bool is_started =
      self->health_.state() == DeviceHealth::State::kGood && rte_eth_dev_start(self->port_) == 0;
  self->reconnect_.store(is_started ? Reconnect::kStarted : Reconnect::kFailed,
                         std::memory_order_release);
}

}  // namespace uet::dpdk
