#include "apps/fabric/leaf_spine.h"

#include <fmt/format.h>

#include <algorithm>

namespace uet::fabric {

namespace {

constexpr std::int64_t kPacketsMin = 3;

sim::SimSpan span_of(base::Duration d) {
  return sim::SimSpan::from(d);
}

}  // namespace

LeafSpine::LeafSpine(sim::Simulation& simulation, const sim::WireModel& model,
                     const Scenario& scenario, const std::vector<sim::FrameSink*>& hosts)
    : simulation_(simulation), model_(model), scenario_(scenario) {
  const auto legs = static_cast<std::uint32_t>(hosts.size());
  for (std::size_t i = 0; i < scenario.leaves; ++i)
    leaves_.push_back(
        std::make_unique<sim::Switch>(simulation, model, fmt::format("leaf{}", i), legs));
  for (std::size_t i = 0; i < (scenario.leaves > 1 ? scenario.spines : 0); ++i)
    spines_.push_back(
        std::make_unique<sim::Switch>(simulation, model, fmt::format("spine{}", i), legs));
  for (std::size_t leg = 0; leg < hosts.size(); ++leg) connect_leg(leg, *hosts[leg]);
  for (auto& leaf : leaves_) {
    const std::size_t first_up = leaf->ports();
    for (auto& spine : spines_) connect(*leaf, *spine);
    leaf->set_uplinks(first_up, spines_.size());
  }
  for (auto& spine : spines_) {
    for (auto& leaf : leaves_) {
      const std::size_t down = connect(*spine, *leaf);
      for (std::uint32_t leg = 0; leg < legs; ++leg)
        if (leaves_[scenario.legs[leg].leaf].get() == leaf.get()) spine->route_hosts(leg, 1, down);
    }
  }
}

sim::QueueConfig LeafSpine::switch_queue(base::BitRate rate, bool last_hop) const {
  const auto bytes = [](std::uint64_t n) { return static_cast<std::int64_t>(n); };
  const auto frame = bytes(scenario_.max_frame);
  sim::QueueConfig q;
  q.data_limit_bytes = bytes(scenario_.queue);
  if (q.data_limit_bytes == 0)
    q.data_limit_bytes =
        std::max(rate.bytes_in(scenario_.idle_rtt()) * (scenario_.trimming ? 1 : 5), 16 * frame);
  q.control_limit_bytes = std::max(2 * q.data_limit_bytes, 8 * frame);
  q.trimming = scenario_.trimming;
  q.marking = scenario_.marking;
  q.ecn_low_bytes = scenario_.ecn_low != 0 ? bytes(scenario_.ecn_low) : q.data_limit_bytes / 5;
  q.ecn_high_bytes =
      scenario_.ecn_high != 0 ? bytes(scenario_.ecn_high) : q.data_limit_bytes / 5 * 4;
  q.last_hop = last_hop;
  return q;
}

void LeafSpine::connect_leg(std::size_t leg, sim::FrameSink& host) {
  const LegConfig& config = scenario_.legs[leg];
  const base::BitRate rate = config.rate.bps() != 0 ? config.rate : scenario_.host_rate;
  sim::Switch& leaf = *leaves_[config.leaf];
  // What a host has queued for its own transmitter is bounded where frames are taken from it.
  const sim::LinkConfig up{rate, span_of(scenario_.delay), sim::QueueConfig{}};
  uplinks_.push_back(std::make_unique<sim::Link>(simulation_, model_, up, leaf));
  uplinks_.back()->name = config.name + '>' + leaf.name();
  links_.push_back(uplinks_.back().get());
  const sim::LinkConfig down{rate, span_of(scenario_.delay), switch_queue(rate, true)};
  const std::size_t port = leaf.add_port(down, host, leaf.name() + '>' + config.name);
  leaf.route_hosts(static_cast<sim::HostId>(leg), 1, port);
  downlinks_.push_back(&leaf.link(port));
  links_.push_back(&leaf.link(port));
}

std::size_t LeafSpine::connect(sim::Switch& from, sim::Switch& to) {
  const sim::LinkConfig config{scenario_.rate, span_of(scenario_.delay),
                               switch_queue(scenario_.rate, false)};
  const std::size_t port = from.add_port(config, to, from.name() + '>' + to.name());
  links_.push_back(&from.link(port));
  return port;
}

std::vector<sim::Link*> LeafSpine::find(std::string_view name) const {
  if (name == "all") return links_;
  const std::size_t cut = name.find_first_of(">-");
  const std::string_view left = name.substr(0, cut);
  const std::string_view right = cut == std::string_view::npos ? "" : name.substr(cut + 1);
  const bool is_cable = cut != std::string_view::npos && name[cut] == '-';
  std::vector<sim::Link*> found;
  for (sim::Link* link : links_) {
    const std::string_view whole = link->name;
    const std::string_view from = whole.substr(0, whole.find('>'));
    const std::string_view to = whole.substr(whole.find('>') + 1);
    const bool matches =
        cut == std::string_view::npos
            ? from == left || to == left
            : (from == left && to == right) || (is_cable && from == right && to == left);
    if (matches) found.push_back(link);
  }
  return found;
}

std::vector<sim::Link*> LeafSpine::path(std::size_t spine) const {
  return find(spines_[spine]->name());
}

void LeafSpine::change_queues(bool sim::QueueConfig::*member, bool on) {
  for (sim::Link* link : links_) {
    // The queue of a host is not a switch's.
    const bool is_host =
        std::ranges::any_of(uplinks_, [&](const auto& u) { return u.get() == link; });
    if (is_host) continue;
    sim::QueueConfig queue = link->config().queue;
    queue.*member = on;
    const double factor = link->speed_factor();
    link->set_queue(queue);
    set_speed(*link, factor);
  }
}

std::size_t LeafSpine::spine_of(std::size_t leg, std::uint64_t flow, std::uint16_t entropy) const {
  const sim::Switch& leaf = *leaves_[scenario_.legs[leg].leaf];
  // Ports of a leaf: its legs, then its spines.
  const std::size_t first_up = leaf.ports() - spines_.size();
  return leaf.uplink_of(flow, entropy) - first_up;
}

void LeafSpine::set_trimming(bool on) {
  change_queues(&sim::QueueConfig::trimming, on);
}

void LeafSpine::set_marking(bool on) {
  change_queues(&sim::QueueConfig::marking, on);
}

void LeafSpine::set_speed(sim::Link& link, double factor) {
  link.set_speed_factor(factor, kPacketsMin * static_cast<std::int64_t>(scenario_.max_frame));
}

}  // namespace uet::fabric
