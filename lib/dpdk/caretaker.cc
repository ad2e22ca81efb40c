#include "lib/dpdk/caretaker.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>
#include <mutex>
#include <vector>

#include "lib/base/cancellation.h"
#include "lib/dpdk/guest_thread.h"

namespace uet::dpdk {

namespace {

constexpr int kPeriodMs = 1000;

}  // namespace

struct Caretaker::State {
  std::mutex mutex;  ///< of what follows; held while a ward is looked after
  std::vector<Ward*> wards;
  bool is_running = false;
  int wakeup = -1;  ///< an eventfd: a thread of the data path writes it without a lock
};

Caretaker& Caretaker::instance() {
  static auto* const caretaker = new Caretaker;
  return *caretaker;
}

Caretaker::Caretaker() : state_(new State) {}

void Caretaker::add(Ward& ward) {
  const std::lock_guard lock(state_->mutex);
  state_->wards.push_back(&ward);
  if (state_->is_running) return;
  if (state_->wakeup < 0) state_->wakeup = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  state_->is_running = start_guest_thread("uet-dpdk-care", [state = state_] { run(*state); });
}

void Caretaker::remove(Ward& ward) {
  {
    const std::lock_guard lock(state_->mutex);
    std::erase(state_->wards, &ward);
  }
  wake();  // the thread ends with the last one
}

void Caretaker::wake() {
  const base::WithoutCancellation without_cancellation;
  const std::uint64_t one = 1;
  // Full means that it is awake anyway.
  if (write(state_->wakeup, &one, sizeof one) < 0) return;
}

void Caretaker::run(State& state) {
  for (;;) {
    pollfd wait{.fd = state.wakeup, .events = POLLIN, .revents = 0};
    poll(&wait, 1, kPeriodMs);
    std::uint64_t count = 0;
    const bool was_woken = read(state.wakeup, &count, sizeof count) > 0;
    const std::lock_guard lock(state.mutex);
    if (state.wards.empty() && was_woken) {
      state.is_running = false;
      return;
    }
    for (Ward* ward : state.wards) ward->look_after();
  }
}

}  // namespace uet::dpdk
