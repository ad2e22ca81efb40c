/// What a message of a test program is filled with.
#pragma once

#include <cstddef>
#include <vector>

namespace uet::mpi {

using Bytes = std::vector<char>;

/// Differs by sender and size, so that a message in the place of another is seen.
inline Bytes bytes_of(int sender, std::size_t size) {
  Bytes out(size);
  for (std::size_t i = 0; i < size; ++i)
    out[i] = static_cast<char>(static_cast<std::size_t>(sender) * 31 + i * 7 + size);
  return out;
}

}  // namespace uet::mpi
