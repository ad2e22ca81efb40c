/// Finding libuet-dpdk.so: what opens no DPDK port loads nothing of DPDK.
#pragma once

#include <string>

namespace uet::ports {

/// The address of `symbol` in the plug-in, or null with a sentence in `error`. Never unloaded: DPDK
/// cannot be started twice. [FI 2.5.12]
void* dpdk_symbol(const char* symbol, std::string& error);

}  // namespace uet::ports
