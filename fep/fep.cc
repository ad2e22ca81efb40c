#include "fep/fep.h"

#include <algorithm>
#include <bit>
#include <vector>

#include "fep/integrity.h"
#include "fep/planes.h"
#include "fep/port_ways.h"
#include "fep/secure_guard.h"
#include "fep/security.h"
#include "lib/base/ring.h"
#include "lib/wire/net_headers.h"

namespace uet::fep {

using base::EventId;

namespace {

/// How long a port that took nothing is left alone before it is offered the same packets again.
constexpr Duration kPortRetry = Duration::from_us(10);
/// The same where no plane has a link: a port of several looks for links so often (lib/net/plane_port.cc).
constexpr Duration kLinkRetry = Duration::from_ms(5);

/// Turns in a row that may end without looking at deadlines because packets were still waiting.
/// Bounds how late a timer can be under overload, and is more than the packets that any port holds.
constexpr int kMaxTurnsWithoutDeadlines = 256;

/// How often keys are looked after: changes of the domain, counters for packets to come.
constexpr Duration kKeyService = Duration::from_seconds(1);
/// An answer of the key manager is asked for after this, then less and less often.
constexpr Duration kKeyServiceSoon = Duration::from_ms(10);

tss::SecureDomain* domain_of(const FepConfig& config) {
  return config.security ? &config.security->domain() : nullptr;
}

/// Packets in a row that take one path, where the port moves them as one. What a run costs in evenness goes by its bytes, is nothing while no queue
/// in the fabric grows, and is too much where every packet is to tell of another path. [decision 127]
void set_runs(cc::CcConfig& cc, std::uint32_t payload, const net::PortFacts& facts) {
  constexpr std::uint32_t kRunBytes = 16384;
  constexpr std::uint32_t kCarried = 65535 - 40 - 8;  // by one IP packet, which the kernel cuts
  if (facts.run_packets == 1 || cc.load_balancing != cc::LoadBalancing::kOblivious) return;
  const auto packets = [&](std::uint32_t count) {
    return static_cast<std::uint16_t>(std::clamp<std::uint32_t>(count, 1, facts.run_packets));
  };
  cc.run_packets = packets(kRunBytes / payload);
  cc.calm_run_packets = packets(kCarried / cc.mtu_bytes);
  cc.runs_end_with_turn = true;
}

/// Packets that a turn sends, and those that it takes in, at most: where the port moves runs as one, whole ones, as peers of our MTU send them.
std::size_t packets_of_turn(const FepConfig& config) {
  if (!config.cc.runs_end_with_turn) return config.burst;
  const std::size_t run = config.cc.calm_run_packets;
  return (config.burst + run - 1) / run * run;
}

/// Peers on this host share its cores and no link with us. What may be out is what their socket holds while they wait for their
/// turn, and theirs is as large as ours: an eighth, so that several may send to one. Where that is less than a round trip of
/// the fabric, half. [decision 128]
void set_host_window(cc::CcConfig& cc, const net::PortFacts& facts) {
  if (facts.receive_bytes == 0) return;
  const auto held = static_cast<base::ByteCount>(facts.receive_bytes);
  const base::ByteCount usual = cc.link_rate.bytes_in(cc.config_base_rtt) * 3 / 2;
  cc.host_max_window = std::max(held / 8, std::min(held / 2, usual));
  cc.host_base_rtt =
      std::max(cc.config_base_rtt, cc.link_rate.time_for(cc.host_max_window * 2 / 3));
}

FepConfig with_derived_values(FepConfig config, const net::PortFacts& facts) {
  if (config.payload_mtu == 0) config.payload_mtu = payload_mtu_for(net::largest_ip_packet(facts));
  config.pds.security_overhead = seal_bytes(config.protection, domain_of(config));

  // Nominal size of a full request: what UDP (or the entropy header) carries and 40 bytes. [CC 3.2] Of one that leaves by
  // the device: ways that carry more, to this host's own addresses, have no queues that a window would have to respect.
  const std::uint32_t payload = net::largest_ip_packet(facts) == facts.ip_mtu
                                    ? config.payload_mtu
                                    : std::min(config.payload_mtu, payload_mtu_for(facts.ip_mtu));
  config.cc.mtu_bytes = payload + kRequestHeaderBytes + config.pds.security_overhead +
                        (facts.udp_encapsulation ? 8u : 4u) + config.pds.nominal_extra;
  if (config.cc.link_rate.bps() == 0) config.cc.link_rate = facts.link_rate;
  if (config.cc.link_rate.bps() == 0) config.cc.link_rate = cc::kUnknownLinkRate;
  config.cc.planes = facts.planes;
  set_runs(config.cc, payload, facts);
  if (config.cc.config_base_rtt == Duration()) config.cc.config_base_rtt = cc::kUnknownBaseRtt;
  set_host_window(config.cc, facts);
  config.cc.ack_gen_trigger = config.pds.ack_gen_trigger;
  config.ses.device_payload = std::max(payload, payload_mtu_for(facts.ip_mtu));
  UET_CHECK(config.ses.max_messages >= ses::SesConfig::kFewestMessages);
  // What one layer promises the other keeps.
  config.ses.max_ack_data = config.pds.max_ack_data_size;
  config.ses.requests_under_way = std::bit_ceil<std::uint32_t>(config.pds.local_mp_range);
  // Requests keep some of the places from read data.
  const std::uint32_t messages = config.pds.max_messages;
  config.ses.max_returns_carried = messages - pds::reserve_of(messages);
  return config;
}

/// One port of several sends a full packet in this time.
Duration time_of_packet(const cc::CcConfig& config) {
  return config.link_rate.time_for(config.mtu_bytes) * config.planes;
}

/// Of a packet as it arrived; 0 where there is none.
std::uint8_t pds_type_of(std::span<const std::uint8_t> uet) {
  const std::size_t at = wire::ReturnPort::is_here(uet) ? wire::ReturnPort::kSize : 0;
  return uet.size() > at ? uet[at] >> 3 : 0;
}

bool is_ack(std::uint8_t pds_type) {
  using wire::PdsType;
  const auto type = static_cast<PdsType>(pds_type);
  return type == PdsType::kAck || type == PdsType::kAckCc || type == PdsType::kAckCcx;
}

/// NACKs and control packets go to addresses of which a single packet has come, and which may be forged.
bool may_answer_stranger(std::uint8_t pds_type) {
  using wire::PdsType;
  const auto type = static_cast<PdsType>(pds_type);
  return type == PdsType::kNack || type == PdsType::kNackCcx || type == PdsType::kControl;
}

/// How long one of several ports that is busy is left alone: until it can have sent a packet, and twice as long each time that it is busy
/// still, up to kPortRetry. Pause frames of a switch may hold it for milliseconds.
struct PlanePause {
  explicit PlanePause(Duration shortest) : first(shortest), now(shortest) {}
  void extend(bool is_busy_still) { now = is_busy_still ? std::min(now * 2, kPortRetry) : first; }

