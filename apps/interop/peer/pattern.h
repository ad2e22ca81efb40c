/// Bytes that tell which message they belong to, and where in it.
#pragma once

#include <algorithm>
#include <optional>
#include <string>

#include "apps/interop/peer/endpoint.h"

namespace uet::interop {

/// No two positions within 16 MiB whose distance is a payload MTU hold the same, nor do neighbouring messages.
inline std::uint8_t pattern_at(std::size_t position, std::uint64_t message) {
  return static_cast<std::uint8_t>(position * 131 + (position >> 8) * 17 + (position >> 16) * 29 +
                                   message * 97 + (message >> 8) * 37);
}

inline void fill(std::uint8_t* to, std::size_t size, std::uint64_t message) {
  for (std::size_t i = 0; i < size; ++i) to[i] = pattern_at(i, message);
}

inline Bytes message_of(std::size_t size, std::uint64_t message) {
  Bytes out(size);
  fill(out.data(), size, message);
  return out;
}

/// The first byte that is not of this message.
inline std::optional<std::size_t> first_difference(const std::uint8_t* bytes, std::size_t size,
                                                   std::uint64_t message) {
  for (std::size_t i = 0; i < size; ++i)
    if (bytes[i] != pattern_at(i, message)) return i;
  return std::nullopt;
}

/// Throws with what differs.
inline void verify(const std::uint8_t* bytes, std::size_t size, std::uint64_t message,
                   const std::string& what) {
  if (const auto at = first_difference(bytes, size, message))
    throw std::runtime_error(what + " of " + std::to_string(size) + " bytes: byte " +
                             std::to_string(*at) + " is " + std::to_string(bytes[*at]) +
                             ", should be " + std::to_string(pattern_at(*at, message)));
}

}  // namespace uet::interop
