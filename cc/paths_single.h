/// One entropy value for all packets of a CCC, for ROD. [CC 7.6]
#pragma once

#include "cc/path_selector.h"

namespace uet::cc {

/// After congestion that another path may avoid, moves to another entropy value, but only when
/// nothing is in flight (so nothing can be overtaken) or, if the CCC never rests, at most once in
/// `reroute_rtts` round trips.
class SinglePath final : public PathSelector {
 public:
  SinglePath(const CcConfig& config, PathTable& table, base::Rng& rng)
      : config_(config), table_(table), rng_(rng) {}

  std::uint32_t next(const PathRequest& request) override;
  void on_feedback(Instant now, std::uint32_t index, PathFeedback kind) override;
  bool uses_good_news() const override { return false; }

 private:
  const CcConfig& config_;
  PathTable& table_;
  base::Rng& rng_;
  Instant last_change_;
  bool wants_change_ = false;
};

}  // namespace uet::cc
