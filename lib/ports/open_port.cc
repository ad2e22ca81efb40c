#include "lib/ports/open_port.h"

#include <time.h>

#include "lib/net/capture_port.h"
#include "lib/net/port_name.h"
#include "lib/ports/dpdk_plugin.h"
#include "lib/ports/open_planes.h"
#include "lib/udp/udp_port.h"

namespace uet::ports {

namespace {

std::int64_t read_clock(clockid_t clock) {
  timespec t{};
  clock_gettime(clock, &t);
  return t.tv_sec * 1'000'000'000 + t.tv_nsec;
}

/// Endpoints count from the origin of the monotonic clock.
std::int64_t unix_ns_at_origin() {
  return read_clock(CLOCK_REALTIME) - read_clock(CLOCK_MONOTONIC);
}

/// Outside of the impairment, so that the capture shows what the endpoint saw.
std::unique_ptr<net::Port> capture(std::unique_ptr<net::Port> port, const std::string& setting,
                                   base::Trace& trace, std::string& error) {
  net::CaptureFileConfig config{.path = {}, .interface_name = port->facts().name};
  config.started_ns = static_cast<std::uint64_t>(read_clock(CLOCK_REALTIME));
  std::unique_ptr<net::CaptureFile> file;
  if (net::CaptureFileConfig::parse(setting, config, error))
    file = net::CaptureFile::open(config, error);
  if (file == nullptr) {
    error = "FI_UET_PCAP: " + error;
    return nullptr;
  }
  return std::make_unique<net::CapturePort>(std::move(port), std::move(file), unix_ns_at_origin,
                                            trace);
}

net::OpenPortFunction opener_of(const std::string& spec, std::string& error) {
  if (net::is_udp_port(spec)) return udp::open_udp_port;
  if (spec.starts_with("dpdk:"))
    return reinterpret_cast<net::OpenPortFunction>(dpdk_symbol(net::kDpdkPluginEntry, error));
  error = "unknown port '" + spec + "'; write udp[:<interface or address>] or dpdk:<device>";
  return nullptr;
}

}  // namespace

std::unique_ptr<net::Port> open_port(const PortPlan& plan, base::Trace& trace, std::string& error) {
  const auto planes = net::planes_of(plan.request.spec);
  error = net::why_not_planes(planes);
  if (!error.empty()) {
    error = plan.request.spec + ": " + error;
    return nullptr;
  }
  const net::OpenPortFunction open = opener_of(planes.front(), error);
  if (open == nullptr) return nullptr;
  auto port = planes.size() == 1 ? open(plan.request, trace, error)
                                 : open_planes(plan.request, planes, open, trace, error);
  if (port != nullptr) port = net::impair(std::move(port), plan.impair, trace, error);
  if (port != nullptr && !plan.pcap.empty())
    port = capture(std::move(port), plan.pcap, trace, error);
  return port;
}

}  // namespace uet::ports
