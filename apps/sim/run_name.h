/// What was run, in words and as data: without it a figure means nothing.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "apps/sim/flow_run.h"
#include "apps/sim/run_options.h"

namespace uet::sim {

/// Lines of text, each about one thing.
struct RunName {
  std::string traffic;    ///< "ring-allreduce, 64 hosts, 8000000 bytes a host"
  std::string fabric;     ///< "leaf-spine, 12 leaves, 6 spines, 100 Gb/s links, ..."
  std::string transport;  ///< "cc nscc, lb bitmap, 64 paths"
  std::string faults;     ///< "spine0 at 25 %, leaf2 down from 50 us", or "none"
};

RunName name_run(const RunOptions& options, const RunConfig& config, const TrafficMatrix& matrix);
/// The same as an object: the values of the options, those that were not given too. Fields: uet-sim(1), "run".
nlohmann::ordered_json run_json(const RunOptions& options, const RunConfig& config,
                                const TrafficMatrix& matrix);

/// "spine0 at 25 % from 10 us to 50 us".
std::string in_words(const LinkChange& change);

}  // namespace uet::sim
