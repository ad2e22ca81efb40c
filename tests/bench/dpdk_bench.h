/// What the benchmarks on DPDK's pools and devices share: EAL, the meter, and opening of devices.
#pragma once

#include <benchmark/benchmark.h>
#include <linux/perf_event.h>
#include <rte_cycles.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cstdlib>
#include <map>
#include <memory>
#include <string>

#include "lib/dpdk/dpdk_device.h"
#include "lib/dpdk/eal.h"
#include "lib/dpdk/mbuf_pool.h"

namespace uet::dpdk {

constexpr unsigned kPackets = 8192;
constexpr std::size_t kPacketBytes = 9216;

/// EAL runs, with the arguments of UET_BENCH_EAL.
inline bool is_ready(benchmark::State& state) {
  const char* const arguments = std::getenv("UET_BENCH_EAL");
  std::string error;
  const bool is_up = ensure_eal({.memory_bytes = std::size_t{256} << 20,
                                 .single_file = true,
                                 .user_arguments = arguments != nullptr ? arguments : ""},
                                error);
  if (!is_up) state.SkipWithError(error.c_str());
  register_thread();
  return is_up;
}

/// Cycles and instructions between its birth and report().
class Meter {
 public:
  Meter() {
    static const int fd = open_counter();
    fd_ = fd;
    instructions_ = read_counter();
    started_ns_ = cpu_ns();
  }
  void report(benchmark::State& state, double packets) const {
    const std::uint64_t ns = cpu_ns() - started_ns_;
    if (packets == 0) return;
    const double hz = static_cast<double>(rte_get_tsc_hz());
    state.counters["cycles"] = static_cast<double>(ns) * hz / 1e9 / packets;
    if (fd_ >= 0)
      state.counters["instructions"] =
          static_cast<double>(read_counter() - instructions_) / packets;
    state.SetItemsProcessed(static_cast<std::int64_t>(packets));
  }

 private:
  /// Of this thread alone: others may share its CPU.
  static std::uint64_t cpu_ns() {
    timespec t{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000 +
           static_cast<std::uint64_t>(t.tv_nsec);
  }
  static int open_counter() {
    perf_event_attr what{};
    what.type = PERF_TYPE_HARDWARE;
    what.size = sizeof what;
    what.config = PERF_COUNT_HW_INSTRUCTIONS;
    what.exclude_kernel = 1;
    return static_cast<int>(syscall(SYS_perf_event_open, &what, 0, -1, -1, 0));
  }
  std::uint64_t read_counter() const {
    std::uint64_t count = 0;
    return fd_ >= 0 && read(fd_, &count, sizeof count) == sizeof count ? count : 0;
  }

  int fd_ = -1;
  std::uint64_t instructions_ = 0;
  std::uint64_t started_ns_ = 0;
};

inline std::unique_ptr<DpdkDevice> open(const std::string& spec, base::Trace& trace,
                                        std::string& error) {
  DpdkDeviceConfig config{.packets = 4096, .burst = 64};
  if (!parse_device_spec("dpdk:" + spec, config.spec, error)) return nullptr;
  add_default_arguments(default_ip_mtu(config.spec), config.spec);
  return DpdkDevice::open(config, trace, error);
}

/// Stays open as long as the process: drivers take their time to open.
inline DpdkDevice* opened_once(const std::string& spec, std::string& error) {
  static auto& devices = *new std::map<std::string, std::unique_ptr<DpdkDevice>>;
  static auto& trace = *new base::Trace;
  std::unique_ptr<DpdkDevice>& device = devices[spec];
  if (device == nullptr) device = open(spec, trace, error);
  return device.get();
}

}  // namespace uet::dpdk
