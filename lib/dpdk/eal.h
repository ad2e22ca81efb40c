/// Starts DPDK's environment (EAL) once per process, as a guest: in memory, without hugepages when
/// there are none, without worker threads, and without looking at PCI unless a PCI device is
/// wanted.
#pragma once

#include <string>

#include "lib/dpdk/eal_arguments.h"

namespace uet::dpdk {

/// Starts EAL unless it runs already, be it ours or the application's own. False: `error` says why.
/// Arguments of the user must be the same at every call, and are refused where the application started EAL. Any thread.
bool ensure_eal(const EalNeeds& needs, std::string& error);

/// True when EAL was started by this library rather than by the application.
bool is_own_eal();
/// True when EAL knows about PCI devices.
bool has_pci();

/// Gives the calling thread an lcore id, which is what makes DPDK's per-thread mempool caches work
/// for it. Cheap to call again; without effect when there are no ids left.
void register_thread();

}  // namespace uet::dpdk
