/// The names of hosts, as the system knows them.
#pragma once

#include <vector>

#include "lib/net/fabric_address.h"

namespace uet::provider {

/// The addresses of the host, in the order of the system's resolver; none where it knows no such name. May take as long as a name
/// server does.
std::vector<net::FabricAddress> look_up(const char* name);

}  // namespace uet::provider
