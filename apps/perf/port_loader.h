/// Opens any port by its spec; loads the DPDK plug-in when one is asked for.
#pragma once

#include <memory>
#include <string>

#include "lib/base/trace.h"
#include "lib/net/port_plugin.h"

namespace uet::perf {

/// Null: `error` says what to do. `trace` must outlive the port.
std::unique_ptr<net::Port> open_port(const net::PortRequest& request, base::Trace& trace,
                                     std::string& error);

}  // namespace uet::perf
