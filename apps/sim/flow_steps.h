/// The steps of a collective: how many flows had to arrive before another could start.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/traffic_matrix.h"

namespace uet::sim {

/// For each flow of the matrix its step: 0 where no trigger starts it, else one more than the last step of the flows that fire its
/// trigger. Flows that wait for each other in a circle have the step that the others give them.
std::vector<std::uint32_t> steps_of(const TrafficMatrix& matrix);

}  // namespace uet::sim
