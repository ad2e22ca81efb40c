#include "lib/dpdk/device_health.h"

#include <rte_ethdev.h>

#include <utility>

#include "lib/dpdk/guest_thread.h"

namespace uet::dpdk {

namespace {

constexpr std::array kEvents = {RTE_ETH_EVENT_INTR_RMV, RTE_ETH_EVENT_INTR_RESET};

}  // namespace

/// On a thread of DPDK's.
int DeviceHealth::on_event(std::uint16_t, rte_eth_event_type event, void* self, void*) {
  auto& state = static_cast<DeviceHealth*>(self)->state_;
  if (event == RTE_ETH_EVENT_INTR_RMV) {
    state.store(State::kGone);
    return 0;
  }
  // A second wish while the first is being fulfilled is the same wish.
  for (State now = state.load();
       now == State::kGood || now == State::kGrown || now == State::kBack;)
    if (state.compare_exchange_weak(now, State::kResetWanted)) break;
  return 0;
}

void DeviceHealth::watch(std::uint16_t port) {
  port_ = port;
  is_watching_ = true;
  seen_ = read(port).value_or(Counts{});
  for (const rte_eth_event_type event : kEvents)
    rte_eth_dev_callback_register(port, event, on_event, this);
}

void DeviceHealth::unwatch() {
  if (!std::exchange(is_watching_, false) || is_forked_child()) return;
  for (const rte_eth_event_type event : kEvents)
    rte_eth_dev_callback_unregister(port_, event, on_event, this);
}

std::optional<DeviceHealth::Counts> DeviceHealth::read(std::uint16_t port) {
  rte_eth_stats stats{};
  if (rte_eth_stats_get(port, &stats) != 0) return std::nullopt;
  return Counts{stats.imissed, stats.rx_nombuf, stats.ierrors, stats.oerrors};
}

void DeviceHealth::read_statistics() {
  const auto read_now = read(port_);
  if (!read_now) return;  // a driver that does not count, or is busy
  const Counts& now = *read_now;
  bool has_grown = false;
  for (std::size_t i = 0; i < now.size(); ++i) {
    // Less than before: the driver or another program reset the counters.
    const std::uint64_t more = now[i] >= seen_[i] ? now[i] - seen_[i] : now[i];
    if (more == 0) continue;
    lost_[i].fetch_add(more, std::memory_order_relaxed);
    has_grown = true;
  }
  seen_ = now;
  if (has_grown) change(State::kGood, State::kGrown);
}

DeviceHealth::Counts DeviceHealth::take_losses() {
  Counts losses{};
  for (std::size_t i = 0; i < losses.size(); ++i) {
    const std::uint64_t now = lost_[i].load(std::memory_order_relaxed);
    losses[i] = now - std::exchange(taken_[i], now);
  }
  return losses;
}

}  // namespace uet::dpdk
