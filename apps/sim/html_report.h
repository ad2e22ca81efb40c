/// Draws a run into one HTML file that needs nothing else.
#pragma once

#include <string>

#include "apps/sim/flow_run.h"

namespace uet::sim {

/// Distribution of completion times, queue depth, congestion windows, shares of the top tier. False
/// when the file cannot be written.
bool write_html_report(const std::string& path, const RunConfig& config, const RunResult& result);

}  // namespace uet::sim
