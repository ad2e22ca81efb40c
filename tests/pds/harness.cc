#include "tests/pds/harness.h"

#include <algorithm>
#include <cstring>

namespace uet::pds::test {

namespace {

std::uint8_t pattern(MessageToken token, std::uint32_t segment, std::size_t i) {
  return static_cast<std::uint8_t>(token * 31 + segment * 7 + i);
}

}  // namespace

Seen decode(const net::TxPacket& packet, Instant at, int from) {
  const auto bytes = packet.packet.bytes();
  const std::uint8_t* p = bytes.data();
  Seen s;
  s.at = at;
  s.from = from;
  s.destination = packet.destination;
  s.entropy = packet.entropy;
  s.tos = packet.tos.value;
  s.size = bytes.size();
  s.type = static_cast<PdsType>(p[0] >> 3);
  s.next_hdr = static_cast<std::uint8_t>((base::load_be<std::uint16_t>(p) >> 7) & 15);
  switch (s.type) {
    case PdsType::kRudReq:
    case PdsType::kRodReq:
    case PdsType::kRudCcReq:
    case PdsType::kRodCcReq: {
      const auto h = wire::decode<wire::PdsRequest>(p);
      s.syn = h.syn;
      s.retx = h.retx;
      s.ar = h.ar;
      s.psn = h.psn;
      s.clear = h.psn + h.clear_psn_offset;
      s.spdcid = h.spdcid;
      (h.syn ? s.psn_offset : s.dpdcid) = h.dpdcid;
      const bool cc = s.type == PdsType::kRudCcReq || s.type == PdsType::kRodCcReq;
      s.body = bytes.size() - (cc ? 16 : 12);
      break;
    }
    case PdsType::kAck:
    case PdsType::kAckCc:
    case PdsType::kAckCcx: {
      const auto h = wire::decode<wire::PdsAck>(p);
      s.m = h.m;
      s.retx = h.retx;
      s.p = h.p;
      s.req = h.req;
      s.cack = h.cack_psn;
      s.ack_psn = h.cack_psn + h.ack_psn_offset;
      s.opaque = h.probe_opaque();
      s.spdcid = h.spdcid;
      s.dpdcid = h.dpdcid;
      s.body = bytes.size() - (s.type == PdsType::kAck ? 12 : s.type == PdsType::kAckCc ? 32 : 40);
      if (s.type != PdsType::kAck) {
        const auto c = wire::decode<wire::PdsAckCcNscc>(p);
        s.mpr = c.mpr;
        s.sack_base = c.cack_psn + c.sack_psn_offset;
        s.sack = c.sack_bitmap;
        s.rcvd = c.rcvd_bytes;
      }
      break;
    }
    case PdsType::kNack: {
      const auto h = wire::decode<wire::PdsNack>(p);
      s.m = h.m;
      s.retx = h.retx;
      s.nt = h.nt;
      s.code = h.nack_code;
      s.psn = h.nack_psn;
      s.spdcid = h.spdcid;
      s.dpdcid = h.dpdcid;
      s.payload = h.payload;
      break;
    }
    case PdsType::kControl: {
      const auto h = wire::decode<wire::PdsControl>(p);
      s.control = h.ctl_type;
      s.isrod = h.isrod;
      s.retx = h.retx;
      s.ar = h.ar;
      s.syn = h.syn;
      s.opaque = h.probe_opaque;
      s.psn = h.psn;
      s.spdcid = h.spdcid;
      (h.syn ? s.psn_offset : s.dpdcid) = h.dpdcid;
      s.payload = h.payload;
      break;
    }
    case PdsType::kRudiReq:
    case PdsType::kRudiResp: {
      const auto h = wire::decode<wire::PdsRudi>(p);
      s.m = h.m;
      s.retx = h.retx;
      s.psn = Psn(h.pkt_id);
      s.body = bytes.size() - 8;
      break;
    }
    default:
      s.body = bytes.size() - 4;
  }
  return s;
}

Answer ScriptedSes::respond(bool guaranteed, std::span<const std::uint8_t> data) {
  Answer a;
  a.guaranteed = guaranteed;
  a.response.next_hdr = 4;
  a.response.header_bytes = 12;
  a.response.header.fill(guaranteed ? 0xaa : 0x11);
  a.response.data = data;
  return a;
}

SegmentInfo ScriptedSes::emit_segment(MessageToken token, std::uint32_t segment, PdcRef pdc,
                                      Psn psn, net::Packet& packet) {
  (void)psn;
  sent_on.push_back(pdc);
  const TxMessage& m = messages.at(token);
  const std::uint64_t begin = std::uint64_t{segment} * m.segment_payload;
  const std::size_t payload = begin >= m.payload_bytes
                                  ? 0
                                  : static_cast<std::size_t>(std::min<std::uint64_t>(
                                        m.segment_payload, m.payload_bytes - begin));
  std::uint8_t* p = packet.append(kHeader + payload);
  base::store_be(p, token);
  base::store_be(p + 8, segment);
  base::store_be(p + 12, static_cast<std::uint32_t>(payload));
  base::store_be(p + 16, std::uint32_t{0x5e55e55e});
  for (std::size_t i = 0; i < payload; ++i) p[kHeader + i] = pattern(token, segment, i);
  return SegmentInfo{3};
}

Answer ScriptedSes::on_request(Instant now, const RxRequest& request) {
  (void)now;
  Delivery d;
  d.handle = request.handle;
  d.mode = request.mode;
  d.size = request.bytes.size();
  if (request.bytes.size() >= kHeader) {
    const std::uint8_t* p = request.bytes.data();
    d.token = base::load_be<std::uint64_t>(p);
    d.segment = base::load_be<std::uint32_t>(p + 8);
    const auto payload = base::load_be<std::uint32_t>(p + 12);
    if (base::load_be<std::uint32_t>(p + 16) == 0x5e55e55e) {
      EXPECT_EQ(request.bytes.size(), kHeader + payload);
      for (std::size_t i = 0; i < request.bytes.size() - kHeader; ++i)
        if (p[kHeader + i] != pattern(d.token, d.segment, i)) {
          ADD_FAILURE() << "payload of message " << d.token << " differs at byte " << i;
          break;
        }
    }
  }
  const Answer a = answer ? answer(request, d) : respond();
  if (a.kind != Answer::Kind::kRefuse) delivered.push_back(d);
  return a;
}

void ScriptedSes::on_response(Instant now, MessageToken token, std::uint32_t segment,
                              std::uint8_t next_hdr, std::span<const std::uint8_t> response) {
  (void)now;
  responses.push_back({token, segment, next_hdr, {response.begin(), response.end()}});
  if (on_response_hook) on_response_hook(token);
}

Host::Host(int i, const PdsConfig& config, const cc::CcConfig& cc_config, std::uint64_t seed,
           std::size_t buffers)
    : index(i),
      address(net::FabricAddress::from_v4(0x0a000001 + static_cast<std::uint32_t>(i))),
      pool(buffers, 4608),
      rng(seed * 1000 + static_cast<std::uint64_t>(i)),
      trace(4096) {
  facts.address = address;
  restart(config, cc_config);
}

void Host::restart(const PdsConfig& config, const cc::CcConfig& cc_config) {
  pds = std::make_unique<Pds>(config, cc_config, facts, pool, rng, trace, ses);
}

World::World(const WorldOptions& options) : leaving_(options.burst) {
  cc::CcConfig cc_config = options.cc;
  for (int i = 0; i < options.hosts; ++i) {
    if (!options.algorithms.empty())
      cc_config.algorithm = options.algorithms.at(static_cast<std::size_t>(i));
    hosts_.push_back(
        std::make_unique<Host>(i, options.pds, cc_config, options.seed, options.buffers));
  }
}

void World::drop_nth(int from, int n, std::function<bool(const Seen&)> match) {
  add_rule([=, left = n](const Seen& s, Fate& fate) mutable {
    if (s.from == from && match(s) && --left == 0) fate.drop = true;
  });
}

TxMessage World::message(int to, std::uint32_t segments, std::uint32_t segment_payload, Mode mode) {
  TxMessage m;
  m.token = next_token++;
  m.destination = host(to).address;
  m.mode = mode;
  m.segments = segments;
  m.ses_header_bytes = ScriptedSes::kHeader;
  m.segment_payload = segment_payload;
  m.payload_bytes = std::uint64_t{segments} * segment_payload;
  return m;
}

MessageToken World::send(int from, const TxMessage& m, SubmitResult* result) {
  Host& h = host(from);
  h.ses.messages[m.token] = m;
  const SubmitResult r = h.pds->submit(now_, m);
  if (result != nullptr)
    *result = r;
  else
    EXPECT_EQ(r, SubmitResult::kQueued);
  return m.token;
}

void World::put_on_link(int from, net::TxPacket packet) {
  const Seen seen = decode(packet, now_, from);
  log.push_back(seen);
  Fate fate;
  for (Rule& rule : rules_) rule(seen, fate);
  if (fate.drop) return;
  int to = -1;
  for (const auto& h : hosts_)
    if (h->address == packet.destination) to = h->index;
  if (to < 0) return;
  const auto bytes = packet.packet.bytes();
  InFlight f{now_ + delay + fate.extra_delay,
             order_++,
             to,
             from,
             {bytes.begin(), bytes.end()},
             packet.entropy,
             packet.tos.value};
  if (fate.trim || fate.trim_last_hop) {
    f.bytes.resize(std::min<std::size_t>(f.bytes.size(), 64));
    f.tos = net::TosByte::of(fate.trim_last_hop ? 28 : 26, 0).value;
  }
  if (fate.mark_ce) f.tos = static_cast<std::uint8_t>(f.tos | 3);
  if (fate.edit) fate.edit(f.bytes);
  for (int i = 0; i < fate.copies; ++i) {
    InFlight copy = f;
    copy.order = order_++;
    copy.at = f.at + fate.copy_delay * i;
    in_flight_.push_back(std::move(copy));
    std::push_heap(in_flight_.begin(), in_flight_.end(), std::greater<>{});
  }
}

void World::inject_bytes(int to, const net::FabricAddress& source,
                         std::span<const std::uint8_t> bytes, std::uint8_t tos, bool is_overtaken) {
  net::RxPacket rx;
  rx.packet = host(to).pool.allocate();
  ASSERT_TRUE(rx.packet);
  if (!bytes.empty()) std::memcpy(rx.packet.append(bytes.size()), bytes.data(), bytes.size());
  rx.source = source;
  rx.destination = host(to).address;
  rx.entropy = 0xbeef;
  rx.tos.value = tos;
  rx.is_overtaken = is_overtaken;
  host(to).pds->on_packet(now_, std::move(rx));
}

Instant World::next_event() const {
  Instant next = in_flight_.empty() ? Instant::never() : in_flight_.front().at;
  for (const auto& h : hosts_)
    if (!h->is_stopped) next = std::min(next, h->pds->next_deadline());
  return next;
}

void World::continue_process(int i) {
  host(i).is_stopped = false;
  std::vector<InFlight> waiting;
  waiting.swap(waiting_);
  for (InFlight& f : waiting) deliver(std::move(f));  // packets before timers
  pump();
}

void World::deliver(InFlight f) {
  if (host(f.to).is_stopped) return waiting_.push_back(std::move(f));
  net::RxPacket rx;
  rx.packet = host(f.to).pool.allocate();
  if (!rx.packet) return;  // as a port without buffers
  if (!f.bytes.empty())
    std::memcpy(rx.packet.append(f.bytes.size()), f.bytes.data(), f.bytes.size());
  rx.source = host(f.from).address;
  rx.destination = host(f.to).address;
  rx.entropy = f.entropy;
  rx.tos.value = f.tos;
  host(f.to).pds->on_packet(now_, std::move(rx));
}

void World::pump() {
  for (const auto& h : hosts_) {
    if (h->is_stopped) continue;
    for (int i = 0; i < 100'000 && h->pds->may_have_packets(); ++i) {
      const std::size_t n = h->pds->poll_transmit(now_, leaving_);
      if (n == 0) break;
      for (std::size_t k = 0; k < n; ++k) put_on_link(h->index, std::move(leaving_[k]));
    }
  }
}

void World::step() {
  const Instant next = next_event();
  if (next.is_never()) return;
  now_ = std::max(now_, next);
  while (!in_flight_.empty() && in_flight_.front().at <= now_) {
    std::pop_heap(in_flight_.begin(), in_flight_.end(), std::greater<>{});
    InFlight f = std::move(in_flight_.back());
    in_flight_.pop_back();
    deliver(std::move(f));
    pump();
  }
  for (const auto& h : hosts_)
    if (!h->is_stopped && h->pds->next_deadline() <= now_) h->pds->on_deadline(now_);
  pump();
  if (after_step) after_step();
}

void World::run_for(Duration d) {
  const Instant end = now_ + d;
  pump();
  for (int guard = 0; guard < 5'000'000; ++guard) {
    if (next_event() > end) break;
    step();
  }
  now_ = end;
  pump();
}

void World::run_until_quiet(Duration at_most) {
  const Instant end = now_ + at_most;
  pump();
  for (int guard = 0; guard < 5'000'000 && now_ <= end; ++guard) {
    bool quiet = in_flight_.empty();
    for (const auto& h : hosts_) quiet = quiet && h->pds->is_idle();
    if (quiet) return;
    const Instant before = now_;
    step();
    bool stuck = now_ == before && in_flight_.empty();
    for (const auto& h : hosts_) stuck = stuck && h->pds->next_deadline().is_never();
    if (stuck) return;
  }
}

std::vector<Seen> World::sent(int from, std::function<bool(const Seen&)> match) const {
  std::vector<Seen> out;
  for (const Seen& s : log)
    if (s.from == from && match(s)) out.push_back(s);
  return out;
}

std::vector<std::uint8_t> World::segment_bytes(MessageToken token, std::uint32_t segment,
                                               std::size_t payload) const {
  std::vector<std::uint8_t> out(ScriptedSes::kHeader + payload);
  base::store_be(out.data(), token);
  base::store_be(out.data() + 8, segment);
  base::store_be(out.data() + 12, static_cast<std::uint32_t>(payload));
  base::store_be(out.data() + 16, std::uint32_t{0x5e55e55e});
  for (std::size_t i = 0; i < payload; ++i)
    out[ScriptedSes::kHeader + i] = pattern(token, segment, i);
  return out;
}

}  // namespace uet::pds::test
