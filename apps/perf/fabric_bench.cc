#include "apps/perf/fabric_bench.h"

#include <fmt/core.h>
#include <unistd.h>

#include <cstdio>

#include "apps/perf/fabric_session.h"

namespace uet::perf {
namespace {

/// Before anything waits: a provider that is not there is found out at once. A server that names none takes the client's.
void look_up_providers(const FabricOptions& o) {
  for (const std::string& provider : o.providers) find_provider(provider, o.ordered);
  if (!o.providers.empty()) return;
  try {
    find_provider("uet", o.ordered);
  } catch (const std::runtime_error& error) {
    if (!o.peer.empty()) throw;
    fmt::print(stderr, "uet-perf: {}; only clients that ask for another provider can be served\n",
               error.what());
  }
}

}  // namespace

int run_fabric(const FabricOptions& o) {
  Patience patience(std::chrono::milliseconds(static_cast<std::int64_t>(o.timeout_s * 1000)));
  const Watchdog watchdog(patience);
  try {
    look_up_providers(o);
    if (o.peer.empty() && isatty(STDERR_FILENO) == 1)
      fmt::print(stderr, "uet-perf: waiting for a client on control port {}\n", o.control_port);
    ControlChannel control =
        o.peer.empty() ? ControlChannel::listen(o.listen, o.control_port, "fabric", patience)
                       : ControlChannel::connect(o.peer, o.control_port, "fabric", patience);
    return o.peer.empty() ? run_fabric_server(o, control, patience)
                          : run_fabric_client(o, control, patience);
  } catch (const std::exception& e) {
    fmt::print(stderr, "uet-perf: {}\n", e.what());
    return 1;
  }
}

}  // namespace uet::perf
