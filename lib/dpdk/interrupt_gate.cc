#include "lib/dpdk/interrupt_gate.h"

#include <rte_alarm.h>

#include <algorithm>

#include "lib/dpdk/eal.h"
#include "lib/dpdk/guest_thread.h"

namespace uet::dpdk {

namespace {

// An alarm that is due before the thread has left the alarm list would run from that same walk, and nothing else would
// ever get its turn.
constexpr std::uint64_t kPassUs = 20;

}  // namespace

InterruptGate& InterruptGate::instance() {
  // Never destroyed: the thread may stand at the gate when the process ends.
  static auto* const gate = new InterruptGate;
  return *gate;
}

void InterruptGate::Member::join() {
  if (has_joined_ || !is_own_eal()) return;
  InterruptGate& gate = instance();
  const std::lock_guard lock(gate.mutex_);
  has_joined_ = true;
  gate.members_.push_back(this);
  if (gate.is_armed_) {
    if (gate.members_.size() != 1) return;
    // The last one left just now, and opened the gate. A thread that has not noticed yet stays, and then the gate is shut again; one
    // that is through is not to be met.
    gate.is_open_ = false;
    if (gate.is_standing_) gate.state_.store(State::kShut);
    return;
  }
  gate.state_.store(State::kPassing);
  if (!gate.rearm()) gate.state_.store(State::kNoGate);
}

void InterruptGate::Member::leave() {
  // In a forked child there is no thread to keep away, and its parent may hold the mutex.
  if (!has_joined_ || is_forked_child()) return;
  InterruptGate& gate = instance();
  const std::lock_guard lock(gate.mutex_);
  has_joined_ = false;
  std::erase(gate.members_, this);
  if (!gate.members_.empty()) return;
  gate.is_open_ = true;
  gate.opened_.notify_one();
}

bool InterruptGate::Member::begin() {
  // Either we see that it is passing, or let_through() sees that we are busy: both are sequentially consistent.
  is_busy_.store(true);
  if (instance().state_.load() != State::kPassing) [[likely]]
    return true;
  end();
  return false;
}

void InterruptGate::let_through() {
  const std::lock_guard lock(mutex_);
  if (state_.load() != State::kShut) return;
  state_.store(State::kPassing);
  const bool is_busy = std::any_of(members_.begin(), members_.end(),
                                   [](const Member* member) { return member->is_busy_.load(); });
  if (is_busy) {
    state_.store(State::kShut);
    return;
  }
  is_open_ = true;
  opened_.notify_one();
}

bool InterruptGate::rearm() {
  return is_armed_ = rte_eal_alarm_set(kPassUs, stand, this) == 0;
}

/// On the interrupt thread.
void InterruptGate::stand(void* argument) {
  auto* const gate = static_cast<InterruptGate*>(argument);
  if (auto* const work = gate->on_return_.load()) (void)work();
  std::unique_lock lock(gate->mutex_);
  if (!gate->members_.empty()) {
    gate->state_.store(State::kShut);
    gate->is_standing_ = true;
    gate->opened_.wait(lock, [gate] { return gate->is_open_; });
    gate->is_standing_ = false;
  }
  gate->is_open_ = false;
  gate->is_armed_ = false;
  if (gate->members_.empty() || !gate->rearm()) gate->state_.store(State::kNoGate);
}

}  // namespace uet::dpdk
