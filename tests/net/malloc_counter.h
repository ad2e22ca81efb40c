/// Counts calls of malloc and its relatives in this process, DPDK's and the C++ library's included.
#pragma once

#include <cstdint>

namespace uet {
std::uint64_t malloc_calls();
}
