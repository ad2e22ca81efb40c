/// Payload sizes that a peer may cut its messages in, whatever ours is. [WIRE 7.2]
#pragma once

#include <bit>
#include <cstdint>

namespace uet::ses {

/// Bit b7 of Address::fep_cap: takes requests with the small header. [SES 2.4]
inline constexpr std::uint16_t kTakesSmall = 0x80;

/// Every way carries the packets of messages that are cut into these.
inline constexpr std::uint32_t kSmallestPayload = 1024;
inline constexpr std::uint32_t kLargestPayload = 8192;

/// Bits of Address::fep_cap, above those that the specification names: the payload of the largest packets that its device takes, 1
/// for 1024, 2 for 2048, 3 for 4096. 0: not said, or more. [decision 162]
inline constexpr std::uint16_t kTakesPayload = 0x3000;
inline constexpr unsigned kTakesPayloadShift = 12;

/// Other sizes than the legal ones, which simulations use, are not said.
constexpr std::uint16_t say_payload(std::uint32_t device_payload) {
  if (!std::has_single_bit(device_payload) || device_payload >= kLargestPayload) return 0;
  const int size = std::bit_width(device_payload / kSmallestPayload);
  return static_cast<std::uint16_t>(size << kTakesPayloadShift);
}

constexpr std::uint32_t said_payload(std::uint16_t fep_cap) {
  const unsigned size = (fep_cap & kTakesPayload) >> kTakesPayloadShift;
  return size == 0 ? kLargestPayload : kSmallestPayload << (size - 1);
}

/// `own` is the size that we were configured with: simulations use others than the legal ones.
constexpr bool is_payload_mtu(std::uint64_t bytes, std::uint32_t own) {
  return bytes == own ||
         (bytes >= kSmallestPayload && bytes <= kLargestPayload && std::has_single_bit(bytes));
}

}  // namespace uet::ses
