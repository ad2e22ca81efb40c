/// What a congestion context knows of its paths, as results show it.
#pragma once

#include "apps/sim/flow_run.h"
#include "pds/pds.h"

namespace uet::sim {

/// Reads the sprayed context towards `peer` into `flow`; leaves it alone when there is none.
/// `keep_all`: every path, not only the summary.
void read_paths(const pds::Pds& pds, const net::FabricAddress& peer, bool keep_all,
                FlowResult& flow);

}  // namespace uet::sim
