#include "lib/net/plane_port.h"

#include <algorithm>

#include "lib/net/full_device.h"

namespace uet::net {

using base::DropReason;
using base::Duration;
using base::Instant;

namespace {

/// Asking for a link may cost a system call; what is sent into a dead one meanwhile is sent again.
constexpr Duration kLookInterval = Duration::from_ms(5);
/// A device that takes nothing for so long, while another one works, leads nowhere. Longer than a peer on a crowded machine
/// is away, which stops all planes at once anyway.
constexpr Duration kStuckAfter = Duration::from_ms(100);

PortFacts facts_of(const PortFacts& first, std::size_t planes) {
  PortFacts facts = first;
  facts.planes = static_cast<std::uint8_t>(planes);
  return facts;
}

}  // namespace

PlanePort::PlanePort(std::vector<std::unique_ptr<Port>> planes, base::Trace& trace)
    : trace_(trace),
      lanes_(planes.size()),
      facts_(facts_of(planes.front()->facts(), planes.size())) {
  UET_CHECK(planes.size() >= 2 && planes.size() <= kMaxPlanes);
  for (std::size_t i = 0; i < planes.size(); ++i) {
    lanes_[i].port = std::move(planes[i]);
    const PortFacts& facts = lanes_[i].port->facts();
    UET_CHECK(facts.address == facts_.address);
    UET_CHECK(facts.udp_encapsulation == facts_.udp_encapsulation);
    if (i == 0) continue;
    facts_.name += "+" + facts.name;
    facts_.path_mtu_max = std::min(largest_ip_packet(facts_), largest_ip_packet(facts));
    facts_.ip_mtu = std::min(facts_.ip_mtu, facts.ip_mtu);
    facts_.receive_bytes = std::min(facts_.receive_bytes, facts.receive_bytes);
    facts_.run_packets = std::min(facts_.run_packets, facts.run_packets);
    facts_.reports_tos = facts_.reports_tos && facts.reports_tos;
    const bool is_known = facts_.link_rate.bps() != 0 && facts.link_rate.bps() != 0;
    facts_.link_rate =
        base::BitRate::from_bps(is_known ? facts_.link_rate.bps() + facts.link_rate.bps() : 0);
  }
}

PlanePort::~PlanePort() {
  // The pool goes with the first port: what the others still hold must be back before.
  while (!lanes_.empty()) lanes_.pop_back();
}

// --- Receiving

/// Every plane in turn comes first, so that one that is flooded cannot starve the others.
std::size_t PlanePort::receive(Instant now, std::span<RxPacket> out) {
  turn_ = (turn_ + 1) % lanes_.size();
  std::size_t n = 0;
  for (std::size_t step = 0; step < lanes_.size() && n < out.size(); ++step) {
    const std::size_t p = (turn_ + step) % lanes_.size();
    const std::size_t got = lanes_[p].port->receive(now, out.subspan(n));
    for (std::size_t i = 0; i < got; ++i) out[n + i].plane = static_cast<std::uint8_t>(p);
    lanes_[p].counters.received += got;
    n += got;
  }
  return n;
}

// --- Sending

std::size_t PlanePort::send(Instant now, std::span<TxPacket> in) {
  std::size_t n = 0;
  for (; n < in.size(); ++n) {
    Lane& lane = lanes_[in[n].plane < lanes_.size() ? in[n].plane : 0];
    if (!push(now, lane, in[n])) break;
  }
  flush_all(now);
  return n;
}

/// False: too much waits for this plane.
bool PlanePort::push(Instant now, Lane& lane, TxPacket& packet) {
  if (lane.last == kWaiting) return false;
  if (lane.count() == 0) lane.stuck_since = now;
  lane.waiting[lane.last++] = std::move(packet);
  return true;
}

void PlanePort::flush_all(Instant now) {
  retry_at_ = Instant::never();
  for (Lane& lane : lanes_)
    if (lane.count() != 0) flush(now, lane);
}

void PlanePort::flush(Instant now, Lane& lane) {
  if (!lane.has_link) return drop_waiting(now, lane);
  const std::size_t taken =
      lane.port->send(now, std::span(lane.waiting).subspan(lane.first, lane.count()));
  lane.counters.sent += taken;
  lane.first += taken;
  if (taken != 0) lane.taken_at = lane.stuck_since = now;
  for (std::size_t i = lane.first; i < lane.last; ++i) lane.waiting[i].packet.keep_borrowed();
  if (lane.first == lane.last)
    lane.first = lane.last = 0;
  else
    retry_at_ = now + kFullDeviceRetry;
}

void PlanePort::drop_waiting(Instant now, Lane& lane) {
  for (; lane.first < lane.last; ++lane.first, ++lane.counters.dropped) {
    TxPacket& tx = lane.waiting[lane.first];
    trace_.drop(now, DropReason::kLinkDown, tx.packet.full_size());
    tx.packet.reset();
  }
  lane.first = lane.last = 0;
}

std::size_t PlanePort::plane_room(Instant now, unsigned plane) const {
  const Lane& lane = lanes_[plane];
  return lane.count() != 0 ? 0 : std::min(kWaiting, lane.port->send_room(now));
}

std::size_t PlanePort::send_room(Instant now) const {
  std::size_t room = 0;
  for (unsigned p = 0; p < lanes_.size(); ++p)
    if (lanes_[p].is_up()) room += plane_room(now, p);
  return room;
}

// --- Links

std::uint8_t PlanePort::planes_up(Instant now) {
  if (now >= next_look_) {
    next_look_ = now + kLookInterval;
    look_at_links(now);
  }
  unsigned up = 0;
  for (std::size_t p = 0; p < lanes_.size(); ++p) up |= (lanes_[p].is_up() ? 1u : 0u) << p;
  return static_cast<std::uint8_t>(up);
}

void PlanePort::look_at_links(Instant now) {
  for (Lane& lane : lanes_) {
    const bool was_up = lane.is_up();
    lane.has_link = (lane.port->planes_up(now) & 1) != 0;
    lane.refuses = lane.has_link && is_stuck(now, lane);
    if (!was_up || lane.is_up()) continue;
    ++lane.counters.times_down;
    if (!lane.has_link) drop_waiting(now, lane);
  }
}

/// What waits goes on being offered: when it is taken the plane is in use again.
bool PlanePort::is_stuck(Instant now, const Lane& lane) const {
  if (lane.count() == 0 || now - lane.stuck_since < kStuckAfter) return false;
  return std::any_of(lanes_.begin(), lanes_.end(), [&](const Lane& other) {
    return other.has_link && other.taken_at > lane.stuck_since + kStuckAfter / 2;
  });
}

Way PlanePort::way_to(Instant now, const FabricAddress& destination) {
  Way way{.ip_mtu = largest_ip_packet(facts_)};
  for (Lane& lane : lanes_)
    way.ip_mtu = std::min(way.ip_mtu, lane.port->way_to(now, destination).ip_mtu);
  return way;
}

PlaneCounters PlanePort::plane_counters(unsigned plane) const {
  const Lane& lane = lanes_[plane];
  PlaneCounters out = lane.counters;
  out.is_up = lane.is_up();
  out.waiting = lane.count();
  return out;
}

// --- Time and sleep

Instant PlanePort::next_deadline() const {
  Instant next = retry_at_;
  for (const Lane& lane : lanes_) next = std::min(next, lane.port->next_deadline());
  return next;
}

void PlanePort::on_deadline(Instant now) {
  for (Lane& lane : lanes_)
    if (lane.port->next_deadline() <= now) lane.port->on_deadline(now);
  if (retry_at_ <= now) flush_all(now);
}

bool PlanePort::arm_wakeup() {
  bool may_sleep = true;
  for (Lane& lane : lanes_) may_sleep = lane.port->arm_wakeup() && may_sleep;
  return may_sleep;
}

std::vector<int> PlanePort::wakeup_fds() const {
  std::vector<int> fds;
  for (const Lane& lane : lanes_) {
    if (lane.port->wakeup_fd() < 0) return {};
    fds.push_back(lane.port->wakeup_fd());
  }
  return fds;
}

}  // namespace uet::net
