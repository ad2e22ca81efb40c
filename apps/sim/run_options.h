/// The options that describe one run: traffic, fabric, algorithms, faults. Shared by the commands of uet-sim that run a matrix.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "apps/sim/flow_run.h"
#include "lib/base/result.h"

namespace CLI {
class App;
}

namespace uet::sim {

/// What `run`, `plot` and `compare` are told on the command line.
struct RunOptions {
  std::string matrix, pattern;
  std::uint32_t hosts = 32;
  std::uint64_t bytes = 2'000'000;
  std::uint32_t tiers = 0;
  double link_gbps = 100;
  std::int64_t hop_ns = 1000;
  std::uint32_t mtu_payload = 4086;
  cc::Algorithm algorithm = cc::Algorithm::kNscc;
  cc::LoadBalancing load_balancing = cc::LoadBalancing::kBitmap;
  std::uint32_t paths = 64;
  std::uint32_t run_packets = 1;
  std::uint32_t calm_run_packets = 0;  ///< 0: as run_packets
  std::vector<std::string> degrade, fail;
  std::uint32_t planes = 1;
  double repair_us = -1;
  bool no_trim = false, ack_every_packet = false;
  std::uint64_t seed = 1;
  double end_us = 0;
  std::size_t packets = RunConfig{}.packets_max;
  std::int64_t queue_bytes = 0;
};

/// The words that --cc and --lb take.
extern const std::map<std::string, cc::Algorithm> kAlgorithms;
extern const std::map<std::string, cc::LoadBalancing> kBalancers;

/// Traffic, fabric, faults: everything but --cc, --lb and --seed.
void add_simulation_options(CLI::App& command, RunOptions& options);
/// Why the options contradict each other, empty when they do not.
std::string check(const RunOptions& options);
base::Result<TrafficMatrix, std::string> load(const RunOptions& options);
/// Fills in everything but the output streams; a sentence when the options contradict the matrix.
base::Result<RunConfig, std::string> configure(const RunOptions& options,
                                               const TrafficMatrix& matrix);

}  // namespace uet::sim
