/// What a device's driver tells besides frames: that the device was reset or is gone, and what its statistics say it lost. Told on
/// threads of DPDK and of the caretaker, heard by the data path, which looks at one atomic per burst.
#pragma once

#include <rte_ethdev.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>

#include "lib/base/drop_reason.h"

namespace uet::dpdk {

class DeviceHealth {
 public:
  enum class State : std::uint8_t {
    kGood,
    kGrown,        ///< good, and the statistics grew
    kResetWanted,  ///< by the driver; the data path lets go at its next burst
    kReleased,     ///< by the data path; the caretaker resets the device
    kBack,         ///< works again; the data path takes it at its next burst
    kGone,         ///< removed, or not to be brought back
  };

  /// What is counted, and as what.
  static constexpr std::array kCounted = {
      base::DropReason::kDeviceMissed, base::DropReason::kDeviceNoBuffer,
      base::DropReason::kDeviceReceiveError, base::DropReason::kDeviceSendError};
  using Counts = std::array<std::uint64_t, kCounted.size()>;

  ~DeviceHealth() { unwatch(); }

  /// Listens to the driver's events. Its statistics count from now on.
  void watch(std::uint16_t port);
  void unwatch();

  State state() const { return state_.load(std::memory_order_acquire); }
  /// False when something else happened meanwhile.
  bool change(State from, State to) { return state_.compare_exchange_strong(from, to); }

  /// Caretaker: reads the statistics.
  void read_statistics();
  /// After a reset they begin at zero.
  void forget_statistics() { seen_ = {}; }
  /// Data path: what was lost since the last call.
  Counts take_losses();

 private:
  static int on_event(std::uint16_t port, rte_eth_event_type event, void* self, void* details);
  static std::optional<Counts> read(std::uint16_t port);

  std::uint16_t port_ = 0;
  bool is_watching_ = false;
  std::atomic<State> state_{State::kGood};
  Counts seen_{};  ///< caretaker's
  std::array<std::atomic<std::uint64_t>, kCounted.size()> lost_{};
  Counts taken_{};  ///< data path's
};

}  // namespace uet::dpdk
