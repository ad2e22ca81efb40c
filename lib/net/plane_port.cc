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
      members_(planes.size()),
      facts_(facts_of(planes.front()->facts(), planes.size())) {
  UET_CHECK(planes.size() >= 2 && planes.size() <= kMaxPlanes);
  for (std::size_t i = 0; i < planes.size(); ++i) {
    members_[i].port = std::move(planes[i]);
    const PortFacts& facts = members_[i].port->facts();
    UET_CHECK(facts.address == facts_.address);
    UET_CHECK(facts.udp_encapsulation == facts_.udp_encapsulation);
    if (i == 0) continue;
    facts_.name += "+" + facts.name;
    facts_.path_mtu_max = std::min(largest_ip_packet(facts_), largest_ip_packet(facts));
    facts_.ip_mtu = std::min(facts_.ip_mtu, facts.ip_mtu);
    facts_.receive_bytes = std::min(facts_.receive_bytes, facts.receive_bytes);
    facts_.run_packets = std::min(facts_.run_packets, facts.run_packets);
    facts_.reports_tos = facts_.reports_tos && facts.reports_tos;
  }
  facts_.link_rate = sum_of_rates();
}

PlanePort::~PlanePort() {
  // The pool goes with the first port: what the others still hold must be back before.
  while (!members_.empty()) members_.pop_back();
}

/// A plane that does not tell its rate, for want of a link perhaps, counts as the slowest of those that do.
base::BitRate PlanePort::sum_of_rates() const {
  std::uint64_t sum = 0, slowest = 0, untold = 0;
  for (const Member& member : members_) {
    const std::uint64_t bps = member.port->facts().link_rate.bps();
    sum += bps;
    if (bps == 0)
      ++untold;
    else
      slowest = slowest == 0 ? bps : std::min(slowest, bps);
  }
  return base::BitRate::from_bps(sum + untold * slowest);
}

// --- Receiving

/// Every plane in turn comes first, so that one that is flooded cannot starve the others.
std::size_t PlanePort::receive(Instant now, std::span<RxPacket> out) {
  turn_ = (turn_ + 1) % members_.size();
  std::size_t n = 0;
  for (std::size_t step = 0; step < members_.size() && n < out.size(); ++step) {
    const std::size_t p = (turn_ + step) % members_.size();
    const std::size_t got = members_[p].port->receive(now, out.subspan(n));
    for (std::size_t i = 0; i < got; ++i) out[n + i].plane = static_cast<std::uint8_t>(p);
    members_[p].counters.received += got;
    n += got;
  }
  return n;
}

// --- Sending

std::size_t PlanePort::send(Instant now, std::span<TxPacket> in) {
  std::size_t n = 0;
  for (; n < in.size(); ++n) {
    Member& member = members_[in[n].plane < members_.size() ? in[n].plane : 0];
    if (!push(now, member, in[n])) break;
  }
  flush_all(now);
  return n;
}

/// False: too much waits for this plane.
bool PlanePort::push(Instant now, Member& member, TxPacket& packet) {
  if (member.last == kWaiting) return false;
  if (member.count() == 0) member.stuck_since = now;
  member.waiting[member.last++] = std::move(packet);
  return true;
}

void PlanePort::flush_all(Instant now) {
  retry_at_ = Instant::never();
  for (Member& member : members_)
    if (member.count() != 0) flush(now, member);
}

void PlanePort::flush(Instant now, Member& member) {
  if (!member.has_link) return drop_waiting(now, member);
  const std::size_t taken =
      member.port->send(now, std::span(member.waiting).subspan(member.first, member.count()));
  member.counters.sent += taken;
  member.first += taken;
  if (taken != 0) member.taken_at = member.stuck_since = now;
  for (std::size_t i = member.first; i < member.last; ++i) member.waiting[i].packet.keep_borrowed();
  if (member.first == member.last)
    member.first = member.last = 0;
  else
    retry_at_ = now + kFullDeviceRetry;
}

void PlanePort::drop_waiting(Instant now, Member& member) {
  for (; member.first < member.last; ++member.first, ++member.counters.dropped) {
    TxPacket& tx = member.waiting[member.first];
    trace_.drop(now, DropReason::kLinkDown, tx.packet.full_size());
    tx.packet.reset();
  }
  member.first = member.last = 0;
}

std::size_t PlanePort::plane_room(Instant now, unsigned plane) const {
  const Member& member = members_[plane];
  return member.count() != 0 ? 0 : std::min(kWaiting, member.port->send_room(now));
}

std::size_t PlanePort::send_room(Instant now) const {
  std::size_t room = 0;
  for (unsigned p = 0; p < members_.size(); ++p)
    if (members_[p].is_up()) room += plane_room(now, p);
  return room;
}

// --- Links

std::uint8_t PlanePort::planes_up(Instant now) {
  if (now >= next_look_) {
    next_look_ = now + kLookInterval;
    look_at_links(now);
  }
  unsigned up = 0;
  for (std::size_t p = 0; p < members_.size(); ++p) up |= (members_[p].is_up() ? 1u : 0u) << p;
  return static_cast<std::uint8_t>(up);
}

void PlanePort::look_at_links(Instant now) {
  for (Member& member : members_) {
    const bool was_up = member.is_up();
    member.has_link = (member.port->planes_up(now) & 1) != 0;
    member.refuses = member.has_link && is_stuck(now, member);
    if (!was_up || member.is_up()) continue;
    ++member.counters.times_down;
    if (!member.has_link) drop_waiting(now, member);
  }
}

/// What waits goes on being offered: when it is taken the plane is in use again.
bool PlanePort::is_stuck(Instant now, const Member& member) const {
  if (member.count() == 0 || now - member.stuck_since < kStuckAfter) return false;
  return std::any_of(members_.begin(), members_.end(), [&](const Member& other) {
    return other.has_link && other.taken_at > member.stuck_since + kStuckAfter / 2;
  });
}

Way PlanePort::way_to(Instant now, const FabricAddress& destination) {
  Way way{.ip_mtu = largest_ip_packet(facts_)};
  for (Member& member : members_)
    way.ip_mtu = std::min(way.ip_mtu, member.port->way_to(now, destination).ip_mtu);
  return way;
}

PlaneCounters PlanePort::plane_counters(unsigned plane) const {
  const Member& member = members_[plane];
  PlaneCounters out = member.counters;
  out.is_up = member.is_up();
  out.waiting = member.count();
  return out;
}

SendFailure PlanePort::last_send_failure() const {
  SendFailure last;
  for (const Member& member : members_) {
    const SendFailure failure = member.port->last_send_failure();
    if (!failure.destination.is_unspecified() &&
        (last.destination.is_unspecified() || failure.at > last.at))
      last = failure;
  }
  return last;
}

// --- Time and sleep

Instant PlanePort::next_deadline() const {
  Instant next = retry_at_;
  for (const Member& member : members_) next = std::min(next, member.port->next_deadline());
  return next;
}

void PlanePort::on_deadline(Instant now) {
  for (Member& member : members_)
    if (member.port->next_deadline() <= now) member.port->on_deadline(now);
  if (retry_at_ <= now) flush_all(now);
}

bool PlanePort::arm_wakeup() {
  bool may_sleep = true;
  for (Member& member : members_) may_sleep = member.port->arm_wakeup() && may_sleep;
  return may_sleep;
}

std::vector<int> PlanePort::wakeup_fds() const {
  std::vector<int> fds;
  for (const Member& member : members_) {
    if (member.port->wakeup_fd() < 0) return {};
    fds.push_back(member.port->wakeup_fd());
  }
  return fds;
}

}  // namespace uet::net
