#include "apps/perf/patience.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <string_view>

namespace uet::perf {
namespace {

/// On stderr, also while its lock is taken.
void say(std::string_view text) {
  if (write(STDERR_FILENO, text.data(), text.size()) < 0) {
    // Nothing more can be done.
  }
}

}  // namespace

std::chrono::milliseconds Patience::left() const {
  const auto rest = limit_ - std::chrono::duration_cast<std::chrono::milliseconds>(silence());
  return std::max(rest, std::chrono::milliseconds(0));
}

void Patience::check(const std::string& waiting_for) const {
  if (silence() <= limit_) return;
  throw std::runtime_error(
      fmt::format("nothing happened for {:g} s (--timeout) while waiting for {}",
                  static_cast<double>(limit_.count()) / 1000, waiting_for));
}

Watchdog::Watchdog(const Patience& patience, std::chrono::milliseconds grace)
    : patience_(patience), grace_(grace), thread_([this] { watch(); }) {}

Watchdog::~Watchdog() {
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
  }
  over_.notify_one();
  thread_.join();
}

void Watchdog::watch() {
  std::unique_lock lock(mutex_);
  while (!over_.wait_for(lock, std::chrono::milliseconds(500), [this] { return is_over_; })) {
    if (patience_.silence() <= patience_.limit() + grace_) continue;
    say("uet-perf: a call into the provider does not come back; giving up\n");
    if (ftrylockfile(stdout) == 0) std::fflush(stdout);  // figures so far
    _exit(1);
  }
}

}  // namespace uet::perf
