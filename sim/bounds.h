/// Completion times that no protocol can beat on a store-and-forward fabric: what results are
/// compared with.
#pragma once

#include <vector>

#include "sim/fabric_config.h"
#include "sim/traffic_matrix.h"

namespace uet::sim {

/// How much of each top-tier switch's speed is there: 1 each when all is well, empty when unknown.
using TopSpeeds = std::vector<double>;

/// One flow alone, from its start to the arrival of the last acknowledgement. (A last packet that is short, and has a path of its
/// own, may overtake the one in front of it: up to one packet's time less.)
SimSpan solo_bound(const FabricConfig& fabric, HostId from, HostId to, std::uint64_t bytes);

/// From its own start to its end, what the slowest flow takes: each flow alone, flows into one host, flows out of one host, and
/// (two tiers, slow spines) flows out of or into one leaf. Flows that a trigger starts count alone: when that is, and with which
/// others, is open.
SimSpan matrix_bound(const FabricConfig& fabric, const TrafficMatrix& matrix,
                     const TopSpeeds& tops);

/// From the start of the first flow to the end of the last: the critical path when every flow runs alone, one after the other
/// where triggers say so, and what the links have to carry, as for matrix_bound().
SimSpan job_bound(const FabricConfig& fabric, const TrafficMatrix& matrix, const TopSpeeds& tops);

}  // namespace uet::sim
