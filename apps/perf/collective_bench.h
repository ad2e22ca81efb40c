/// `uet-perf collective`: collective operations of N processes over any libfabric provider.
#pragma once

#include "apps/perf/collective_report.h"
#include "apps/perf/control_channel.h"
#include "apps/perf/fabric_bench.h"

namespace uet::perf {

struct CollectiveOptions {
  FabricOptions common;  ///< tests are of kCollectives; count is calls of a run
  unsigned ranks = 2;
  unsigned local = 0;  ///< of them, processes of this host; 0: all
  std::string type = "float";
  std::string reduction = "sum";
  bool pin_each = false;
};

/// Runs rank 0, or without it the processes of a further host; prints the result at rank 0. Returns the exit code: 0 only
/// when everything was measured and no element was wrong.
int run_collective_bench(const CollectiveOptions& options);

/// Rank 0: says what is measured. The other members' channels in the order of their ranks.
int lead_collectives(const CollectiveOptions& options, std::vector<ControlChannel>& others,
                     Patience& patience);
/// Any other rank: does what rank 0 says.
int follow_collectives(ControlChannel& control, Patience& patience);

}  // namespace uet::perf
