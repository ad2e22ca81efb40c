/// Makes a failing world smaller.
#pragma once

#include <cstdint>

#include "apps/sim/swarm_plan.h"

namespace uet::sim {

/// Leaves out faults, troubles and operations as long as the world still fails, however it fails.
/// `mask` fails already.
SwarmMask shrink(std::uint64_t seed, const SwarmMask& mask);

}  // namespace uet::sim
