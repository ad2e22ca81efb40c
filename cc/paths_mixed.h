/// Both memories at once: good paths are recycled, bad ones are penalised. [CC 7.5]
///
/// Recycled entropy values converge to a collision-free schedule until some flow switches paths. All flows of a queue see its marks;
/// if each left it at once, too many would move to random paths and congest those. So only some marks replace a value, and
/// delay replaces one value a round trip. See docs/notes/replacing-few-entropy-values.md.
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
    if (kind != PathFeedback::kGood) good_.forget(index);
    const bool is_pardoned = kind == PathFeedback::kEcn && ++marks_ % kPardonedMark == 0;
    if (kind == PathFeedback::kGood || is_pardoned) return good_.push(index);
    bitmap_.on_feedback(now, index, kind);
  }
  /// The next turn of a slow value goes to the one that is known to be fastest.
  void on_slow(Instant now, std::uint32_t index, Duration base_rtt) override {
    const bool may_move = now >= move_again_at_;
    const auto faster = may_move ? table_.fastest_since(now - base_rtt * 3 / 2, now) : std::nullopt;
    if (may_move) move_again_at_ = now + base_rtt;
    good_.push(faster ? *faster : index);
  }
  void fix_order_for_test() override { bitmap_.fix_order_for_test(); }

 private:
  static constexpr std::uint32_t kPardonedMark = 2;  ///< one mark in so many has no consequences

  const PathTable& table_;
  BitmapPaths bitmap_;
  PathFifo good_;
  std::uint32_t marks_ = 0;
  Instant move_again_at_;
};

}  // namespace uet::cc
