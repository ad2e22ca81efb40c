#include "sim/output_queue.h"

#include <algorithm>

#include "lib/base/check.h"

namespace uet::sim {

namespace {
constexpr std::uint8_t kCongestionExperienced = 3;
}

QueueConfig QueueConfig::scaled(double factor) const {
  const auto scale = [factor](std::int64_t bytes) {
    return bytes >= kUnlimited ? bytes
                               : static_cast<std::int64_t>(static_cast<double>(bytes) * factor);
  };
  QueueConfig c = *this;
  c.data_limit_bytes = scale(data_limit_bytes);
  c.control_limit_bytes = scale(control_limit_bytes);
  c.ecn_low_bytes = scale(ecn_low_bytes);
  c.ecn_high_bytes = scale(ecn_high_bytes);
  return c;
}

void OutputQueue::push(Frame* frame, base::Rng& rng, FramePool& pool) {
  if (frame->traffic_class == TrafficClass::kControl) {
    push_control(frame, pool);
  } else {
    push_data(frame, rng, pool);
  }
}

void OutputQueue::push_data(Frame* frame, base::Rng& rng, FramePool& pool) {
  if (data_bytes_ + frame->wire_bytes > config_.data_limit_bytes) {
    // [CC appendix A] Which of the two loses its payload is a coin toss, so that no flow is always
    // the one.
    if (!newest_may_be_cut() || !rng.chance(0.5)) {
      cut(frame, pool);
      return;
    }
    Frame* victim = data_.replace_newest(frame);
    data_bytes_ += static_cast<std::int64_t>(frame->wire_bytes) - victim->wire_bytes;
    cut(victim, pool);
    return;
  }
  data_.push(frame);
  data_bytes_ += frame->wire_bytes;
  counters_.peak_data_bytes = std::max(counters_.peak_data_bytes, data_bytes_);
}

bool OutputQueue::newest_may_be_cut() const {
  return !data_.is_empty() && data_.newest() != sending_;
}

void OutputQueue::cut(Frame* frame, FramePool& pool) {
  if (!config_.trimming || !frame->trimmable) {
    ++counters_.drops_data;
    pool.release(frame);
    return;
  }
  model_->trim(*frame, config_.last_hop);
  ++counters_.trims;
  push_control(frame, pool);
}

void OutputQueue::push_control(Frame* frame, FramePool& pool) {
  if (control_bytes_ + frame->wire_bytes > config_.control_limit_bytes) {
    ++counters_.drops_control;
    pool.release(frame);
    return;
  }
  control_.push(frame);
  control_bytes_ += frame->wire_bytes;
}

std::uint32_t OutputQueue::begin() {
  UET_DCHECK(sending_ == nullptr);
  FrameFifo& from = control_.is_empty() ? data_ : control_;
  sending_ = from.oldest();
  return sending_->wire_bytes;
}

Frame* OutputQueue::finish(base::Rng& rng) {
  UET_DCHECK(sending_ != nullptr);
  Frame* frame = sending_;
  sending_ = nullptr;
  if (frame->traffic_class == TrafficClass::kControl) {
    UET_DCHECK(control_.oldest() == frame);
    control_.pop();
    control_bytes_ -= frame->wire_bytes;
    ++counters_.control_packets;
    return frame;
  }
  UET_DCHECK(data_.oldest() == frame);
  data_.pop();
  data_bytes_ -= frame->wire_bytes;
  ++counters_.data_packets;
  counters_.data_bytes += frame->wire_bytes;
  mark_maybe(*frame, rng);
  return frame;
}

void OutputQueue::mark_maybe(Frame& frame, base::Rng& rng) {
  if (!config_.marking || data_bytes_ <= config_.ecn_low_bytes) return;
  if (data_bytes_ <= config_.ecn_high_bytes) {
    const auto span = static_cast<double>(config_.ecn_high_bytes - config_.ecn_low_bytes);
    if (!rng.chance(static_cast<double>(data_bytes_ - config_.ecn_low_bytes) / span)) return;
  }
  if (frame.rx.tos.ecn() == 0) return;  // the sender does not understand marks
  frame.rx.tos = net::TosByte::of(frame.rx.tos.dscp(), kCongestionExperienced);
  ++counters_.marks;
}

}  // namespace uet::sim
