#include "lib/dpdk/eal.h"

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_lcore.h>
#include <rte_log.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <mutex>
#include <thread>
#include <vector>

#include "lib/dpdk/dpdk_log.h"
#include "lib/dpdk/guest_state.h"

namespace uet::dpdk {

namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;
// Without hugepages the memory is fixed when EAL starts. It is only touched when used, so later
// ports get room too.
constexpr std::size_t kNoHugeBytesMin = 1024 * kMiB;

enum class EalState { kNotStarted, kOwn, kApplication, kFailed };

/// Set once under the mutex; EAL cannot be started again after a failure.
struct Eal {
  std::mutex mutex;
  EalState state = EalState::kNotStarted;
  std::string failure;
};

Eal& eal() {
  static auto* const instance = new Eal;
  return *instance;
}

std::size_t free_hugepage_bytes() {
  std::size_t total = 0;
  for (const std::size_t kib : {std::size_t{2048}, std::size_t{1048576}}) {
    const std::string path =
        "/sys/kernel/mm/hugepages/hugepages-" + std::to_string(kib) + "kB/free_hugepages";
    std::FILE* file = std::fopen(path.c_str(), "re");
    if (file == nullptr) continue;
    unsigned long pages = 0;
    if (std::fscanf(file, "%lu", &pages) == 1) total += pages * kib * 1024;
    std::fclose(file);
  }
  return total;
}

int first_allowed_cpu() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 0;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &set)) return cpu;
  return 0;
}

std::vector<std::string> arguments(const EalNeeds& needs) {
  std::vector<std::string> args = {
      "uet",
      "--no-telemetry",
      "--file-prefix=uet" + std::to_string(getpid()),
      // One logical core on whatever CPU: no worker threads.
      "--lcores=0@" + std::to_string(first_allowed_cpu()),
      "--log-level=*:error",
  };
  if (needs.pci_device.empty()) {
    args.emplace_back("--no-pci");
    args.emplace_back("--iova-mode=va");
  } else {
    args.emplace_back("--allow=" + needs.pci_device);
  }
  if (free_hugepage_bytes() >= needs.memory_bytes + 64 * kMiB) {
    args.emplace_back("--in-memory");
  } else {
    // DPDK refuses --in-memory together with --no-huge. What is left of it is to share no
    // configuration.
    const std::size_t bytes = std::max(kNoHugeBytesMin, 2 * needs.memory_bytes);
    args.emplace_back("--no-shconf");
    args.emplace_back("--no-huge");
    args.emplace_back("-m");
    args.emplace_back(std::to_string(bytes / kMiB));
  }
  return args;
}

/// Runs on a thread of its own, which EAL may pin and mark as its main core as it likes.
int start_eal(std::vector<std::string> args) {
  std::vector<char*> argv;
  for (std::string& a : args) argv.push_back(a.data());
  argv.push_back(nullptr);
  return rte_eal_init(static_cast<int>(args.size()), argv.data()) < 0 ? rte_errno : 0;
}

void start(Eal& e, const EalNeeds& needs) {
  if (rte_lcore_count() > 0) {
    e.state = EalState::kApplication;
    return;
  }
  const GuestState as_found;
  const LogCapture log;
  install_dpdk_log();
  int result = 0;
  std::thread([&] { result = start_eal(arguments(needs)); }).join();
  if (result == 0) {
    e.state = EalState::kOwn;
  } else if (result == EALREADY) {
    e.state = EalState::kApplication;
  } else {
    e.state = EalState::kFailed;
    e.failure = "DPDK does not start (" + std::string(rte_strerror(result)) +
                "): " + LogCapture::first_message();
  }
}

/// Takes the lcore id back when its thread ends.
struct ThreadRegistration {
  bool was_tried = false;
  bool is_registered = false;
  ~ThreadRegistration() {
    if (is_registered) rte_thread_unregister();
  }
};

}  // namespace

bool ensure_eal(const EalNeeds& needs, std::string& error) {
  Eal& e = eal();
  const std::lock_guard lock(e.mutex);
  if (e.state == EalState::kNotStarted) start(e, needs);
  if (e.state == EalState::kFailed) {
    error = e.failure;
    return false;
  }
  if (!needs.pci_device.empty() && !has_pci()) {
    error =
        "DPDK of this process was started without PCI; open the PCI device before any other dpdk "
        "port";
    return false;
  }
  return true;
}

bool is_own_eal() {
  return eal().state == EalState::kOwn;
}

bool has_pci() {
  return rte_eal_has_pci() != 0;
}

bool has_hugepages() {
  return rte_eal_has_hugepages() != 0;
}

void register_thread() {
  thread_local ThreadRegistration registration;
  if (registration.was_tried) [[likely]]
    return;
  registration.was_tried = true;
  if (rte_lcore_id() == LCORE_ID_ANY) registration.is_registered = rte_thread_register() == 0;
}

}  // namespace uet::dpdk
