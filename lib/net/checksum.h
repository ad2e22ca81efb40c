/// The Internet checksum (ones' complement sum of 16-bit words).
#pragma once

#include <cstdint>
#include <span>

#include "lib/base/byte_cursor.h"

namespace uet::net {

/// Adds `bytes` to a running sum. Every piece but the last must have an even size.
inline std::uint32_t checksum_add(std::span<const std::uint8_t> bytes, std::uint32_t sum = 0) {
  std::uint64_t wide = sum;
  std::size_t i = 0;
  for (; i + 4 <= bytes.size(); i += 4) wide += base::load_be<std::uint32_t>(bytes.data() + i);
  if (i + 2 <= bytes.size()) {
    wide += base::load_be<std::uint16_t>(bytes.data() + i);
    i += 2;
  }
  if (i < bytes.size()) wide += std::uint32_t{bytes[i]} << 8;
  wide = (wide & 0xffff'ffff) + (wide >> 32);
  wide = (wide & 0xffff'ffff) + (wide >> 32);
  return static_cast<std::uint32_t>((wide & 0xffff) + (wide >> 16));
}

/// Folds a running sum to the value that goes on the wire. Over a message that contains its own
/// correct checksum the result is 0.
constexpr std::uint16_t checksum_fold(std::uint32_t sum) {
  sum = (sum & 0xffff) + (sum >> 16);
  sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<std::uint16_t>(~sum);
}

}  // namespace uet::net
