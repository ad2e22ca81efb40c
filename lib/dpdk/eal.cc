#include "lib/dpdk/eal.h"

#include <fcntl.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_lcore.h>
#include <rte_log.h>
#include <sched.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <mutex>
#include <optional>
#include <vector>

#include "lib/base/cancellation.h"
#include "lib/dpdk/dpdk_log.h"
#include "lib/dpdk/guest_state.h"
#include "lib/dpdk/guest_thread.h"
#include "lib/dpdk/memory_nodes.h"

namespace uet::dpdk {

namespace {

enum class EalState { kNotStarted, kOwn, kApplication, kFailed };

/// Set once under the mutex; EAL cannot be started again after a failure.
struct Eal {
  std::mutex mutex;
  EalState state = EalState::kNotStarted;
  std::string failure;
  std::string user_arguments;  ///< that it was started with
};

Eal& eal() {
  static auto* const instance = new Eal;
  return *instance;
}

std::vector<int> allowed_cpus() {
  std::vector<int> cpus;
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
  return cpus;
}

/// Held from the look at what is free until EAL has taken its part: processes that start together, as those of one job do, would all count
/// on the same pages, and EAL that finds too few cannot be started again. After five seconds it goes on without: a holder may be stopped.
class HugepagesTurn {
 public:
  HugepagesTurn()
      : folder_(::open("/sys/kernel/mm/hugepages", O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
    constexpr int kTries = 500;
    for (int i = 0; folder_ >= 0 && flock(folder_, LOCK_EX | LOCK_NB) != 0 && i < kTries; ++i)
      usleep(10'000);
  }
  ~HugepagesTurn() {
    if (folder_ >= 0) close(folder_);
  }
  HugepagesTurn(const HugepagesTurn&) = delete;
  HugepagesTurn& operator=(const HugepagesTurn&) = delete;

 private:
  const int folder_;
};

/// Runs on a thread of its own, which EAL may pin and mark as its main core as it likes.
int start_eal(std::vector<std::string> args) {
  std::vector<char*> argv;
  for (std::string& a : args) argv.push_back(a.data());
  argv.push_back(nullptr);
  return rte_eal_init(static_cast<int>(args.size()), argv.data()) < 0 ? rte_errno : 0;
}

/// A process of ours has no files there, and a node with many processes would keep their empty folders for ever.
void remove_runtime_folder() {
  rmdir(rte_eal_get_runtime_dir());
}

/// False: what the user wants cannot be, and nothing was started.
bool start(Eal& e, const EalNeeds& needs, std::string& error) {
  if (rte_lcore_count() > 0) {
    e.state = EalState::kApplication;
    return true;
  }
  std::vector<std::string> args;
  std::optional<HugepagesTurn> turn;
  const std::vector<std::size_t> pages = free_hugepages();
  if (std::any_of(pages.begin(), pages.end(), [](std::size_t n) { return n != 0; })) turn.emplace();
  EalSurroundings machine{
      .hugepages = free_hugepages(), .cpus = allowed_cpus(), .process = getpid()};
  machine.node = node_of_cpus(machine.cpus);
  if (!make_eal_arguments(needs, machine, args, error)) return false;
  const GuestState as_found;
  const LogCapture log;
  install_dpdk_log();
  int result = 0;
  run_on_guest_thread([&] { result = start_eal(args); });
  e.user_arguments = needs.user_arguments;
  if (result == 0) {
    e.state = EalState::kOwn;
    remove_runtime_folder();
  } else if (result == EALREADY) {
    e.state = EalState::kApplication;
  } else {
    e.state = EalState::kFailed;
    e.failure = "DPDK does not start (" + std::string(rte_strerror(result)) +
                "): " + LogCapture::first_message();
  }
  return true;
}

/// Whether EAL as it runs can do what is asked.
bool serves(const Eal& e, const EalNeeds& needs, std::string& error) {
  if (e.state == EalState::kFailed) {
    error = e.failure;
  } else if (e.state == EalState::kApplication && !needs.user_arguments.empty()) {
    error = "FI_UET_DPDK_ARGS has no effect here: the application started DPDK itself; unset it";
  } else if (e.state == EalState::kOwn && needs.user_arguments != e.user_arguments) {
    error = "FI_UET_DPDK_ARGS: DPDK of this process was started with '" + e.user_arguments +
            "' and cannot be started again";
  } else if (needs.is_pci && !has_pci()) {
    error =
        "DPDK of this process was started without PCI; open the PCI device before any other dpdk "
        "port";
  } else {
    return true;
  }
  return false;
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
  if (is_forked_child()) {
    error = "a child of the process that opened the DPDK port cannot open one; exec first";
    return false;
  }
  watch_forks();
  if (e.state == EalState::kNotStarted && !start(e, needs, error)) return false;
  return serves(e, needs, error);
}

bool is_own_eal() {
  return eal().state == EalState::kOwn;
}

bool has_pci() {
  return rte_eal_has_pci() != 0;
}

void register_thread() {
  thread_local ThreadRegistration registration;
  if (registration.was_tried) [[likely]]
    return;
  registration.was_tried = true;
  const base::WithoutCancellation without_cancellation;
  if (rte_lcore_id() == LCORE_ID_ANY) registration.is_registered = rte_thread_register() == 0;
}

}  // namespace uet::dpdk
