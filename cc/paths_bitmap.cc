#include "cc/paths_bitmap.h"

#include <algorithm>
#include <bit>

namespace uet::cc {
namespace {

constexpr int kPenaltyMax = 15;
constexpr std::int64_t kPathsMin = 16;

int penalty_for(PathFeedback kind) {
  switch (kind) {
    case PathFeedback::kGood:
      return 0;
    case PathFeedback::kEcn:
      return 1;
    case PathFeedback::kNacked:
      return 4;
    case PathFeedback::kTimeout:
      return kPenaltyMax;
  }
  return 0;
}

}  // namespace

BitmapPaths::BitmapPaths(const CcConfig& config, PathTable& table, base::Rng& rng)
    : config_(config), table_(table), rng_(rng), order_(table.size(), rng) {}

std::uint32_t BitmapPaths::next(const PathRequest& request) {
  // At most once around and one more, so a packet always leaves. [CC 7.3]
  const std::uint32_t tries_max = order_.size() + 1;
  const bool saturated = is_saturated();
  bool took_back = false;
  std::optional<std::uint32_t> second_best;  // penalised, but alive and allowed
  for (std::uint32_t tries = 0; tries < tries_max; ++tries) {
    if (order_.at_round_start()) start_round(request);
    const std::uint32_t index = order_.next(rng_);
    if (!table_.usable(index, request)) continue;
    if (table_.entry(index).penalty == 0) return index;
    if (!took_back) take_back_one(index);
    took_back = true;
    if (saturated) return index;
    second_best = index;
  }
  return second_best ? *second_best : table_.best_from(order_.next(rng_), request);
}

void BitmapPaths::on_feedback(Instant, std::uint32_t index, PathFeedback kind) {
  const int added = penalty_for(kind);
  // An evicted path is out already; a penalty on top would keep the packet away that tries it
  // again.
  if (added == 0 || table_.entry(index).evictions > 0) return;
  auto& penalty = table_.entry(index).penalty;
  if (penalty == 0 && index < order_.size()) ++penalised_;
  penalty = static_cast<std::uint8_t>(std::min(penalty + added, kPenaltyMax));
}

bool BitmapPaths::is_saturated() const {
  return static_cast<double>(penalised_) > config_.saturated_fraction * order_.size();
}

// A clean path should come round within about two RTTs, or what is known of it is stale. [CC 7.1]
void BitmapPaths::start_round(const PathRequest& request) {
  if (!config_.adaptive_paths) return;
  const auto wanted = std::bit_ceil(
      static_cast<std::uint64_t>(std::max<std::int64_t>(2 * request.window_packets, 1)));
  const auto most = std::uint64_t{table_.size()};
  const auto least = std::min<std::uint64_t>(kPathsMin, most);
  auto size = static_cast<std::uint32_t>(std::clamp(wanted, least, most));
  // Where many paths are out of use, more are needed for as many that are not.
  while (size < table_.size() && table_.usable_among(size, request) * 2 < size) size *= 2;
  if (size == order_.size()) return;
  order_.resize(size);
  penalised_ = 0;
  for (std::uint32_t i = 0; i < size; ++i) penalised_ += table_.entry(i).penalty > 0 ? 1 : 0;
}

void BitmapPaths::take_back_one(std::uint32_t index) {
  auto& penalty = table_.entry(index).penalty;
  if (--penalty == 0) --penalised_;
}

}  // namespace uet::cc
