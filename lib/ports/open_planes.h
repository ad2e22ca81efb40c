/// Opening several ports as the planes of one endpoint.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lib/base/trace.h"
#include "lib/net/port_plugin.h"

namespace uet::ports {

/// The ports that `planes` name, each with what else `request` says, as one. Those behind the first get its address when
/// `request` has none. Null with a sentence in `error` when one of them cannot be opened: a link that is down is no
/// reason, a device that is not there is one.
std::unique_ptr<net::Port> open_planes(const net::PortRequest& request,
                                       const std::vector<std::string>& planes,
                                       net::OpenPortFunction open, base::Trace& trace,
                                       std::string& error);

}  // namespace uet::ports
