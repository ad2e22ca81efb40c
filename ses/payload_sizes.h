/// Payload sizes that a peer may cut its messages in, whatever ours is. [WIRE 7.2]
#pragma once

#include <bit>
#include <cstdint>

namespace uet::ses {

/// Bit b7 of Address::fep_cap: takes requests with the small header. [SES 2.4]
inline constexpr std::uint16_t kTakesSmall = 0x80;

inline constexpr std::uint32_t kSmallestPayload = 1024;
inline constexpr std::uint32_t kLargestPayload = 8192;

/// `own` is the size that we were configured with: simulations use others than the legal ones.
constexpr bool is_payload_mtu(std::uint64_t bytes, std::uint32_t own) {
  return bytes == own ||
         (bytes >= kSmallestPayload && bytes <= kLargestPayload && std::has_single_bit(bytes));
}

}  // namespace uet::ses
