/// Finding libuet-dpdk.so: programs that open no DPDK port load nothing of DPDK.
#pragma once

#include <string>

namespace uet::apps {

/// The address of `symbol` in the plug-in, or null with a sentence in `error`. Never unloaded: DPDK
/// cannot be started twice.
void* dpdk_symbol(const char* symbol, std::string& error);

}  // namespace uet::apps