  const Duration first;
  Duration now;
};

}  // namespace

struct Fep::Impl {
  Impl(const FepConfig& wanted, net::Port& the_port, base::Rng& rng, base::Trace& the_trace,
       Instant now)
      : config(with_derived_values(wanted, the_port.facts())),
        port(the_port),
        trace(the_trace),
        own(the_port.facts().address),
        integrity(config.protection, the_port.facts(), config.pds.trimmed_dscps(),
                  domain_of(config)),
        ses(config.ses, config.payload_mtu, own, rng, trace),
        ways(the_port, config.payload_mtu),
        pds(config.pds, config.cc, the_port.facts(), the_port.pool(), rng, trace, ses),
        received(packets_of_turn(config)),
        outgoing(packets_of_turn(config)),
        looped(8 * std::size_t{config.burst}),
        planes(the_port.facts().planes),
        port_merges(the_port.facts().run_packets > 1),
        last_turn(now),
        plane_pause(std::min(kPortRetry, time_of_packet(config.cc))) {
    ses.attach(pds);
    ses.set_ways(ways);
    if (tss::SecureDomain* domain = domain_of(config)) {
      guard = std::make_unique<SecureGuard>(*domain);
      pds.set_opening_guard(*guard);
      keys_due = now + kKeyService;
    }
  }

