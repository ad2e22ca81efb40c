/// Spraying without feedback: every path once a round, in pseudo-random order. [CC 7.2]
#pragma once

#include "cc/path_order.h"
#include "cc/path_selector.h"

namespace uet::cc {

class ObliviousPaths final : public PathSelector {
 public:
  ObliviousPaths(PathTable& table, base::Rng& rng)
      : table_(table), rng_(rng), order_(table.size(), rng) {}

  std::uint32_t next(const PathRequest& request) override {
    std::uint32_t index = order_.next(rng_);
    for (std::uint32_t tries = 0; tries < table_.size() && !table_.usable(index, request);
         ++tries) {
      index = order_.next(rng_);
    }
    return table_.usable(index, request) ? index : table_.best_from(index, request);
  }
  void on_feedback(Instant, std::uint32_t, PathFeedback) override {}
  bool uses_good_news() const override { return false; }
  void fix_order_for_test() override { order_.fix_mask_for_test(); }

 private:
  PathTable& table_;
  base::Rng& rng_;
  PathOrder order_;
};

}  // namespace uet::cc
