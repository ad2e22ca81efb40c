/// Runs a traffic matrix over a fabric of real endpoints and measures it: the engine of `uet-sim
/// run`.
#pragma once

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <string>
#include <vector>

#include "cc/cc_config.h"
#include "cc/ccc.h"
#include "lib/base/result.h"
#include "sim/fabric_config.h"
#include "sim/traffic_matrix.h"

namespace uet::fep {
struct FepConfig;
}

namespace uet::sim {

class Fabric;

/// A change of some links for some time.
struct LinkChange {
  std::string links;  ///< as Fabric::find_links
  double speed = 1;   ///< factor; 0: down
  SimTime from;
  SimTime until = SimTime::never();
  SimSpan flap_period{};  ///< not zero: half of each period changed, half healthy
};

struct RunConfig {
  FabricConfig fabric;
  cc::Algorithm algorithm = cc::Algorithm::kNscc;
  cc::LoadBalancing load_balancing = cc::LoadBalancing::kBitmap;
  std::uint16_t paths = 64;
  std::uint16_t run_packets = 1;       ///< in a row that take one path
  std::uint16_t calm_run_packets = 1;  ///< the same without congestion
  bool ack_every_packet = false;
  std::uint64_t seed = 1;
  SimTime end = SimTime::never();
  std::size_t packets_max = 700'000;  ///< at once, in all endpoints and queues together
  std::vector<LinkChange> changes;
  /// Switches route around links that are down, and back, so long after the change; never: not at
  /// all.
  SimSpan repair_delay = SimSpan::from_ps(-1);
  bool keep_paths = false;        ///< fill in FlowResult::paths
  SimSpan sample_period{};        ///< not zero: record queues and windows so often
  std::ostream* trace = nullptr;  ///< every event of every endpoint, one JSON object a line
  /// Called now and then: share of the bytes that are done, virtual time.
  std::function<void(double, SimTime)> progress;
  /// For tests: changes the settings of all endpoints, and the fabric, before anything runs.
  std::function<void(fep::FepConfig&)> adjust;
  std::function<void(Fabric&)> prepare;
};

/// What the congestion context of a flow knew of its paths when the flow ended (or the run did).
/// Flows between the same two hosts share one context.
struct PathSummary {
  std::uint32_t known = 0;  ///< entropy values
  std::uint32_t used = 0;   ///< that carried something
  std::uint32_t evicted = 0, returning = 0;
  std::uint64_t sent = 0, marks = 0, trims = 0, losses = 0;
  base::Duration rtt_min, rtt_max;  ///< of the last samples of all paths
};

struct FlowResult {
  Flow flow;
  SimTime started = SimTime::never();
  SimTime ended = SimTime::never();  ///< the last acknowledgement is back
  bool failed = false;
  int code = 0;  ///< SES return code
  PathSummary path_summary;
  std::vector<cc::Ccc::PathInfo> paths;
  SimSpan fct() const { return ended - started; }
  bool is_complete() const { return !ended.is_never() && !failed; }
};

struct QueueSample {
  SimTime at;
  std::int64_t longest_bytes = 0;  ///< data in the longest switch queue
  std::int64_t total_bytes = 0;
};
struct WindowSample {
  SimTime at;
  HostId host = 0;
  std::int64_t window = 0, inflight = 0;
};

struct RunResult {
  std::vector<FlowResult> flows;  ///< in the order of the matrix
  std::size_t completed = 0;
  SimSpan bound;  ///< matrix_bound()
  SimSpan fct_min, fct_median, fct_p99, fct_max;
  SimSpan job;                ///< from the first start to the last end; zero unless all completed
  SimSpan job_bound;          ///< job_bound()
  double jain = 0;            ///< of the flows' rates
  std::uint64_t packets = 0;  ///< data packets that hosts sent, retransmissions included
  std::uint64_t retransmissions = 0, trims = 0, drops = 0, marks = 0, timeouts = 0;
  std::vector<double> top_share;       ///< of the data packets through the top tier
  std::uint64_t ooo_distance_max = 0;  ///< how many PSNs behind the highest a packet arrived
  std::uint64_t events = 0;
  std::uint64_t fingerprint = 0;
  std::size_t packet_memory_bytes = 0;
  SimTime ended;
  std::vector<QueueSample> queue_samples;
  std::vector<WindowSample> window_samples;
};

/// Empty, or which of the changes is about no link of the fabric.
std::string unknown_link(const RunConfig& config);
/// A sentence when something in `config` does not fit the fabric (an unknown link), or when the run needs more than `packets_max`.
base::Result<RunResult, std::string> run_matrix(const RunConfig& config,
                                                const TrafficMatrix& matrix);

}  // namespace uet::sim
