#include "sim/switch.h"

#include <algorithm>
#include <utility>

#include "lib/base/check.h"

namespace uet::sim {

namespace {
/// Spreads every input bit over the whole result (the finaliser of murmur3).
constexpr std::uint64_t scramble(std::uint64_t x) {
  x = (x ^ (x >> 33)) * 0xff51afd7ed558ccdULL;
  x = (x ^ (x >> 33)) * 0xc4ceb9fe1a85ec53ULL;
  return x ^ (x >> 33);
}
}  // namespace

Switch::Switch(Simulation& simulation, const WireModel& model, std::string name,
               std::uint32_t hosts)
    : simulation_(simulation),
      model_(model),
      name_(std::move(name)),
      salt_(simulation.rng.next_u64()),
      port_of_host_(hosts, kUp) {}

std::size_t Switch::add_port(const LinkConfig& config, FrameSink& to, std::string link_name,
                             const Switch* next) {
  UET_CHECK(links_.size() < kUp);
  links_.push_back(std::make_unique<Link>(simulation_, model_, config, to));
  links_.back()->name = std::move(link_name);
  next_.push_back(next);
  return links_.size() - 1;
}

void Switch::route_hosts(HostId first, std::uint32_t count, std::size_t port) {
  for (HostId h = first; h < first + count && h < port_of_host_.size(); ++h) {
    port_of_host_[h] = static_cast<std::uint16_t>(port);
  }
}

void Switch::set_uplinks(std::size_t first_port, std::size_t count) {
  first_uplink_ = first_port;
  uplinks_ = count;
}

std::uint64_t Switch::hash(std::uint64_t flow, std::uint16_t entropy) const {
  return scramble(scramble(flow ^ salt_) + entropy) >> 32;
}

std::size_t Switch::uplink_of(std::uint64_t flow, std::uint16_t entropy) const {
  return first_uplink_ + static_cast<std::size_t>(hash(flow, entropy) * uplinks_ >> 32);
}

bool Switch::reaches(HostId host) const {
  const auto works = [&](std::size_t port) {
    return next_[port] == nullptr || (links_[port]->is_up() && next_[port]->reaches(host));
  };
  if (const std::uint16_t down = port_of_host_[host]; down != kUp) return works(down);
  for (std::size_t port = first_uplink_; port < first_uplink_ + uplinks_; ++port) {
    if (works(port)) return true;
  }
  return false;
}

Switch::Uplinks Switch::uplinks_to(HostId host) const {
  Uplinks some;
  for (std::size_t port = first_uplink_; port < first_uplink_ + uplinks_; ++port) {
    if (links_[port]->is_up() && next_[port]->reaches(host)) {
      some.push_back(static_cast<std::uint16_t>(port));
    }
  }
  if (some.empty()) {
    for (std::size_t port = first_uplink_; port < first_uplink_ + uplinks_; ++port) {
      some.push_back(static_cast<std::uint16_t>(port));
    }
  }
  return some;
}

void Switch::repair_routes() {
  repaired_.clear();
  repaired_of_host_.assign(port_of_host_.size(), 0);
  bool is_whole = true;
  for (HostId h = 0; h < port_of_host_.size(); ++h) {
    if (port_of_host_[h] != kUp) continue;
    Uplinks some = uplinks_to(h);
    is_whole = is_whole && some.size() == uplinks_;
    const auto same = std::find(repaired_.begin(), repaired_.end(), some);
    repaired_of_host_[h] = static_cast<std::uint16_t>(same - repaired_.begin());
    if (same == repaired_.end()) repaired_.push_back(std::move(some));
  }
  if (is_whole) repaired_.clear();
}

void Switch::on_frame(Frame* frame) {
  std::size_t port = port_of_host_[frame->destination];
  if (port == kUp) {
    UET_CHECK(uplinks_ > 0);  // the topology has a way to every host
    if (repaired_.empty()) {
      port = uplink_of(frame->flow, frame->rx.entropy);
    } else {
      const Uplinks& some = repaired_[repaired_of_host_[frame->destination]];
      port = some[hash(frame->flow, frame->rx.entropy) * some.size() >> 32];
    }
  }
  links_[port]->send(frame);
}

}  // namespace uet::sim
