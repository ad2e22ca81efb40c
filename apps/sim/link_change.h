/// The texts of --degrade and --fail.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "apps/sim/flow_run.h"
#include "lib/base/result.h"

namespace uet::sim {

/// `LINKS[=FACTOR][@START_US[-END_US]][~PERIOD_US]`, or a number N: as htsim's `-failed N`, the
/// first N spines at a quarter of their speed (two tiers), or N links from cores down to
/// aggregations (three tiers). Without FACTOR: a quarter.
base::Result<std::vector<LinkChange>, std::string> parse_degrade(std::string_view text,
                                                                 const FatTree& tree);
/// `LINKS[@START_US[-END_US]][~PERIOD_US]`: down, from START to END; with a period down and up in
/// turn.
base::Result<std::vector<LinkChange>, std::string> parse_fail(std::string_view text);

}  // namespace uet::sim
