#include "lib/dpdk/eal_arguments.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <sstream>
#include <string_view>

namespace uet::dpdk {

namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;
// Without hugepages the memory is fixed when EAL starts. It is only touched when used, so later
// ports get room too.
constexpr std::size_t kNoHugeBytesMin = 1024 * kMiB;
// CPUs that EAL can name, and how many it takes.
constexpr int kLargestCpu = 127;
// Beside the packets: what EAL and the rings of drivers take.
constexpr std::size_t kSpareBytes = 64 * kMiB;
// Nodes that EAL can take memory from.
constexpr int kNodesMax = 8;

/// An option that users may give. `value`: whether one follows.
struct Allowed {
  std::string_view name;
  bool has_value;
};

constexpr std::array kAllowed = {
    Allowed{"--log-level", true},
    Allowed{"--vdev", true},
    Allowed{"--allow", true},
    Allowed{"-a", true},
    Allowed{"--block", true},
    Allowed{"-b", true},
    Allowed{"-m", true},
    Allowed{"--socket-mem", true},
    Allowed{"--socket-limit", true},
    Allowed{"--iova-mode", true},
    Allowed{"--no-huge", false},
    Allowed{"--telemetry", false},
    Allowed{"--vfio-intr", true},
    Allowed{"--vfio-vf-token", true},
    Allowed{"--trace", true},
    Allowed{"--trace-dir", true},
    Allowed{"--no-pci", false},
    Allowed{"--force-max-simd-bitwidth", true},
    Allowed{"-d", true},
    Allowed{"--match-allocations", false},
    Allowed{"--single-file-segments", false},
};

struct Refused {
  std::string_view name;
  std::string_view why;
};

constexpr std::array kRefused = {
    Refused{"-l", "a guest has no worker threads; bind the process instead"},
    Refused{"-c", "a guest has no worker threads; bind the process instead"},
    Refused{"--lcores", "a guest has no worker threads; bind the process instead"},
    Refused{"--main-lcore", "a guest has no worker threads; bind the process instead"},
    Refused{"-s", "a guest has no worker threads; bind the process instead"},
    Refused{"-S", "a guest has no worker threads; bind the process instead"},
    Refused{"--proc-type", "every process is a primary one of its own"},
    Refused{"--file-prefix", "every process has its own"},
    Refused{"--in-memory", "it is on wherever there are hugepages"},
    Refused{"--no-shconf", "nothing is shared as it is"},
    Refused{"--no-telemetry", "it is on already"},
    Refused{"--legacy-mem",
            "it excludes the way in which memory is shared with memif and vhost peers"},
    Refused{"--huge-dir", "hugepages are taken without files"},
    Refused{"--huge-unlink", "hugepages are taken without files"},
};

/// The words of the user's text, "--key value" and "-m value" each as one entry "--key=value" or as two.
struct UserArguments {
  std::vector<std::string> words;
  std::vector<std::string> names;
  bool has(std::string_view name) const {
    return std::find(names.begin(), names.end(), name) != names.end();
  }
};

bool fail(std::string& error, const std::string& what) {
  error = "FI_UET_DPDK_ARGS: " + what;
  return false;
}

std::string allowed_names() {
  std::string text;
  for (const Allowed& a : kAllowed) text += (text.empty() ? "" : ", ") + std::string(a.name);
  return text;
}

bool check_value(const std::string& name, const std::string& value, std::string& error) {
  if (value.empty()) return fail(error, name + " needs a value");
  if (name == "--iova-mode" && value != "va" && value != "pa")
    return fail(error, "--iova-mode is va or pa, not '" + value + "'");
  const bool is_number =
      std::all_of(value.begin(), value.end(), [](char c) { return c >= '0' && c <= '9'; });
  if (name == "-m" && (!is_number || value.size() > 7))
    return fail(error, "-m takes a number of MiB, not '" + value + "'");
  return true;
}

bool read_user_arguments(const std::string& text, UserArguments& user, std::string& error) {
  std::istringstream in(text);
  for (std::string word; in >> word;) {
    const std::size_t equals = word.rfind("--", 0) == 0 ? word.find('=') : std::string::npos;
    const std::string name = word.substr(0, equals);
    const auto* const refused = std::find_if(kRefused.begin(), kRefused.end(),
                                             [&](const Refused& r) { return r.name == name; });
    if (refused != kRefused.end())
      return fail(error, name + " cannot be given: " + std::string(refused->why));
    const auto* const allowed = std::find_if(kAllowed.begin(), kAllowed.end(),
                                             [&](const Allowed& a) { return a.name == name; });
    if (allowed == kAllowed.end())
      return fail(error, "'" + word +
                             "' is not an option that can be given; these are: " + allowed_names());
    user.names.push_back(name);
    user.words.push_back(word);
    std::string value = equals == std::string::npos ? "" : word.substr(equals + 1);
    if (allowed->has_value && equals == std::string::npos && in >> value)
      user.words.push_back(value);
    if (!allowed->has_value && equals != std::string::npos)
      return fail(error, name + " takes no value");
    if (allowed->has_value && !check_value(name, value, error)) return false;
  }
  return true;
}

/// One logical core on all CPUs of the process: no worker threads, and EAL's own threads run wherever the process may.
std::string lcores(const std::vector<int>& cpus) {
  std::string list;
  for (const int cpu : cpus)
    if (cpu <= kLargestCpu) list += (list.empty() ? "" : ",") + std::to_string(cpu);
  return "--lcores=0@(" + (list.empty() ? "0" : list) + ")";
}

/// The node whose hugepages suffice; -1: only all of them together do, or none has to be chosen.
int node_with_room(const EalNeeds& needs, const EalSurroundings& machine) {
  const int node = needs.node >= 0 ? needs.node : machine.node;
  const auto count = static_cast<int>(machine.hugepages.size());
  if (count < 2 || node < 0 || node >= std::min(count, kNodesMax)) return -1;
  const std::size_t there = machine.hugepages[static_cast<std::size_t>(node)];
  return there >= needs.memory_bytes + kSpareBytes ? node : -1;
}

/// Pages that EAL takes later it also gives back, and memif without copying has told its peer of them. So they are taken at once, and without
/// a node EAL takes the first there are.
std::string hugepages_at_once(const EalNeeds& needs, const EalSurroundings& machine) {
  const std::string mib = std::to_string(needs.memory_bytes / kMiB + 32);
  const int node = node_with_room(needs, machine);
  if (node < 0) return "-m" + mib;
  std::string option = "--socket-mem=";
  for (int other = 0; other < node; ++other) option += "0,";
  return option + mib;
}

}  // namespace

