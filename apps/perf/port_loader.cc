#include "apps/perf/port_loader.h"

#include "apps/common/dpdk_plugin.h"
#include "lib/udp/udp_port.h"

namespace uet::perf {

std::unique_ptr<net::Port> open_port(const net::PortRequest& request, base::Trace& trace,
                                     std::string& error) {
  net::OpenPortFunction open = nullptr;
  if (request.spec.starts_with("udp")) {
    open = udp::open_udp_port;
  } else if (request.spec.starts_with("dpdk:")) {
    open = reinterpret_cast<net::OpenPortFunction>(apps::dpdk_symbol(net::kDpdkPluginEntry, error));
  } else {
    error =
        "unknown port '" + request.spec + "'; write udp[:<interface or address>] or dpdk:<device>";
  }
  return open == nullptr ? nullptr : open(request, trace, error);
}

}  // namespace uet::perf
