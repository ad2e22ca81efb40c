/// The descriptors of DPDK's memory. The memif driver without copying sends them to its peer and closes them afterwards, though
/// they are EAL's, which goes on using their numbers: for the next connection, and to grow the memory. So they are put back.
#pragma once

namespace uet::dpdk {

/// Remembers those that there are now. EAL runs.
void keep_memory_descriptors();

/// Puts back those that were closed. False: another file of the process has such a number by now, and a connection would pass that on.
bool restore_memory_descriptors();

}  // namespace uet::dpdk