bool make_eal_arguments(const EalNeeds& needs, const EalSurroundings& machine,
                        std::vector<std::string>& arguments, std::string& error) {
  UserArguments user;
  if (!read_user_arguments(needs.user_arguments, user, error)) return false;
  if (needs.is_pci && user.has("--no-pci"))
    return fail(error, "--no-pci excludes the PCI device that FI_UET_PORT names");
  arguments = {"uet", "--file-prefix=uet" + std::to_string(machine.process), lcores(machine.cpus)};
  if (!user.has("--telemetry")) arguments.emplace_back("--no-telemetry");
  if (!user.has("--log-level")) arguments.emplace_back("--log-level=*:error");
  const bool wants_pci = needs.is_pci || user.has("-a") || user.has("--allow") || user.has("-b") ||
                         user.has("--block");
  if (!needs.device.empty()) arguments.push_back("--allow=" + needs.device);
  if (!wants_pci) {
    if (!user.has("--no-pci")) arguments.emplace_back("--no-pci");
    if (needs.device.empty() && !user.has("--iova-mode")) arguments.emplace_back("--iova-mode=va");
  }
  const std::size_t hugepages =
      std::accumulate(machine.hugepages.begin(), machine.hugepages.end(), std::size_t{0});
  if (hugepages >= needs.memory_bytes + kSpareBytes && !user.has("--no-huge")) {
    arguments.emplace_back("--in-memory");
    // memif without copying and virtio_user pass their memory on by file descriptor: one a page would be too many.
    if (!user.has("--single-file-segments")) arguments.emplace_back("--single-file-segments");
    if (!user.has("-m") && !user.has("--socket-mem"))
      arguments.push_back(hugepages_at_once(needs, machine));
  } else {
    if (user.has("--socket-mem"))
      return fail(
          error,
          "--socket-mem needs hugepages, and too few are free; say -m <MiB> of ordinary memory");
    // DPDK refuses --in-memory together with --no-huge. What is left of it is to share no
    // configuration.
    arguments.emplace_back("--no-shconf");
    // Of such memory virtio_user finds the file only when it is not said to be one.
    if (needs.single_file && !user.has("--single-file-segments"))
      arguments.emplace_back("--single-file-segments");
    if (!user.has("--no-huge")) arguments.emplace_back("--no-huge");
    if (!user.has("-m")) {
      const std::size_t bytes = std::max(kNoHugeBytesMin, 2 * needs.memory_bytes);
      arguments.emplace_back("-m");
      arguments.emplace_back(std::to_string(bytes / kMiB));
    }
  }
  arguments.insert(arguments.end(), user.words.begin(), user.words.end());
  return true;
}

}  // namespace uet::dpdk
