/// What uet-stat prints: snapshots of live endpoints as text, with rates between two of them, or as Prometheus metrics.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace uet::stat {

struct ViewOptions {
  bool paths = false;  ///< one line per path
  bool pdcs = true;    ///< one line per PDC
};

/// One process. `before` is an earlier snapshot of the same one for rates; null: none. Nothing in either is trusted to be there.
std::string to_text(const nlohmann::json& process, const nlohmann::json& before,
                    const ViewOptions& options);

/// All processes; families in the text format of Prometheus.
std::string to_prometheus(const std::vector<nlohmann::json>& processes);

}  // namespace uet::stat
