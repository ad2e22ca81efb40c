/// Payload sizes that a peer may cut its messages in, whatever ours is. [WIRE 7.2]
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "lib/wire/ses_rules.h"

namespace uet::ses {

/// Bit b7 of Address::fep_cap: takes requests with the small header. [SES 2.4]
inline constexpr std::uint16_t kTakesSmall = 0x80;

/// Every way carries the packets of messages that are cut into the smallest.
inline constexpr std::uint32_t kSmallestPayload = wire::kPayloadMtuMin;
inline constexpr std::uint32_t kLargestPayload = wire::kPayloadMtuMax;
/// What fits the usual MTU of an Ethernet, 1500, and that of tunnels over it. The specification does not have it, so only peers
/// whose address says that they know it are sent messages that are cut so. They know wide READs as well. [decisions 169, 170]
using wire::kEthernetPayload;
using wire::WideAsk;
inline constexpr std::uint16_t kTakesEthernetPayload = 0x400;

/// Bits of Address::fep_cap, above those that the specification names: the payload of the largest packets that its device takes, 1
/// for 1024 (or, with the bit above, for kEthernetPayload), 2 for 2048, 3 for 4096. 0: not said, or more. [decision 162]
inline constexpr std::uint16_t kTakesPayload = 0x3000;
inline constexpr unsigned kTakesPayloadShift = 12;

/// Other sizes than these, which simulations use, are not said. One that was set to `sent` at most, and less than kEthernetPayload,
/// does not know that size: initiators ask those that know it for read data in it.
constexpr std::uint16_t say_payload(std::uint32_t device_payload,
                                    std::uint32_t sent = kLargestPayload) {
  const std::uint16_t knows =
      std::min(device_payload, sent) >= kEthernetPayload ? kTakesEthernetPayload : 0;
  const std::uint32_t legal =
      device_payload == kEthernetPayload ? kSmallestPayload : device_payload;
  if (!std::has_single_bit(legal) || legal >= kLargestPayload) return knows;
  const int size = std::bit_width(legal / kSmallestPayload);
  return static_cast<std::uint16_t>(knows | size << kTakesPayloadShift);
}

constexpr bool knows_ethernet_payload(std::uint16_t fep_cap) {
  return (fep_cap & kTakesEthernetPayload) != 0;
}

constexpr bool knows_wide_reads(std::uint16_t fep_cap) {
  return knows_ethernet_payload(fep_cap);
}

constexpr std::uint32_t said_payload(std::uint16_t fep_cap) {
  const unsigned size = (fep_cap & kTakesPayload) >> kTakesPayloadShift;
  if (size == 0) return kLargestPayload;
  if (size == 1 && knows_ethernet_payload(fep_cap)) return kEthernetPayload;
  return kSmallestPayload << (size - 1);
}

/// A longer message makes runs by itself, and gains nothing by packets of one size.
inline constexpr std::uint64_t kLongestEven = 32768;

/// What a message of `length` is cut into where a packet may carry `payload`. A short one of whole KiB is cut so that all its
/// packets have one size: a port moves them as one run then, with those of the messages behind it. [decision 171]
constexpr std::uint32_t payload_for(std::uint64_t length, std::uint32_t payload) {
  const bool is_even =
      payload == kEthernetPayload && length <= kLongestEven && length % kSmallestPayload == 0;
  return is_even ? kSmallestPayload : payload;
}

/// All packets of such a message have one size.
constexpr bool is_cut_evenly(std::uint64_t length, std::uint32_t payload) {
  return length <= payload || length % payload_for(length, payload) == 0;
}

/// `own` is the size that we were configured with: simulations use others than the legal ones.
constexpr bool is_payload_mtu(std::uint64_t bytes, std::uint32_t own) {
  return bytes == own || wire::is_payload_mtu(bytes);
}

/// What a peer that does not say how its messages are cut is taken to cut them into: our size, where the specification has it.
constexpr std::uint32_t assumed_payload(std::uint32_t own) {
  return own == kEthernetPayload ? kSmallestPayload : own;
}

}  // namespace uet::ses
