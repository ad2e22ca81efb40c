/// Completion times that no protocol can beat on a store-and-forward fabric: what results are
/// compared with.
#pragma once

#include <vector>

#include "sim/fabric_config.h"
#include "sim/traffic_matrix.h"

namespace uet::sim {

/// How much of each top-tier switch's speed is there: 1 each when all is well, empty when unknown.
using TopSpeeds = std::vector<double>;

/// One flow alone, from its start to the arrival of the last acknowledgement.
SimSpan solo_bound(const FabricConfig& fabric, HostId from, HostId to, std::uint64_t bytes);

/// The slowest of: each flow alone, all flows into one host, all flows out of one host, and (two
/// tiers, slow spines) all flows out of or into one leaf. Flows that a trigger starts count as if
/// they started at 0.
SimSpan matrix_bound(const FabricConfig& fabric, const TrafficMatrix& matrix,
                     const TopSpeeds& tops);

/// From the start of the first flow to the end of the last when every flow runs alone, one after
/// the other where triggers say so: the critical path of a collective.
SimSpan job_bound(const FabricConfig& fabric, const TrafficMatrix& matrix);

}  // namespace uet::sim
