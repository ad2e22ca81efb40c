/// Numbers of ordered messages that travel over all paths. [decision 141]
///
/// They go by RUD, which delivers in any order, so each says where it stands among those that its initiator sends to one
/// endpoint: in the place of the buffer offset, which sends do not use. Standard form only.
#pragma once

#include <cstdint>

#include "lib/wire/headers.h"

namespace uet::ses {

/// Opcodes from the vendor's range, understood by targets whose address says kRestoresOrder; others answer UNSUPPORTED_OP.
constexpr bool is_sequenced(wire::SesOpcode opcode) {
  return opcode >= wire::SesOpcode::kSequencedSend &&
         opcode <= wire::SesOpcode::kSequencedRendezvousTsend;
}

/// Bit of Address::fep_cap, above those that the specification names: messages of ours may come by RUD.
inline constexpr std::uint16_t kRestoresOrder = 0x8000;

/// How far a number may be ahead of the oldest one that has no answer.
inline constexpr std::int32_t kSequenceWindow = 16384;

/// A number is 24 bits wide and goes round.
inline constexpr std::uint32_t kNumberMask = 0xff'ffff;
/// From `b` to `a`: negative when `a` is older.
constexpr std::int32_t number_distance(std::uint32_t a, std::uint32_t b) {
  return static_cast<std::int32_t>((a - b) << 8) >> 8;
}
constexpr std::uint32_t number_after(std::uint32_t n) {
  return (n + 1) & kNumberMask;
}

/// As it stands in the header.
struct SequenceField {
  std::uint32_t stream = 0;  ///< 24 bits, never used twice by one process
  std::uint32_t number = 0;  ///< 24 bits
  std::uint16_t behind = 0;  ///< the oldest message without an answer is so many numbers before

  /// Everything before it had its answer when this message was submitted.
  constexpr std::uint32_t base() const { return (number - behind) & kNumberMask; }

  constexpr std::uint64_t pack() const {
    return std::uint64_t{stream & kNumberMask} << 40 | std::uint64_t{behind} << 24 |
           (number & kNumberMask);
  }
  static constexpr SequenceField unpack(std::uint64_t bits) {
    return {static_cast<std::uint32_t>(bits >> 40), static_cast<std::uint32_t>(bits) & kNumberMask,
            static_cast<std::uint16_t>(bits >> 24)};
  }
};

}  // namespace uet::ses
