/// What a run shows: a JSON object, a page of text, CSV files. The fields are documented in
/// uet-sim(1).
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "apps/sim/flow_run.h"
#include "apps/sim/run_name.h"

namespace uet::sim {

/// One object, without a line end. `run` is what run_json gives.
std::string json_text(nlohmann::ordered_json run, const RunConfig& config, const RunResult& result,
                      double wall_s);
void print_text(const RunName& name, const RunConfig& config, const RunResult& result,
                double wall_s);
/// Whether every flow completed. Where not, those that did say nothing of the slowest.
bool is_whole(const RunResult& result);
/// Whether some flows wait for others, as in a collective: the load of the links then bounds no flow.
bool has_order(const RunResult& result);
/// One line a flow, in the order of the matrix; times and rates of flows that did not complete are empty. False
/// when the file cannot be written: errno says why.
bool write_per_flow(const std::string& path, const RunConfig& config, const RunResult& result);
/// One line a path of each flow; else the same.
bool write_paths(const std::string& path, const RunResult& result);

}  // namespace uet::sim
