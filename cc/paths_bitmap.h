/// Spraying that passes over paths with bad samples: a small penalty per path, worked off by being
/// skipped. [CC 7.3]
#pragma once

#include "cc/path_order.h"
#include "cc/path_selector.h"

namespace uet::cc {

/// Penalties live in the path table, where users can see them.
class BitmapPaths final : public PathSelector {
 public:
  BitmapPaths(const CcConfig& config, PathTable& table, base::Rng& rng);

  std::uint32_t next(const PathRequest& request) override;
  void on_feedback(Instant now, std::uint32_t index, PathFeedback kind) override;
  bool uses_good_news() const override { return false; }
  void fix_order_for_test() override { order_.fix_mask_for_test(); }

  /// Too many paths are penalised for skipping to help. [CC 7.1]
  bool is_saturated() const;

 private:
  void start_round(const PathRequest& request);
  void take_back_one(std::uint32_t index);

  const CcConfig& config_;
  PathTable& table_;
  base::Rng& rng_;
  PathOrder order_;
  std::uint32_t penalised_ = 0;  ///< paths with a penalty among those in use
};

}  // namespace uet::cc
