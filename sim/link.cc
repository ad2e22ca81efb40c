#include "sim/link.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace uet::sim {

Link::Link(Simulation& simulation, const WireModel& model, const LinkConfig& config, FrameSink& to)
    : simulation_(simulation),
      model_(model),
      config_(config),
      rate_(config.rate),
      queue_(config.queue, model),
      rng_(simulation.fork_rng()),
      to_(to) {}

void Link::send(Frame* frame) {
  queue_.push(frame, rng_, simulation_.frames);
  if (!sending_ && !queue_.is_empty()) start();
}

void Link::start() {
  sending_ = true;
  if (simulation_.now() < paused_until_) {
    simulation_.events.schedule(paused_until_, *this, kResume);
    return;
  }
  cuts_when_begun_ = cuts_;
  up_when_begun_ = up_;
  const std::uint32_t bytes = queue_.begin();
  simulation_.events.schedule(simulation_.now() + SimSpan::of_bytes(bytes, rate_), *this, kSent);
}

void Link::finish() {
  put_on_wire(queue_.finish(rng_));
  sending_ = false;
  if (!queue_.is_empty()) {
    start();
  } else if (listener_ != nullptr) {
    listener_->on_link_idle();
  }
}

void Link::lose(Frame* frame) {
  ++lost_while_down_;
  if (faults_) faults_->count(Fault::kPartition);
  simulation_.frames.release(frame);
}

void Link::arrive(Frame* frame) {
  if (frame->cuts != cuts_) return lose(frame);
  to_.on_frame(frame);
}

void Link::put_on_wire(Frame* frame) {
  if (!up_ || !up_when_begun_ || cuts_when_begun_ != cuts_) return lose(frame);
  frame->cuts = cuts_;
  SimTime at = simulation_.now() + config_.delay;
  if (faults_) {
    const FaultInjector::Fate fate = faults_->decide(*frame);
    if (fate.lost) {
      simulation_.frames.release(frame);
      return;
    }
    if (fate.trimmed) model_.trim(*frame, config_.queue.last_hop);
    if (fate.copied) {
      if (Frame* copy = copy_of(*frame)) {
        simulation_.events.schedule(at + fate.copy_delay, *this, kArrived, copy);
      }
    }
    at = at + fate.extra_delay;
  }
  simulation_.events.schedule(at, *this, kArrived, frame);
}

Frame* Link::copy_of(const Frame& frame) {
  net::Packet packet = simulation_.packets_pool.allocate();
  if (!packet) return nullptr;
  const auto bytes = frame.rx.packet.bytes();
  if (!bytes.empty()) std::memcpy(packet.append(bytes.size()), bytes.data(), bytes.size());
  Frame* copy = simulation_.frames.acquire();
  copy->rx.packet = std::move(packet);
  copy->rx.source = frame.rx.source;
  copy->rx.destination = frame.rx.destination;
  copy->rx.entropy = frame.rx.entropy;
  copy->rx.tos = frame.rx.tos;
  copy->flow = frame.flow;
  copy->cuts = frame.cuts;
  copy->source = frame.source;
  copy->destination = frame.destination;
  copy->wire_bytes = frame.wire_bytes;
  copy->headers = frame.headers;
  copy->traffic_class = frame.traffic_class;
  copy->trimmable = frame.trimmable;
  copy->trimmed = frame.trimmed;
  return copy;
}

void Link::on_event(std::uint32_t kind, void* data) {
  switch (kind) {
    case kSent:
      finish();
      break;
    case kArrived:
      arrive(static_cast<Frame*>(data));
      break;
    case kResume:
      start();
      break;
  }
}

void Link::set_speed_factor(double factor, std::int64_t queue_bytes_min) {
  rate_ = base::BitRate::from_bps(std::max<std::uint64_t>(
      1, static_cast<std::uint64_t>(static_cast<double>(config_.rate.bps()) * factor)));
  QueueConfig queue = config_.queue.scaled(factor);
  queue.data_limit_bytes = std::max(queue.data_limit_bytes, queue_bytes_min);
  queue.control_limit_bytes = std::max(queue.control_limit_bytes, queue_bytes_min);
  queue_.configure(queue);
}

void Link::set_queue(const QueueConfig& queue) {
  const double factor = speed_factor();
  config_.queue = queue;
  queue_.configure(queue.scaled(factor));
}

void Link::set_up(bool up) {
  const bool was_up = std::exchange(up_, up);
  if (was_up && !up) ++cuts_;
  if (was_up != up && listener_ != nullptr) listener_->on_link_changed();
}

void Link::pause_until(SimTime end) {
  paused_until_ = std::max(paused_until_, end);
}

void Link::set_faults(const FaultProfile& profile) {
  if (faults_) {
    faults_->set_profile(profile);
  } else {
    faults_ = std::make_unique<FaultInjector>(profile, simulation_.fork_rng());
  }
}

FaultCounters Link::fault_counters() const {
  return faults_ ? faults_->counters() : FaultCounters{};
}

}  // namespace uet::sim
