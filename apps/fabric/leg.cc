#include "apps/fabric/leg.h"

#include <cstring>
#include <utility>

namespace uet::fabric {

Leg::Leg(sim::Simulation& simulation, std::string name, std::unique_ptr<net::FrameDevice> device)
    : simulation_(simulation), name_(std::move(name)), device_(std::move(device)) {}

Leg::~Leg() {
  throw_away();
}

void Leg::on_frame(sim::Frame* frame) {
  if (waiting() >= kWaitingMax) {
    ++counters.tx_full;
    simulation_.frames.release(frame);
    return;
  }
  egress_.push(frame);
}

/// Frames leave in packets of the device's own pool: no driver ever holds memory of another's, so
/// that devices can be closed in any order.
void Leg::fill(Finisher& finisher) {
  offered_begin_ = offered_end_ = 0;
  while (offered_end_ < kBurst && !egress_.is_empty()) {
    sim::Frame* frame = egress_.pop();
    finisher.finish(*this, *frame);
    const auto bytes = std::as_const(frame->rx.packet).bytes();
    net::Packet packet = device_->pool().allocate();
    if (packet && bytes.size() <= device_->pool().max_packet_bytes()) {
      std::memcpy(packet.append(bytes.size()), bytes.data(), bytes.size());
      offered_[offered_end_++] = std::move(packet);
    } else {
      ++counters.tx_no_buffer;
    }
    simulation_.frames.release(frame);
  }
}

std::size_t Leg::transmit(sim::SimTime now, Finisher& finisher) {
  std::size_t total = 0;
  if (waiting() == 0) {
    last_taken_ = now;
    return 0;
  }
  for (;;) {
    if (offered_begin_ == offered_end_) fill(finisher);
    const std::size_t count = offered_end_ - offered_begin_;
    if (count == 0) break;
    std::array<std::size_t, kBurst> sizes;
    for (std::size_t i = 0; i < count; ++i) sizes[i] = offered_[offered_begin_ + i].size();
    const std::size_t taken =
        device_->send_frames(std::span(offered_).subspan(offered_begin_, count));
    for (std::size_t i = 0; i < taken; ++i) counters.tx_bytes += sizes[i];
    counters.tx_frames += taken;
    offered_begin_ += taken;
    total += taken;
    if (taken < count) break;
  }
  if (total != 0) last_taken_ = now;
  if (now - last_taken_ > sim::SimSpan::from(kPatience)) {
    counters.tx_stalled += waiting();
    throw_away();
  }
  return total;
}

void Leg::throw_away() {
  while (offered_begin_ != offered_end_) offered_[offered_begin_++].reset();
  while (!egress_.is_empty()) simulation_.frames.release(egress_.pop());
}

}  // namespace uet::fabric
