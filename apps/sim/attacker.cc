#include "apps/sim/attacker.h"

#include <algorithm>
#include <array>
#include <utility>

#include "lib/wire/codec.h"
#include "lib/wire/uet_crc.h"

namespace uet::sim {

using base::Duration;
using base::Psn;
using wire::ControlType;
using wire::NackCode;
using wire::PdsType;
using wire::SesOpcode;

namespace {

constexpr std::size_t kMaxTalks = 4096;
constexpr std::size_t kMaxOutgoing = 2048;
constexpr std::size_t kReplayable = 32;
constexpr std::uint32_t kGhosts = 4096;  // addresses that no host has
constexpr HostId kFirstGhost = 0x10000;
constexpr std::uint32_t kAnswers = 400;  // per conversation
constexpr std::uint32_t kWindow = 1024;  // PSNs that a target takes from one PDC at most
constexpr std::uint8_t kDscpControl = 46, kDscpTrimmed = 26;

}  // namespace

Attacker::Attacker(Simulation& simulation, SimPort& port, const AttackPlan& plan,
                   std::uint32_t number, std::uint32_t payload_mtu,
                   std::span<const std::unique_ptr<Wiretap>> taps, std::uint64_t seed)
    : simulation_(simulation),
      port_(port),
      node_(simulation, port),
      plan_(plan),
      mtu_(payload_mtu),
      taps_(taps),
      rng_(seed),
      numbers_(seed ^ 0x6e756d62'65727300ULL),
      rendezvous_(seed ^ 0x72656e64'65727300ULL),
      packets_(rng_, payload_mtu) {
  for (const AttackEpisode& e : plan.episodes)
    if (e.attacker == number) episodes_.push_back({&e, base::Rng(e.seed), e.at, e.packets, {}, 0});
  node_.set_actor(this);
}

Attacker::~Attacker() {
  node_.set_actor(nullptr);
}

// --- The loop -------------------------------------------------------------------------------------

bool Attacker::turn(base::Instant now) {
  bool did = false;
  std::array<net::RxPacket, 16> burst;
  for (std::size_t n; (n = port_.receive(now, burst)) > 0; did = true) {
    for (std::size_t i = 0; i < n; ++i) {
      if (!is_silent_) learn(burst[i]);
      burst[i].packet.reset();
    }
  }
  if (!is_silent_ && simulation_.now() >= plan_.end) {
    is_silent_ = true;
    outgoing_.clear();
  }
  if (is_silent_) return did;
  for (Running& e : episodes_) {
    if (e.left == 0 || e.next_at > simulation_.now()) continue;
    if (outgoing_.size() < kMaxOutgoing) step(e);
    const auto gap =
        static_cast<std::int64_t>(2.0 * e.rng.unit() * static_cast<double>(e.plan->gap.ps()));
    e.next_at = simulation_.now() + SimSpan::from_ps(gap + 1000);
    did = true;
  }
  return flush() || did;
}

base::Instant Attacker::next_deadline() const {
  if (is_silent_) return base::Instant::never();
  SimTime next = plan_.end;
  for (const Running& e : episodes_)
    if (e.left > 0) next = std::min(next, e.next_at);
  return next.instant() + Duration::from_ns(1);
}

bool Attacker::flush() {
  bool did = false;
  while (!outgoing_.empty() && launch(outgoing_.front())) {
    outgoing_.pop_front();
    did = true;
  }
  return did;
}

/// With a right CRC. False when the link is busy.
bool Attacker::launch(Outgoing& o) {
  if (port_.send_room(node_.now()) == 0) return false;
  net::TxPacket tx;
  tx.packet = simulation_.packets_pool.allocate();
  if (!tx.packet) return true;  // lost; the pool is shared by all frames and large
  tx.destination = address_of(o.to);
  tx.entropy = static_cast<std::uint16_t>(o.from.v4() * 7 + o.to);
  tx.tos = o.tos;
  std::copy(o.bytes.begin(), o.bytes.end(), tx.packet.append(o.bytes.size()));
  const net::PortFacts& facts = port_.facts();
  constexpr std::size_t kCrcBytes = 4, kUdpHeader = 8;
  const std::uint32_t crc = wire::uet_crc(
      {.source = o.from.bytes(),
       .destination = tx.destination.bytes(),
       .is_v4 = true,
       .is_udp = facts.udp_encapsulation,
       .entropy = tx.entropy,
       .udp_destination_port = facts.udp_port,
       .udp_length = static_cast<std::uint16_t>(kUdpHeader + o.bytes.size() + kCrcBytes)},
      o.bytes);
  base::store_be(tx.packet.append(kCrcBytes), crc);
  return port_.send_forged(o.from, tx);
}

void Attacker::send(HostId to, net::FabricAddress from, AttackBytes bytes, bool trimmed) {
  constexpr std::size_t kCrcBytes = 4;
  if (bytes.size() + kCrcBytes > simulation_.packets_pool.max_packet_bytes()) return;
  if (outgoing_.size() >= 2 * kMaxOutgoing) return;
  outgoing_.push_back(
      {std::move(bytes), from, to, net::TosByte::of(trimmed ? kDscpTrimmed : kDscpControl, 1)});
  ++packets_sent_;
}

void Attacker::say(const Conversation& c, AttackBytes bytes) {
  send(c.victim, c.as, std::move(bytes));
}

net::FabricAddress Attacker::ghost(base::Rng& rng) const {
  return address_of(kFirstGhost + rng.below(kGhosts));
}

// --- What the victims say -------------------------------------------------------------------------

void Attacker::learn(const net::RxPacket& rx) {
  constexpr std::size_t kCrcBytes = 4;
  const auto all = rx.packet.bytes();
  if (all.size() < wire::PdsRequest::kSize + kCrcBytes) return;
  const auto bytes = all.first(all.size() - kCrcBytes);
  const HostId victim = host_of(rx.source);
  if (received_.size() == kReplayable) received_.pop_front();
  received_.emplace_back(victim, AttackBytes(bytes.begin(), bytes.end()));
  const auto type = static_cast<PdsType>(bytes[0] >> 3);
  switch (type) {
    case PdsType::kRudReq:
    case PdsType::kRodReq:
    case PdsType::kRudCcReq:
    case PdsType::kRodCcReq: {
      const bool is_rod = type == PdsType::kRodReq || type == PdsType::kRodCcReq;
      const auto syn = wire::decode<wire::PdsRequestSyn>(bytes.data());
      const auto r = wire::decode<wire::PdsRequest>(bytes.data());
      if (r.syn) return on_opened_by(victim, is_rod, r.spdcid, r.psn - syn.psn_offset);
      if (Talk* t = find_talk(victim, r.dpdcid)) {
        t->c.peer_id = r.spdcid;
        t->c.note_peer_psn(r.psn);
        answer(*t, type, r.psn, rx);
      }
      return;
    }
    case PdsType::kControl: {
      const auto r = wire::decode<wire::PdsControl>(bytes.data());
      if (r.syn) return on_opened_by(victim, r.isrod, r.spdcid, r.psn);
      if (Talk* t = find_talk(victim, r.dpdcid)) {
        t->c.peer_id = r.spdcid;
        if (r.ctl_type == ControlType::kCloseRequest || r.ctl_type == ControlType::kCloseCommand ||
            r.ctl_type == ControlType::kNoop || r.ctl_type == ControlType::kAckRequest)
          t->c.note_peer_psn(r.psn);
        answer(*t, type, r.psn, rx);
      }
      return;
    }
    case PdsType::kAck:
    case PdsType::kAckCc:
    case PdsType::kAckCcx: {
      const auto a = wire::decode<wire::PdsAck>(bytes.data());
      Talk* t = find_talk(victim, a.dpdcid);
      if (t == nullptr) return;
      if (a.spdcid != 0) t->c.peer_id = a.spdcid;
      if (a.req == wire::AckReq::kClear && t->manners.clears > 0 && rng_.chance(t->manners.clears))
        say(t->c,
            packets_.control(t->c, ControlType::kClearCommand, a.cack_psn, a.cack_psn.value()));
      return;
    }
    case PdsType::kNack: {
      const auto n = wire::decode<wire::PdsNack>(bytes.data());
      Talk* t = find_talk(victim, n.dpdcid);
      if (t != nullptr && n.spdcid != 0) t->c.peer_id = n.spdcid;
      return;
    }
    default:
      return;
  }
}

/// An endpoint that was asked to send something to us has opened a PDC, or asks again.
void Attacker::on_opened_by(HostId victim, bool is_rod, std::uint16_t peer_id, Psn start) {
  if (!plan_.answers) return;
  for (Talk& t : talks_) {
    if (!t.c.is_target || t.c.victim != victim || t.c.peer_id != peer_id || t.c.start != start)
      continue;
    t.c.note_peer_psn(t.c.has_heard ? t.c.newest + 1 : start);
    if (t.answers_left == 0 || t.manners.acks == 0) return;
    --t.answers_left;
    say(t.c, packets_.honest_ack(t.c, t.c.newest));
    return;
  }
  Talk& t = talks_[open_talk(rng_, victim, port_.facts().address)];
  t.c.is_target = true;
  t.c.is_rod = is_rod;
  t.c.peer_id = peer_id;
  t.c.start = t.c.next = start;
  t.c.note_peer_psn(start);
  t.manners.acks = std::max(t.manners.acks, rng_.chance(0.7) ? 0.9 : 0.0);
  answer(t, is_rod ? PdsType::kRodReq : PdsType::kRudReq, start, {});
}

void Attacker::answer(Talk& t, PdsType type, Psn psn, const net::RxPacket& rx) {
  if (t.answers_left == 0) return;
  --t.answers_left;
  if (type == PdsType::kControl) {
    const auto r = wire::decode<wire::PdsControl>(std::as_const(rx.packet).data());
    if (r.ctl_type == ControlType::kCloseRequest && rng_.chance(t.manners.closes))
      say(t.c, packets_.control(t.c, ControlType::kCloseCommand, t.c.next, 0));
    if (r.ctl_type == ControlType::kClearRequest && rng_.chance(t.manners.clears))
      say(t.c, packets_.control(t.c, ControlType::kClearCommand, r.psn, r.payload));
  }
  if (rng_.chance(t.manners.acks)) say(t.c, packets_.honest_ack(t.c, psn));
  if (!rng_.chance(t.manners.attacks)) return;
  if (t.manners.has_favourite && rng_.chance(0.8)) {
    const std::uint32_t payload =
        rng_.chance(0.7) ? psn.value() : packets_.any_peer_psn(t.c).value();
    say(t.c, packets_.nack(t.c, t.manners.favourite, psn, payload));
    return;
  }
  if (rng_.chance(0.3)) {
    const MessagePiece read = packets_.good_read(17 + rng_.below(mtu_));
    say(t.c, packets_.request(t.c, &read));
    return;
  }
  say(t.c, packets_.any(t.c));
}

Attacker::Talk* Attacker::find_talk(HostId victim, std::uint16_t own_id) {
  for (std::size_t i = talks_.size(); i-- > 0;)
    if (talks_[i].c.own_id == own_id && talks_[i].c.victim == victim &&
        talks_[i].c.as == port_.facts().address)
      return &talks_[i];
  return nullptr;
}

Attacker::Manners Attacker::any_manners(base::Rng& rng) {
  constexpr std::array kLevels = {0.0, 0.0, 0.5, 1.0};
  Manners m;
  m.acks = kLevels[rng.below(kLevels.size())];
  m.clears = kLevels[rng.below(kLevels.size())];
  m.closes = kLevels[rng.below(kLevels.size())];
  m.attacks = kLevels[rng.below(kLevels.size())];
  m.has_favourite = rng.chance(0.4);
  // Of all codes these make a sender go back, wait, send again or tear down.
  constexpr std::array kStrong = {NackCode::kRodOoo,       NackCode::kRodOoo,
                                  NackCode::kNoResource,   NackCode::kTrimmed,
                                  NackCode::kRcvdSesProcg, NackCode::kPsnOorWindow,
                                  NackCode::kPktNotRcvd,   NackCode::kAckWithData};
  m.favourite = rng.chance(0.6) ? kStrong[rng.below(kStrong.size())] : packets_.any_nack_code();
  m.is_patient = rng.chance(0.4);
  if (m.is_patient && rng.chance(0.7)) {
    m.acks = 0;
    m.attacks = 1;
  }
  return m;
}

std::size_t Attacker::open_talk(base::Rng& rng, HostId victim, net::FabricAddress as) {
  Talk t;
  t.c.victim = victim;
  t.c.as = as;
  t.c.is_rod = rng.chance(0.5);
  t.c.own_id = static_cast<std::uint16_t>(1 + rng.below(0xffff));
  t.c.start = t.c.next = Psn(rng.chance(0.2) ? 0u - rng.below(2000) : rng.next_u32());
  t.manners = any_manners(rng);
  t.answers_left = kAnswers;
  if (talks_.size() < kMaxTalks) {
    talks_.push_back(t);
    return talks_.size() - 1;
  }
  const std::size_t place = next_talk_++ % kMaxTalks;
  talks_[place] = t;
  return place;
}

// --- Episodes -------------------------------------------------------------------------------------

void Attacker::step(Running& e) {
  AttackPackets make(e.rng, mtu_, plan_.numbers ? &numbers_ : nullptr,
                     plan_.rendezvous ? &rendezvous_ : nullptr);
  --e.left;
  switch (e.plan->kind) {
    case AttackKind::kConverse:
    case AttackKind::kGarble:
      return converse(e, make);
    case AttackKind::kHalfOpen:
      return half_open(e, make);
    case AttackKind::kFloodRequests:
      return flood_requests(e, make);
    case AttackKind::kFloodReads:
      return flood_reads(e, make);
    case AttackKind::kFloodUnexpected:
      return flood_unexpected(e, make);
    case AttackKind::kPieces:
      return pieces(e, make);
    case AttackKind::kForge:
      return forge(e, make);
    case AttackKind::kReplay:
      return replay(e, make);
    case AttackKind::kCount:
      return;
  }
}

/// One of the `count` conversations of this episode, opened when it is first used.
Attacker::Talk& Attacker::talk_of(Running& e, std::uint32_t count, bool may_be_ghost) {
  const std::uint32_t which = e.rng.below(count);
  if (which >= e.talks.size()) {
    const bool as_ghost = may_be_ghost && (e.plan->seed & 1) != 0;
    e.talks.push_back(
        open_talk(e.rng, e.plan->victim, as_ghost ? ghost(e.rng) : port_.facts().address));
    return talks_[e.talks.back()];
  }
  return talks_[e.talks[which]];
}

void Attacker::converse(Running& e, AttackPackets& make) {
  Talk& t = talk_of(e, 1 + static_cast<std::uint32_t>(e.plan->seed >> 8) % 3, false);
  constexpr std::uint32_t kPatientWords = 3;
  if (t.manners.is_patient && t.said >= kPatientWords) return;
  ++t.said;
  AttackBytes packet;
  if (t.c.peer_id == 0 && e.rng.chance(0.8)) {
    const MessagePiece piece = make.any_piece();
    packet = make.opening(t.c, e.rng.chance(0.5) ? &piece : nullptr);
  } else {
    packet = make.any(t.c);
  }
  const bool is_garbled = e.plan->kind == AttackKind::kGarble && e.rng.chance(0.5);
  if (is_garbled) make.garble(packet);
  send(t.c.victim, t.c.as, std::move(packet), is_garbled && e.rng.chance(0.3));
}

void Attacker::half_open(Running& e, AttackPackets& make) {
  const bool as_ghost = (e.plan->seed & 1) != 0;
  Conversation c;
  c.victim = e.plan->victim;
  c.as = as_ghost ? ghost(e.rng) : port_.facts().address;
  c.is_rod = e.rng.chance(0.5);
  c.own_id = static_cast<std::uint16_t>(1 + e.rng.below(0xffff));
  c.start = c.next = Psn(e.rng.next_u32());
  if (e.rng.chance(0.3)) c.next = c.start + static_cast<std::int32_t>(e.rng.below(1100));
  const MessagePiece piece = make.any_piece();
  say(c, make.opening(c, e.rng.chance(0.3) ? &piece : nullptr));
}

/// Announces a header that is not there: refused for good, with an answer that must be kept until it is cleared.
void Attacker::flood_requests(Running& e, AttackPackets& make) {
  Talk& t = talk_of(e, 4, true);
  t.manners = {};
  if (t.c.next.distance_from(t.c.start) >= static_cast<std::int32_t>(kWindow)) t.c.next = t.c.start;
  wire::PdsRequestSyn h;
  h.type = t.c.is_rod ? PdsType::kRodReq : PdsType::kRudReq;
  h.next_hdr = wire::NextHdr::kRequestStd;
  h.clear_psn_offset = static_cast<std::int16_t>(t.c.start.distance_from(t.c.next) - 1);
  h.psn = t.c.next;
  h.spdcid = t.c.own_id;
  h.psn_offset = static_cast<std::uint16_t>(t.c.next.distance_from(t.c.start));
  AttackBytes out(wire::PdsRequestSyn::kSize);
  wire::emit(h, out.data());
  if (e.rng.chance(0.3)) {
    MessagePiece piece;
    piece.opcode = SesOpcode::kAtomic;
    append_piece(out, piece);
  }
  t.c.next = t.c.next + 1;
  (void)make;
  say(t.c, std::move(out));
}

/// A PDC of its own with one READ, whose data waits behind that of the others, and a Close Command a few packets later.
bool Attacker::visit(Running& e, AttackPackets& make) {
  constexpr std::uint32_t kTurn = 8, kComes = 3, kLeaves = 7;
  if (e.serial % kTurn == kComes) {
    e.visitor = open_talk(e.rng, e.plan->victim, port_.facts().address);
    Talk& t = talks_[e.visitor];
    t.manners = {};
    MessagePiece read = make.good_read(17 + e.rng.below(mtu_));
    read.message_id = static_cast<std::uint16_t>(e.serial);
    say(t.c, make.request(t.c, &read));
    return true;
  }
  if (e.serial % kTurn != kLeaves) return false;
  const Conversation& c = talks_[e.visitor].c;
  if (c.peer_id == 0) return false;
  say(c, make.control(c, ControlType::kCloseCommand, c.next, 0));
  return true;
}

void Attacker::flood_reads(Running& e, AttackPackets& make) {
  const bool has_visitors = (e.plan->seed >> 12 & 1) != 0 && (e.plan->seed >> 4) % 3 == 0;
  if (has_visitors && visit(e, make)) {
    ++e.serial;
    return;
  }
  Talk& t = talk_of(e, 4, (e.plan->seed & 2) != 0);
  t.manners.acks = t.manners.clears = 0;
  MessagePiece read = make.good_read(0);
  switch ((e.plan->seed >> 4) % 3) {
    case 0:  // the response data is never acknowledged
      read = make.good_read(17 + e.rng.below(static_cast<std::uint32_t>(Lure::kMemoryBytes) - 17));
      break;
    case 1:  // a message that begins and never goes on, of memory that does not exist
      read = make.good_read(mtu_ * 2 + e.rng.below(mtu_));
      read.key_or_tag = std::uint64_t{1} << 40 | e.rng.below(100);
      break;
    default:  // the same of memory that exists
      read = make.good_read(mtu_ * 2 + e.rng.below(mtu_));
      break;
  }
  read.message_id = static_cast<std::uint16_t>(++e.serial);
  say(t.c, make.request(t.c, &read));
}

void Attacker::flood_unexpected(Running& e, AttackPackets& make) {
  Talk& t = talk_of(e, 4, (e.plan->seed & 2) != 0);
  MessagePiece p;
  const bool of_honest_endpoint = (e.plan->seed & 4) != 0;
  p.job = of_honest_endpoint ? 1 : Lure::kJob;
  p.index = of_honest_endpoint ? 1 : Lure::kIndex;
  p.key_or_tag = std::uint64_t{1} << 40 | e.rng.next_u32();
  p.dc = (e.plan->seed & 8) != 0;
  p.message_id = static_cast<std::uint16_t>(++e.serial);
  const bool begins_only = e.rng.chance(0.5);
  p.total = begins_only ? mtu_ * (2 + e.rng.below(16)) : e.rng.below(mtu_);
  p.eom = !begins_only;
  p.bytes = p.carried = std::min(mtu_, p.total);
  say(t.c, make.request(t.c, &p));
}

/// Messages of two or more packets, of which some come twice under two PSNs and others never.
void Attacker::pieces(Running& e, AttackPackets& make) {
  Talk& t = talk_of(e, 2, false);
  t.manners.clears = 1;
  const bool is_tiny = (e.plan->seed & 2) != 0;  // only last packets of one byte
  const bool is_awaited = (e.plan->seed & 4) != 0;
  const std::uint32_t count = 2 + static_cast<std::uint32_t>(e.plan->seed >> 8) % 3;
  MessagePiece p;
  p.opcode = is_awaited ? SesOpcode::kSend : SesOpcode::kTaggedSend;
  p.message_id = static_cast<std::uint16_t>(1 + e.serial++ / (is_tiny ? 2000 : count));
  p.total = is_tiny ? (count - 1) * mtu_ + 1 : count * mtu_;
  const std::uint32_t piece = is_tiny ? count - 1 : e.serial % count == 1 ? 0 : e.rng.below(count);
  p.som = piece == 0;
  p.eom = piece + 1 == count;
  p.offset = piece * mtu_;
  p.bytes = p.carried = std::min(mtu_, p.total - p.offset);
  p.key_or_tag = is_awaited ? 0 : std::uint64_t{1} << 40 | p.message_id;
  say(t.c, make.request(t.c, &p));
}

/// A packet of another host of whose PDC something is known.
void Attacker::forge(Running& e, AttackPackets& make) {
  const auto& heard = taps_[e.plan->victim]->heard();
  if (heard.empty()) return;
  const Wiretap::Heard& h = heard[e.rng.below(static_cast<std::uint32_t>(heard.size()))];
  const auto is_of_forged = [&h](const auto& tap) { return tap->has_forged_opening(h.psn); };
  // A sweep within a sweep, 65,536 times 65,536 packets, is not played.
  if (plan_.sight == Sight::kBlind && !h.is_request && std::ranges::any_of(taps_, is_of_forged))
    return;
  Conversation c;
  c.victim = h.to;
  c.as = address_of(h.from);
  c.is_rod = h.is_rod;
  c.own_id = h.from_id;
  c.peer_id = h.to_id;
  c.knows_psns = plan_.sight == Sight::kAll;
  if (e.rng.chance(0.5)) {  // as the other end of the same PDC
    c.victim = h.from;
    c.as = address_of(h.to);
    std::swap(c.own_id, c.peer_id);
    // A target that has not answered yet may still be named.
    if (c.own_id == 0) c.own_id = static_cast<std::uint16_t>(1 + e.rng.below(0xffff));
  }
  if (c.knows_psns) {
    c.start = c.next = h.psn;
    c.note_peer_psn(h.psn);
  } else {
    c.start = c.next = Psn(e.rng.next_u32());
  }
  AttackBytes packet = e.rng.chance(0.4)   ? make.any_ack(c)
                       : e.rng.chance(0.4) ? make.any_nack(c)
                       : e.rng.chance(0.6) ? make.any_control(c)
                                           : make.any_request(c);
  say(c, std::move(packet));
}

void Attacker::replay(Running& e, AttackPackets& make) {
  if (plan_.sight == Sight::kAll && e.rng.chance(0.5)) {
    const auto& heard = taps_[e.plan->victim]->heard();
    if (heard.empty()) return;
    const Wiretap::Heard& h = heard[e.rng.below(static_cast<std::uint32_t>(heard.size()))];
    AttackBytes packet = h.bytes;
    if (e.rng.chance(0.2)) make.garble(packet);
    return send(h.to, address_of(h.from), std::move(packet), e.rng.chance(0.1));
  }
  if (received_.empty()) return;
  const auto& [victim, bytes] =
      received_[e.rng.below(static_cast<std::uint32_t>(received_.size()))];
  // To its sender, whose own words they are, or to another host.
  send(e.rng.chance(0.7) ? victim : e.plan->victim, port_.facts().address, bytes);
}

}  // namespace uet::sim
