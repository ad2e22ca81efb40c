/// Which port has which address.
#pragma once

#include <string>
#include <vector>

#include "fep/settings/settings.h"

namespace uet::fep {

struct PortEntry {
  std::string spec;     ///< "udp" where FI_UET_PORT is empty
  std::string address;  ///< as it was typed; empty where FI_UET_ADDR is
};

/// Entry i of FI_UET_PORT with entry i of FI_UET_ADDR; a single one of either serves for all.
std::vector<PortEntry> port_entries(const Settings& settings);

}  // namespace uet::fep
