/// Which flows a run has: htsim's connection matrix format (`.cm`) and built-in patterns.
///
///     Nodes 32
///     Connections 2
///     Triggers 1
///     0->7 id 1 start 0 size 2000000 send_done_trigger 1
///     1->8 id 2 trigger 1 size 2000000
///     trigger id 1 oneshot
///
/// Start times are picoseconds. A trigger starts its flows when enough others ended: `oneshot`
/// once, `multishot` every time, `barrier count N` when N flows have fired it.
#pragma once

#include <cstdint>
#include <istream>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/result.h"
#include "sim/frame.h"
#include "sim/sim_time.h"

namespace uet::sim {

struct Flow {
  std::uint32_t id = 0;
  HostId source = 0;
  HostId destination = 0;
  std::uint64_t bytes = 0;
  SimTime start;                                     ///< when no trigger starts it
  std::optional<std::uint32_t> started_by;           ///< trigger id
  std::optional<std::uint32_t> fires_when_sent;      ///< trigger id, at the last acknowledgement
  std::optional<std::uint32_t> fires_when_received;  ///< trigger id, at the last byte's arrival
};

struct Trigger {
  enum class Kind : std::uint8_t { kOneShot, kMultiShot, kBarrier };
  std::uint32_t id = 0;
  Kind kind = Kind::kOneShot;
  std::uint32_t count = 1;  ///< barrier: how many must fire
};

struct TrafficMatrix {
  std::uint32_t nodes = 0;
  std::vector<Flow> flows;
  std::vector<Trigger> triggers;
};

/// A sentence with the line number on failure.
base::Result<TrafficMatrix, std::string> parse_matrix(std::istream& in);

/// Built-in patterns, for `uet-sim run --pattern`. Steps of a collective start when the step before
/// them has ended on the same host, through triggers. `bytes` is the size of the data of one host.
///   permutation, incast, outcast, all-to-all, ring-allreduce, tree-allreduce, all-gather,
///   reduce-scatter, pipeline
base::Result<TrafficMatrix, std::string> build_pattern(std::string_view name, std::uint32_t nodes,
                                                       std::uint64_t bytes, std::uint64_t seed);

}  // namespace uet::sim
