/// Counters of what the C library was asked for, in programs that link interpose.cc.
#pragma once

#include <cstddef>
#include <cstdint>

namespace uet::test {

/// False under sanitizers, which have their own malloc and memcpy.
bool can_interpose();

struct LibraryCalls {
  std::uint64_t allocations;         ///< malloc, calloc, realloc, aligned forms
  std::uint64_t large_copied_bytes;  ///< by memcpy and memmove calls of at least 1024 bytes
};
LibraryCalls library_calls();

}  // namespace uet::test
