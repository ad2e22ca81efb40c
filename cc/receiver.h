/// What the destination of data reports for congestion control. [CC 3.8, 4.8, 4.10]
#pragma once

#include <algorithm>
#include <cstdint>

#include "cc/wire_counter.h"
#include "lib/base/units.h"

namespace uet::cc {

/// The rcvd_bytes field, for the nominal bytes of all data packets of a PDC and direction that were neither trimmed nor duplicates:
/// rounded up, so that the last bytes are reported.
constexpr std::uint32_t rcvd_units(base::ByteCount received) {
  return static_cast<std::uint32_t>((received + kWireUnitBytes - 1) / kWireUnitBytes) &
         kWireCounterMask;
}

/// The service_time field for an ACK that leaves `in_host` after its packet arrived, in units of 128 ns: 0 means "not given", so a
/// shorter time becomes 1, and 0xffff what is longer.
constexpr std::uint16_t service_time_units(base::Duration in_host) {
  return static_cast<std::uint16_t>(std::clamp<std::int64_t>(in_host.ns() / 128, 1, 0xffff));
}

/// The rcv_cwnd_pend field for a receive resource of which `used` of `capacity` is taken: nothing
/// up to a half, full penalty from 95 %, linear between. [CC 4.8]
constexpr std::uint8_t window_penalty(std::int64_t used, std::int64_t capacity) {
  constexpr std::int64_t kMax = 127;
  if (capacity <= 0 || used * 2 <= capacity) return 0;
  if (used * 20 >= capacity * 19) return kMax;
  return static_cast<std::uint8_t>(kMax * (used * 20 - capacity * 10) / (capacity * 9));
}

/// Both fields about the window. What was taken away is given back when no more than a quarter is in use: in between the source
/// keeps what it has and may grow as usual, so that a resource near the half does not make it jump.
struct WindowAdvice {
  std::uint8_t penalty = 0;
  bool restore = false;
};
constexpr WindowAdvice window_advice(std::int64_t used, std::int64_t capacity) {
  const std::uint8_t penalty = window_penalty(used, capacity);
  return {penalty, penalty > 0 || used * 4 <= capacity};
}

}  // namespace uet::cc
