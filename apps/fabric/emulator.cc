#include "apps/fabric/emulator.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "lib/net/link_messages.h"

namespace uet::fabric {

namespace {

constexpr std::size_t kSmallestFrame = 60;    // without FCS
constexpr std::uint32_t kFrameOverhead = 24;  // preamble, FCS, gap
constexpr std::uint8_t kCongestionExperienced = 3;

std::vector<std::string> names_of(const Scenario& scenario) {
  std::vector<std::string> names;
  for (const LegConfig& leg : scenario.legs) names.push_back(leg.name);
  return names;
}

std::vector<std::unique_ptr<Leg>> make_legs(
    sim::Simulation& simulation, const Scenario& scenario,
    std::vector<std::unique_ptr<net::FrameDevice>> devices) {
  UET_CHECK(devices.size() == scenario.legs.size());
  std::vector<std::unique_ptr<Leg>> legs;
  for (std::size_t i = 0; i < devices.size(); ++i)
    legs.push_back(std::make_unique<Leg>(simulation, scenario.legs[i].name, std::move(devices[i])));
  return legs;
}

}  // namespace

sim::WireModel Emulator::wire_model(const Scenario& scenario) {
  return {.size = sim::WireModel::Size::kActual, .overhead = kFrameOverhead, .dscp = scenario.dscp};
}

std::vector<sim::FrameSink*> Emulator::sinks() {
  std::vector<sim::FrameSink*> all;
  for (auto& leg : legs_) all.push_back(leg.get());
  return all;
}

Emulator::Emulator(const Scenario& scenario, std::vector<std::unique_ptr<net::FrameDevice>> devices)
    : scenario_(scenario),
      model_(wire_model(scenario_)),
      simulation_(scenario_.seed, scenario_.packets, scenario_.max_frame),
      leg_names_(names_of(scenario_)),
      legs_(make_legs(simulation_, scenario_, std::move(devices))),
      net_(simulation_, model_, scenario_, sinks()),
      flows_(legs_.size() * legs_.size()),
      link_generations_(legs_.size()) {}

Emulator::~Emulator() = default;

std::size_t Emulator::turn(sim::SimTime now) {
  simulation_.events.run_until(now);
  std::size_t moved = 0;
  for (std::size_t leg = 0; leg < legs_.size(); ++leg) moved += receive(leg);
  for (auto& leg : legs_) moved += leg->transmit(now, *this);
  return moved;
}

/// A host's own transmitter is as slow as its link: what it cannot send yet stays in the ring
/// between the host and us, where the host sees it.
std::size_t Emulator::receive(std::size_t index) {
  Leg& leg = *legs_[index];
  const sim::OutputQueue& queue = net_.uplink(index).queue();
  if (queue.data_bytes() + queue.control_bytes() >=
      static_cast<std::int64_t>(scenario_.nic_queue)) {
    ++leg.counters.rx_held;
    return 0;
  }
  const std::size_t n = leg.receive(burst_);
  // Another host may have been plugged in.
  const std::uint32_t generation = leg.device().link_generation();
  if (std::exchange(link_generations_[index], generation) != generation)
    macs_.forget_leg(static_cast<std::uint32_t>(index));
  for (std::size_t i = 0; i < n; ++i) {
    accept(index, std::as_const(burst_[i]).bytes());
    burst_[i].reset();
  }
  return n;
}

void Emulator::accept(std::size_t index, std::span<const std::uint8_t> bytes) {
  Leg& leg = *legs_[index];
  ++leg.counters.rx_frames;
  leg.counters.rx_bytes += bytes.size();
  if (tap_ != nullptr) tap_->on_received(simulation_.now(), leg, bytes);
  const auto view = look_at(bytes, scenario_.rules);
  if (!view) {
    ++leg.counters.rx_runt;
  } else if (bytes.size() > scenario_.max_frame) {
    ++leg.counters.rx_too_large;
  } else if (net::is_multicast(view->source)) {
    ++leg.counters.rx_bad_source;
  } else {
    macs_.learn(view->source, static_cast<std::uint32_t>(index), simulation_.now());
    forward(index, *view, bytes);
  }
}

void Emulator::forward(std::size_t from, const FrameView& view,
                       std::span<const std::uint8_t> bytes) {
  LegCounters& counters = legs_[from]->counters;
  const auto to = net::is_multicast(view.destination)
                      ? std::nullopt
                      : macs_.find(view.destination, simulation_.now());
  if (to && *to == from) {
    ++counters.rx_to_itself;
    return;
  }
  if (to) {
    enter(from, *to, view, bytes);
    return;
  }
  for (std::size_t leg = 0; leg < legs_.size(); ++leg) {
    if (leg == from) continue;
    ++counters.flooded;
    enter(from, leg, view, bytes);
  }
}

void Emulator::enter(std::size_t from, std::size_t to, const FrameView& view,
                     std::span<const std::uint8_t> bytes) {
  sim::Frame* frame = make_frame(from, to, view, bytes);
  if (frame == nullptr) return;
  if (view.is_discovery) {
    send_aside(frame);
    return;
  }
  if (!rules_.is_empty()) {
    PacketFacts facts = view.is_uet ? facts_of(bytes.subspan(view.headers)) : PacketFacts{};
    facts.from = from;
    facts.to = to;
    facts.entropy = view.entropy;
    if (const MatchRule* rule = rules_.find(facts)) {
      apply(*rule, frame, view, bytes);
      return;
    }
  }
  net_.uplink(from).send(frame);
}

sim::Frame* Emulator::make_frame(std::size_t from, std::size_t to, const FrameView& view,
                                 std::span<const std::uint8_t> bytes) {
  net::Packet packet = simulation_.packets_pool.allocate();
  if (!packet) {
    ++legs_[from]->counters.rx_no_packet;
    return nullptr;
  }
  std::memcpy(packet.append(bytes.size()), bytes.data(), bytes.size());
  sim::Frame* frame = simulation_.frames.acquire();
  frame->rx.packet = std::move(packet);
  frame->rx.entropy = view.entropy;
  frame->rx.tos = view.tos;
  frame->flow = view.flow;
  frame->source = static_cast<sim::HostId>(from);
  frame->destination = static_cast<sim::HostId>(to);
  frame->headers = view.headers;
  frame->wire_bytes =
      static_cast<std::uint32_t>(std::max(bytes.size(), kSmallestFrame)) + kFrameOverhead;
  // Traffic other than UET means something else by its code points; and ARP must get through.
  frame->traffic_class = view.is_uet  ? model_.traffic_class(view.tos)
                         : view.is_ip ? sim::TrafficClass::kData
                                      : sim::TrafficClass::kControl;
  frame->trimmable = view.is_uet && model_.is_trimmable(view.tos) &&
                     bytes.size() > view.headers + sim::WireModel::kTrimmedBytes;
  return frame;
}

void Emulator::apply(const MatchRule& rule, sim::Frame* frame, const FrameView& view,
                     std::span<const std::uint8_t> bytes) {
  sim::Link& uplink = net_.uplink(frame->source);
  switch (rule.action) {
    case MatchAction::kDrop:
      simulation_.frames.release(frame);
      return;
    case MatchAction::kTrim:
      if (view.is_ip && bytes.size() > view.headers) model_.trim(*frame, false);
      break;
    case MatchAction::kCorrupt:
      if (bytes.size() > view.headers) {
        net::Packet& packet = frame->rx.packet;
        const auto size = static_cast<std::uint32_t>(packet.size() - view.headers);
        packet.data()[view.headers + simulation_.rng.below(size)] ^= 0x10;
        frame->trimmable = false;  // its CRC is wrong already
      }
      break;
    case MatchAction::kDuplicate:
      if (sim::Frame* copy = make_frame(frame->source, frame->destination, view, bytes))
        uplink.send(copy);
      break;
    case MatchAction::kMark:
      frame->rx.tos = net::TosByte::of(frame->rx.tos.dscp(), kCongestionExperienced);
      break;
    case MatchAction::kDelay:
      simulation_.events.schedule(simulation_.now() + sim::SimSpan::from(rule.delay), *this,
                                  kHeldBack, frame);
      return;
  }
  uplink.send(frame);
}

/// Who is where is told beside the paths, as in fabrics whose leaves answer for their neighbors: a
/// path that dies takes no address with it. See docs/decisions/0091.
void Emulator::send_aside(sim::Frame* frame) {
  if (!net_.uplink(frame->source).is_up()) {
    simulation_.frames.release(frame);
    return;
  }
  simulation_.events.schedule(simulation_.now() + sim::SimSpan::from(scenario_.delay), *this,
                              kAside, frame);
}

void Emulator::on_event(std::uint32_t kind, void* data) {
  auto* frame = static_cast<sim::Frame*>(data);
  // Else a packet that a rule held back goes on.
  (kind == kAside ? net_.downlink(frame->destination) : net_.uplink(frame->source)).send(frame);
}

/// What switches decided about the packet becomes bytes where it leaves.
void Emulator::finish(Leg& leg, sim::Frame& frame) {
  FlowCounters& flow = flows_[frame.source * legs_.size() + frame.destination];
  const auto bytes = frame.rx.packet.bytes();
  const auto view = look_at(bytes, scenario_.rules);
  if (view && view->is_ip) {
    if (frame.trimmed) set_lengths(bytes, *view);
    if (view->tos.value != frame.rx.tos.value) set_tos(bytes, *view, frame.rx.tos);
    if (frame.rx.tos.is_congestion_experienced() && !view->tos.is_congestion_experienced()) {
      ++leg.counters.tx_marked;
      ++flow.marked;
    }
  }
  if (frame.trimmed) {
    ++leg.counters.tx_trimmed;
    ++flow.trimmed;
  } else {
    ++flow.frames;
    flow.bytes += bytes.size();
  }
  if (tap_ != nullptr) tap_->on_sent(simulation_.now(), leg, frame);
}

}  // namespace uet::fabric
