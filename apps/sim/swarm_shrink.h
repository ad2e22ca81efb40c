/// Makes a failing world smaller.
#pragma once

#include <cstdint>
#include <string>

#include "apps/sim/swarm_plan.h"

namespace uet::sim {

/// Leaves out faults, troubles, operations and episodes as long as the world still fails in the same way. `mask` fails already.
SwarmMask shrink(std::uint64_t seed, const SwarmMask& mask);

/// Ends the process with SIGPROF after so many seconds of its own processor time: a machine that is busy with something else
/// hangs no world. 0: no limit.
void limit_world(int seconds);

/// Plays a world in a process of its own, since a world may fail by killing it or by finding no end: its failure,
/// "the process died", or nothing.
std::string failure_of(std::uint64_t seed, const SwarmMask& mask);

}  // namespace uet::sim
