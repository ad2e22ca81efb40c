#include "cc/paths_reps.h"

#include <algorithm>

namespace uet::cc {
namespace {

constexpr std::uint16_t kExploreAfterThaw = 16;
constexpr int kRandomDraws = 4;

}  // namespace

std::uint32_t random_path(const PathTable& table, const PathRequest& request, base::Rng& rng) {
  std::uint32_t index = 0;
  for (int draw = 0; draw < kRandomDraws; ++draw) {
    index = rng.below(table.size());
    if (table.usable(index, request)) return index;
  }
  return table.best_from(index, request);
}

std::uint32_t RepsPaths::next(const PathRequest& request) {
  if (explore_ > 0) {
    --explore_;
    return random_path(table_, request, rng_);
  }
  const auto recycled = frozen_ ? take_frozen(request) : take_fresh(request);
  return recycled ? *recycled : random_path(table_, request, rng_);
}

void RepsPaths::on_feedback(Instant now, std::uint32_t index, PathFeedback kind) {
  if (frozen_ && now >= frozen_until_) thaw();
  if (kind == PathFeedback::kGood) {
    ring_[head_] = Slot{static_cast<std::uint16_t>(index), true, true};
    head_ = static_cast<std::uint8_t>((head_ + 1) % config_.reps_slots);
  }
  // A packet may be reported as arrived before the acknowledgement comes that says it was marked.
  if (kind == PathFeedback::kEcn || kind == PathFeedback::kNacked) forget(index);
  // Only where packets are cut does a timeout mean a broken path rather than congestion.
  if (kind == PathFeedback::kTimeout && config_.trimming && !frozen_ && explore_ == 0) {
    frozen_ = true;
    frozen_until_ = now + config_.reps_freeze;
  }
}

std::optional<std::uint32_t> RepsPaths::take_fresh(const PathRequest& request) {
  for (std::uint8_t step = 0; step < config_.reps_slots; ++step) {
    Slot& slot = ring_[(head_ + step) % config_.reps_slots];
    if (!slot.fresh) continue;
    slot.fresh = false;
    if (table_.usable(slot.index, request)) return slot.index;
  }
  return std::nullopt;
}

std::optional<std::uint32_t> RepsPaths::take_frozen(const PathRequest& request) {
  for (std::uint8_t step = 0; step < config_.reps_slots; ++step) {
    Slot& slot = ring_[replay_];
    replay_ = static_cast<std::uint8_t>((replay_ + 1) % config_.reps_slots);
    slot.fresh = false;
    if (slot.used && table_.usable(slot.index, request)) return slot.index;
  }
  return std::nullopt;
}

void RepsPaths::forget(std::uint32_t index) {
  for (std::uint8_t step = 1; step <= config_.reps_slots; ++step) {
    Slot& slot = ring_[(head_ + config_.reps_slots - step) % config_.reps_slots];
    if (!slot.used || slot.index != index) continue;
    slot.fresh = false;
    return;
  }
}

void RepsPaths::thaw() {
  frozen_ = false;
  ring_ = {};
  head_ = 0;
  replay_ = 0;
  explore_ = kExploreAfterThaw;
}

void PathFifo::push(std::uint32_t index) {
  if (values_.is_full()) values_.pop();
  values_.push(static_cast<std::uint16_t>(index));
}

void PathFifo::forget(std::uint32_t index) {
  for (std::size_t i = values_.size(); i-- > 0;) {
    if (values_[i] != index) continue;
    values_[i] = kVoid;
    return;
  }
}

std::optional<std::uint32_t> PathFifo::pop(const PathTable& table, const PathRequest& request) {
  while (!values_.is_empty()) {
    const std::uint32_t index = values_.pop();
    if (index != kVoid && table.usable(index, request)) return index;
  }
  return std::nullopt;
}

std::uint32_t RepsLegacyPaths::next(const PathRequest& request) {
  const auto first_window =
      std::min<std::int64_t>(std::max<std::int64_t>(request.window_packets, 1), table_.size());
  while (introduced_ < first_window) {
    const std::uint32_t index = introduced_++;
    if (table_.usable(index, request)) return index;
  }
  introduced_ = table_.size();  // the first window is over, whatever becomes of the window later
  const auto recycled = good_.pop(table_, request);
  return recycled ? *recycled : random_path(table_, request, rng_);
}

void RepsLegacyPaths::on_feedback(Instant, std::uint32_t index, PathFeedback kind) {
  if (kind == PathFeedback::kGood)
    good_.push(index);
  else
    good_.forget(index);
}

}  // namespace uet::cc
