#include "apps/perf/collective_bench.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "apps/perf/pin.h"
#include "apps/perf/tcp_connect.h"

namespace uet::perf {
namespace {

/// The other members of this host. They end with this process.
class Children {
 public:
  Children() = default;
  Children(const Children&) = delete;
  Children& operator=(const Children&) = delete;
  ~Children() {
    for (const pid_t pid : pids_)
      if (pid > 0) kill(pid, SIGKILL);
    wait();
  }
  /// `number` counts the members of this host, this process being 0.
  void start(const CollectiveOptions& o, const std::string& host, std::uint16_t port,
             unsigned number) {
    const std::string port_text = std::to_string(port),
                      silence = fmt::format("{}", o.common.timeout_s);
    const std::string cpu = o.pin_each ? std::to_string(nth_cpu(number)) : "";
    std::array<const char*, 13> arguments = {
        "uet-perf",        "collective", "--peer", host.c_str(), "--control-port",
        port_text.c_str(), "--local",    "1",      "--timeout",  silence.c_str()};
    if (o.pin_each) {
      arguments[10] = "--pin";
      arguments[11] = cpu.c_str();
    }
    const pid_t parent = getpid(), pid = fork();
    if (pid < 0) throw std::runtime_error(std::string("fork: ") + std::strerror(errno));
    if (pid > 0) {
      pids_.push_back(pid);
      return;
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);
    execv("/proc/self/exe", const_cast<char* const*>(arguments.data()));
    _exit(127);
  }
  /// Whether each of them ended with 0.
  bool wait() {
    bool is_well = true;
    for (pid_t& pid : pids_) {
      int status = 0;
      if (pid > 0 && waitpid(pid, &status, 0) == pid) is_well &= status == 0;
      pid = 0;
    }
    return is_well;
  }
  static int nth_cpu(unsigned number) {
    cpu_set_t set;
    CPU_ZERO(&set);
    sched_getaffinity(0, sizeof set, &set);
    number %= static_cast<unsigned>(std::max(CPU_COUNT(&set), 1));
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
      if (CPU_ISSET(cpu, &set) && number-- == 0) return cpu;
    return 0;
  }

 private:
  std::vector<pid_t> pids_;
};

int lead(const CollectiveOptions& o, Children& children, Patience& patience) {
  const Socket listener = listen_for_control(o.common.listen, o.common.control_port);
  const unsigned local = o.local == 0 ? o.ranks : std::min(o.local, o.ranks);
  const std::string host = o.common.listen.empty() ? "127.0.0.1" : o.common.listen;
  for (unsigned n = 1; n < local; ++n) children.start(o, host, port_of_listener(listener), n);
  if (o.pin_each) pin_to(Children::nth_cpu(0));
  std::vector<ControlChannel> others;
  while (others.size() + 1 < o.ranks)
    others.push_back(ControlChannel::accept(listener, "collective", patience));
  return lead_collectives(o, others, patience);
}

int follow(const CollectiveOptions& o, Children& children, Patience& patience) {
  for (unsigned n = 1; n < o.local; ++n) children.start(o, o.common.peer, o.common.control_port, n);
  if (o.pin_each) pin_to(Children::nth_cpu(0));
  ControlChannel control =
      ControlChannel::connect(o.common.peer, o.common.control_port, "collective", patience);
  return follow_collectives(control, patience);
}

}  // namespace

int run_collective_bench(const CollectiveOptions& o) {
  Patience patience(
      std::chrono::milliseconds(static_cast<std::int64_t>(o.common.timeout_s * 1000)));
  Children children;
  int status = 1;
  {
    const Watchdog watchdog(patience);
    status = o.common.peer.empty() ? lead(o, children, patience) : follow(o, children, patience);
  }
  return children.wait() ? status : 1;
}

}  // namespace uet::perf
