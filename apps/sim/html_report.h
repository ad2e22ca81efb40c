/// Draws runs over each other into one HTML file that needs nothing else.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "apps/sim/flow_run.h"
#include "apps/sim/run_name.h"

namespace uet::sim {

/// A run that is over.
struct PlayedRun {
  RunConfig config;
  RunName name;
  std::string command;               ///< that plays it again
  std::vector<std::uint32_t> steps;  ///< of the flows, as steps_of gives them
  nlohmann::ordered_json json;       ///< as run_json gives it
  RunResult result;
};

/// The page: what was run, steps over time, completion times, queues, windows, shares of the top tier, faults. Only where
/// page::can_draw().
std::string draw(const std::vector<PlayedRun>& runs);

}  // namespace uet::sim
