/// Opening any port, with whatever is to be wrapped around it.
#pragma once

#include <memory>
#include <string>

#include "lib/base/trace.h"
#include "lib/net/impair_port.h"
#include "lib/net/port_plugin.h"

namespace uet::ports {

struct PortPlan {
  net::PortRequest
      request;         ///< spec: "udp[:...]" or "dpdk:<device>[,...]", several planes joined by +
  std::string impair;  ///< as in FI_UET_IMPAIR; empty: a good network
  std::string
      pcap;  ///< as in FI_UET_PCAP: file to capture to with its settings, %p becomes the process id; empty: none
};

/// Null with a sentence in `error`. `trace` must outlive the port.
std::unique_ptr<net::Port> open_port(const PortPlan& plan, base::Trace& trace, std::string& error);

}  // namespace uet::ports
