/// Both memories at once: good paths are recycled, bad ones are penalised. [CC 7.5]
#pragma once

#include "cc/paths_bitmap.h"
#include "cc/paths_reps.h"

namespace uet::cc {

class MixedPaths final : public PathSelector {
 public:
  MixedPaths(const CcConfig& config, PathTable& table, base::Rng& rng)
      : table_(table), bitmap_(config, table, rng), good_(table.size()) {}

  std::uint32_t next(const PathRequest& request) override {
    const auto recycled = good_.pop(table_, request);
    return recycled ? *recycled : bitmap_.next(request);
  }
  void on_feedback(Instant now, std::uint32_t index, PathFeedback kind) override {
    if (kind == PathFeedback::kGood)
      good_.push(index);
    else
      good_.forget(index);
    bitmap_.on_feedback(now, index, kind);
  }
  void fix_order_for_test() override { bitmap_.fix_order_for_test(); }

 private:
  const PathTable& table_;
  BitmapPaths bitmap_;
  PathFifo good_;
};

}  // namespace uet::cc