  bool receive(Instant now);
  bool receive_looped(Instant now);
  bool run_deadlines(Instant now);
  bool transmit(Instant now);
  void fill(Instant now);
  Instant may_fill_again() const;
  void finish(Instant now, std::size_t count);
  bool loop(Instant now, net::TxPacket& tx);
  void seal(Instant now, net::TxPacket& tx);
  void put_acks_last();
  bool flush(Instant now);

  const FepConfig config;
  net::Port& port;
  base::Trace& trace;
  const net::FabricAddress own;
  Integrity integrity;
  std::unique_ptr<SecureGuard> guard;  ///< of a secured endpoint; packet delivery holds on to it
  ses::Ses ses;
  PortWays ways;
  pds::Pds pds;

  std::vector<net::RxPacket> received;
  // Sealed packets [outgoing_first, outgoing_last) that the port has not taken yet: at most those of
  // a turn.
  std::vector<net::TxPacket> outgoing;
  std::size_t outgoing_first = 0, outgoing_last = 0;
  std::size_t leading_acks = 0;      ///< of the burst that was filled last
  bool holds_acks = false;           ///< since hold_acks()
  base::Ring<net::RxPacket> looped;  ///< packets to our own address, delivered in the next turn
  Planes planes;                     ///< where a packet may leave now
  const bool port_merges;            ///< packets to one path in a row travel as one

