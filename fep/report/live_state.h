/// What an endpoint is doing now, for people: one line when it opens, one JSON object for each request of uet-stat.
/// Reads the state of the layers; called on the endpoint's thread, or with its lock held.
#pragma once

#include <string>

#include "fep/fep.h"
#include "fep/settings/settings.h"

namespace uet::fep {

/// "port udp:eth0 (default), address 192.0.2.2 (FI_UET_ADDR), ...": what was chosen, and who chose it.
std::string describe_opening(Fep& fep, const Settings& settings);

/// Bounds of one snapshot: it is taken with the endpoint standing still.
struct SnapshotLimits {
  std::size_t pdcs = 256;      ///< told one by one; further ones are counted
  std::size_t contexts = 256;  ///< congestion contexts, the same
};

/// One JSON object: what was chosen, counters, drops, gauges, planes, congestion contexts with their paths, PDCs.
std::string snapshot(Instant now, Fep& fep, const Settings& settings, const SnapshotLimits& limits);

/// `text` as a JSON string, in quotes.
std::string json_string(std::string_view text);

}  // namespace uet::fep
