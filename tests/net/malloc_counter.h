/// Counts calls of malloc and its relatives, DPDK's and the C++ library's included.
#pragma once

#include <cstdint>

namespace uet {
/// Of this thread.
std::uint64_t malloc_calls();
}  // namespace uet
