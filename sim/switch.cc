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

Switch::Switch(World& world, const WireModel& model, std::string name, std::uint32_t hosts)
    : world_(world),
      model_(model),
      name_(std::move(name)),
      salt_(world.rng.next_u64()),
      port_of_host_(hosts, kUp) {}

std::size_t Switch::add_port(const LinkConfig& config, FrameSink& to, std::string link_name) {
  UET_CHECK(links_.size() < kUp);
  links_.push_back(std::make_unique<Link>(world_, model_, config, to));
  links_.back()->name = std::move(link_name);
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

std::size_t Switch::uplink_of(std::uint64_t flow, std::uint16_t entropy) const {
  const std::uint64_t h = scramble(scramble(flow ^ salt_) + entropy);
  return first_uplink_ + static_cast<std::size_t>((h >> 32) * uplinks_ >> 32);
}

void Switch::on_frame(Frame* frame) {
  std::size_t port = port_of_host_[frame->destination];
  if (port == kUp) {
    if (uplinks_ == 0) {
      ++unroutable_;
      world_.frames.release(frame);
      return;
    }
    port = uplink_of(frame->flow, frame->rx.entropy);
  }
  links_[port]->send(frame);
}

}  // namespace uet::sim
