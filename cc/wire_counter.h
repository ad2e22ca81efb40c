/// Counters of 24 bits in units of 256 bytes: credit, credit_target, rcvd_bytes. [CC 2, WIRE 4.6]
#pragma once

#include <cstdint>

#include "cc/cc_config.h"
#include "lib/base/serial.h"
#include "lib/base/units.h"

namespace uet::cc {

inline constexpr std::uint32_t kWireCounterMask = 0xff'ffff;

/// Units from `from` forward to `to`; 0 when `to` is not ahead (an older or repeated report).
constexpr std::uint32_t units_ahead(std::uint32_t to, std::uint32_t from) {
  if (!base::is_ahead<24>(to, from)) return 0;
  return (to - from) & kWireCounterMask;
}

/// What to add to a counter for `bytes`; modulo 2^32, so that less than nothing sets it back.
constexpr std::uint32_t units_rounded_up(base::ByteCount bytes) {
  const bool is_part_left = bytes % kWireUnitBytes > 0;
  return static_cast<std::uint32_t>(bytes / kWireUnitBytes + (is_part_left ? 1 : 0));
}

}  // namespace uet::cc
