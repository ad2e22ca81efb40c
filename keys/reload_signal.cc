#include "keys/reload_signal.h"

#include <array>
#include <atomic>
#include <csignal>

#include "lib/base/check.h"

namespace uet::keys {
namespace {

std::atomic<std::uint64_t> requests{0};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);  // else no handler may touch it

void on_signal(int) {
  request_reload();
}

}  // namespace

std::uint64_t reload_requests() {
  return requests.load(std::memory_order_relaxed);
}

void request_reload() {
  requests.fetch_add(1, std::memory_order_relaxed);
}

void reload_on_signal(ReloadSignal which) {
  constexpr std::array kNumbers = {SIGHUP, SIGUSR1, SIGUSR2};
  struct sigaction ours {};
  ours.sa_handler = on_signal;
  ours.sa_flags = SA_RESTART;  // programs that never expected it see no interrupted call
  UET_CHECK(sigaction(kNumbers[static_cast<std::size_t>(which)], &ours, nullptr) == 0);
}

}  // namespace uet::keys