  net::FabricAddress last_bad_crc_from;
  Instant last_turn;
  Instant keys_due = Instant::never();
  Duration keys_wait;             ///< for the answer that the key manager is at
  bool was_holding_back = false;  ///< packets that the port did not take
  bool more_to_send = false;    ///< the last turn ended because the burst was full, or a port busy
  unsigned awaited_planes = 0;  ///< in that case: the busy ones, a bit each
  PlanePause plane_pause;       ///< until they are asked again
  bool packets_wait = false;    ///< the last burst came back full: the port has more
  int turns_without_deadlines = 0;
};

// --- In

bool Fep::Impl::receive(Instant now) {
  const std::size_t n = port.receive(now, received);
  packets_wait = n == received.size();
  for (std::size_t i = 0; i < n; ++i) {
    net::RxPacket& rx = received[i];
    const std::size_t bytes = rx.packet.size();
    trace.emit(now, EventId::kPacketReceived, 0, {}, bytes, pds_type_of(rx.packet.bytes()));
    if (const auto reason = integrity.open(rx)) {
      if (*reason == base::DropReason::kBadCrc) last_bad_crc_from = rx.source;
      trace.drop(now, *reason, bytes);
      rx.packet.reset();
      continue;
    }
    pds.on_packet(now, std::move(rx));
  }
  return n != 0;
}

/// Only what was there at the start: answers to these packets wait for the next turn, so a turn
/// ends.
bool Fep::Impl::receive_looped(Instant now) {
  const std::size_t n = looped.size();
  for (std::size_t i = 0; i < n; ++i) pds.on_packet(now, looped.pop());
  return n != 0;
}

bool Fep::Impl::run_deadlines(Instant now) {
  bool did = false;
  if (planes.has_changed(now, port)) {
    pds.on_planes_changed(now, planes.up());
    trace.emit(now, EventId::kPlanesChanged, 0, {}, planes.up());
    did = true;
  }
  if (port.next_deadline() <= now) {
    port.on_deadline(now);
    did = true;
  }
  if (pds.next_deadline() <= now) {
    pds.on_deadline(now);
    did = true;
  }
  if (ses.next_deadline() <= now) {
    ses.on_deadline(now);
    did = true;
  }
  if (keys_due <= now || (guard != nullptr && config.security->domain().is_due_early())) {
    const bool soon = config.security->domain().service();
    keys_wait = soon ? std::clamp(keys_wait * 2, kKeyServiceSoon, kKeyService) : Duration();
    keys_due = now + (soon ? keys_wait : kKeyService);
  }
  return did;
}

// --- Out

bool Fep::Impl::transmit(Instant now) {
  bool did = flush(now);
  const std::size_t looped_before = looped.size();
  if (outgoing_first == outgoing_last) {
    fill(now);
    integrity.seal_pending();
    if (std::exchange(holds_acks, false)) put_acks_last();
    did |= flush(now);
  }
  // Told when it begins: a port without a link holds its packets back turn by turn, for as long as the peer is not there.
  const bool holds_back = outgoing_first != outgoing_last;
  if (holds_back && !was_holding_back)
    trace.emit(now, EventId::kPortBusy, 0, {}, outgoing_last - outgoing_first);
  was_holding_back = holds_back;
  return did || looped.size() != looped_before;
}

/// Has packets built, as many as may leave at once. A packet is built only when there is a place
/// for it.
void Fep::Impl::fill(Instant now) {
  outgoing_first = outgoing_last = leading_acks = 0;
  more_to_send = false;
  const bool was_waiting = std::exchange(awaited_planes, 0u) != 0;
  if (!pds.may_have_packets()) return;
  const std::size_t room = std::min(outgoing.size(), port.send_room(now));
  planes.look(now, port);
  // A turn stays short when everything goes to ourselves.
  const std::size_t most = 2 * outgoing.size();
  for (std::size_t built = 0; outgoing_last < room && !looped.is_full() && built < most;) {
    const std::uint8_t free = planes.free();
    if (free == 0) break;
    if (!pds.may_have_packets()) return;
    // Of several ports, each packet may make one busy.
    const std::size_t places =
        planes.is_single() ? std::min({room - outgoing_last, looped.free(), most - built}) : 1;
    const std::size_t count =
        pds.poll_transmit(now, std::span(outgoing).subspan(outgoing_last, places), free);
    if (count == 0) {
      awaited_planes = planes.up() & ~free;  // what waits may wait for a port that is busy
      more_to_send = awaited_planes != 0;
      if (more_to_send) plane_pause.extend(was_waiting && outgoing_last == 0);
      return;
    }
    finish(now, count);
    built += count;
  }
  more_to_send = true;
}

/// Of so many new packets, from the first free place on, those for the port get in line for it.
void Fep::Impl::finish(Instant now, std::size_t count) {
  const std::size_t first = outgoing_last;
  for (std::size_t i = first; i < first + count; ++i) {
    if (loop(now, outgoing[i])) continue;
    if (i != outgoing_last) outgoing[outgoing_last] = std::move(outgoing[i]);
    seal(now, outgoing[outgoing_last]);
  }
}

/// A port without room says when it has some; one that cannot is asked again soon. Of several ports only those count that what waits
/// may leave by.
Instant Fep::Impl::may_fill_again() const {
  if (planes.up() == 0) return last_turn + kLinkRetry;
  if (awaited_planes == 0)
    return port.send_room(last_turn) > 0 ? last_turn : last_turn + kPortRetry;
  return Planes::has_room(last_turn, port, awaited_planes) ? last_turn
                                                           : last_turn + plane_pause.now;
}

/// A packet to our own address never sees the port. False when it is for another host.
bool Fep::Impl::loop(Instant now, net::TxPacket& tx) {
  if (tx.destination != own) return false;
  trace.emit(now, EventId::kPacketSent, 0, {}, tx.packet.full_size(), tx.packet.data()[0] >> 3);
  tx.packet.keep_borrowed();
  looped.push(net::RxPacket{.packet = std::move(tx.packet),
                            .source = own,
                            .destination = own,
                            .entropy = tx.entropy,
                            .tos = tx.tos});
  return true;
}

/// `tx` is complete and in line for the port; the packets of a burst are sealed together.
void Fep::Impl::seal(Instant now, net::TxPacket& tx) {
  const std::uint8_t pds_type = tx.packet.data()[0] >> 3;
  planes.assign(tx);
  // Where there is but one way, packets in their order: they make the longest runs, and none seems overtaken. What strangers draw is not
  // worth the questions to the port.
  if (port_merges && (may_answer_stranger(pds_type) ? ways.is_known_on_host(tx.destination)
                                                    : ways.stays_on_host(now, tx.destination)))
    tx.entropy = 0;
  tx.entropy = planes.is_single() ? port.wire_entropy(tx.entropy)
                                  : port.plane_wire_entropy(tx.entropy, tx.plane);
  if (const auto reason = integrity.seal_later(tx)) {
    trace.drop(now, *reason, tx.packet.full_size());
    return tx.packet.reset();
  }
  trace.emit(now, EventId::kPacketSent, 0, {}, tx.packet.full_size(), pds_type);
  if (leading_acks == outgoing_last && is_ack(pds_type)) ++leading_acks;
  ++outgoing_last;
}

/// What the application wants to be on its way goes before what it did not hurry.
void Fep::Impl::put_acks_last() {
  const auto begin = outgoing.begin();
  const auto at = [&](std::size_t i) { return begin + static_cast<std::ptrdiff_t>(i); };
  std::rotate(begin, at(leading_acks), at(outgoing_last));
}

bool Fep::Impl::flush(Instant now) {
  if (outgoing_first == outgoing_last) return false;
  const std::size_t taken =
      port.send(now, std::span(outgoing).subspan(outgoing_first, outgoing_last - outgoing_first));
  outgoing_first += taken;
  // What waits is no longer what the user's memory says now: that may be given back before the port takes it.
  for (std::size_t i = outgoing_first; i < outgoing_last; ++i) outgoing[i].packet.keep_borrowed();
  return taken != 0;
}

// --- The loop

Fep::Fep(const FepConfig& config, net::Port& port, base::Rng& rng, base::Trace& trace, Instant now)
    : impl_(std::make_unique<Impl>(config, port, rng, trace, now)) {}

Fep::~Fep() = default;

bool Fep::turn(Instant now) {
  const bool did = take_in(now);
  return impl_->transmit(now) || did;
}

bool Fep::take_in(Instant now) {
  Impl& f = *impl_;
  f.last_turn = now;
  bool did = f.receive_looped(now);
  did |= f.receive(now);
  // While packets wait, the answer that a timer misses may be among them: after a pause of the
  // whole process, timers that look expired are usually not.
  if (f.packets_wait && f.turns_without_deadlines < kMaxTurnsWithoutDeadlines) {
    ++f.turns_without_deadlines;
  } else {
    f.turns_without_deadlines = 0;
    did |= f.run_deadlines(now);
  }
  return did;
}

bool Fep::holds_acks() const {
  return impl_->holds_acks;
}

bool Fep::hold_acks() {
  Impl& f = *impl_;
  const bool has_packets = f.outgoing_first != f.outgoing_last || f.more_to_send;
  f.holds_acks = !has_packets && f.pds.has_only_acks();
  return f.holds_acks;
}

bool Fep::transmit(Instant now) {
  return impl_->transmit(now);
}

Instant Fep::next_deadline() const {
  const Impl& f = *impl_;
  if (!f.looped.is_empty() || f.packets_wait || f.holds_acks) return f.last_turn;
  Instant next =
      std::min({f.port.next_deadline(), f.pds.next_deadline(), f.ses.next_deadline(), f.keys_due});
  if (f.outgoing_first != f.outgoing_last) return std::min(next, f.last_turn + kPortRetry);
  if (f.more_to_send || f.pds.has_unpolled_packets()) next = std::min(next, f.may_fill_again());
  return next;
}

bool Fep::is_idle() const {
  const Impl& f = *impl_;
  return f.looped.is_empty() && f.outgoing_first == f.outgoing_last && f.pds.is_idle() &&
         f.ses.gauges().sends_active == 0;
}

ses::Ses& Fep::ses() {
  return impl_->ses;
}
pds::Pds& Fep::pds() {
  return impl_->pds;
}
base::Trace& Fep::trace() {
  return impl_->trace;
}
net::Port& Fep::port() {
  return impl_->port;
}
Security* Fep::security() {
  return impl_->config.security.get();
}
const FepConfig& Fep::config() const {
  return impl_->config;
}
net::FabricAddress Fep::last_bad_crc_from() const {
  return impl_->last_bad_crc_from;
}
std::uint32_t Fep::payload_mtu() const {
  return impl_->config.payload_mtu;
}
std::uint32_t Fep::payload_towards(Instant now, const net::FabricAddress& destination) {
  return impl_->ways.payload_towards(now, destination);
}

}  // namespace uet::fep
