/// fi_getinfo: what this provider offers, filtered strictly by what is asked for.
#pragma once

#include <rdma/fabric.h>

#include <cstdint>
#include <string>

#include "fep/settings/settings.h"
#include "lib/base/result.h"
#include "provider/port_picker.h"

namespace uet::provider {

/// libfabric's entry point; -FI_ENODATA when nothing suits.
int get_info(std::uint32_t version, const char* node, const char* service, std::uint64_t flags,
             const fi_info* hints, fi_info** out);

/// For a domain of `info`: takes the port behind its source address, or behind the process's own
/// where it has none. The answer may be another one than `info` says, see PortPicker. Any thread.
base::Result<PortChoice, std::string> take_port(const fep::Settings& settings, const fi_info& info);

/// That port could not be opened, since a program without our locks has it: PortPicker::lose(). Any thread.
void lose_port(net::FabricAddress address);

/// Around fork(), so that a child finds the addresses of this process in order and lets them go.
void lock_ports();
void unlock_ports();
void abandon_ports_in_child();

}  // namespace uet::provider
