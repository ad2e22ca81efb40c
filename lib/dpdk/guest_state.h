/// What a library must leave as it found it in the application's process.
#pragma once

#include <sched.h>

#include <array>
#include <csignal>
#include <string>

namespace uet::dpdk {

/// Remembers the calling thread's CPU affinity and the process's signal handlers and locale; puts
/// back what changed when destroyed (on the same thread).
class GuestState {
 public:
  GuestState();
  ~GuestState();
  GuestState(const GuestState&) = delete;
  GuestState& operator=(const GuestState&) = delete;

 private:
  static constexpr int kSignals = 65;
  cpu_set_t affinity_{};
  bool has_affinity_ = false;
  std::array<struct sigaction, kSignals> handlers_{};
  std::array<bool, kSignals> has_handler_{};
  std::string locale_;
};

}  // namespace uet::dpdk
