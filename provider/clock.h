/// The real clock and real randomness. Everything below the provider gets both as arguments.
#pragma once

#include <cstdint>

#include "lib/base/units.h"

namespace uet::provider {

/// CLOCK_MONOTONIC.
base::Instant clock_now();

/// 64 unpredictable bits from the system, for the seed of one endpoint.
std::uint64_t system_seed();

}  // namespace uet::provider
