#include "apps/sim/swarm_world.h"

#include <fmt/format.h>
#include <sys/uio.h>

#include <algorithm>

#include "apps/sim/swarm_state.h"
#include "cc/ccc.h"
#include "fep/report/event_log.h"
#include "ses/rendezvous.h"
#include "ses/sequence.h"

namespace uet::sim {

using base::Duration;

namespace {

constexpr std::uint64_t kMemoryKey = 7, kRudiMemoryKey = 8;
/// After the last fault, how long a world may take to finish, and then to become quiet. Sends that wait at a host which started
/// again are given up after seconds, a window of them after the other.
const SimSpan kProgressLimit = SimSpan::from(Duration::from_seconds(100));
const SimSpan kQuietLimit = SimSpan::from(Duration::from_seconds(20));
constexpr std::uint64_t kMaxEvents = 50'000'000;
/// Two hosts whom an attacker has told different things repeat packets, as fast as congestion control lets them, until the peer timeout.
constexpr std::uint64_t kMaxEventsInjected = 200'000'000;
constexpr std::size_t kReceiveRing = 4096;  ///< packets that a network card holds for its host

}  // namespace

Swarm::Swarm(const SwarmPlan& plan, std::size_t recorded_events)
    : plan_(plan),
      simulation_(plan.seed, 100'000, plan.fabric.mtu_payload + 256),
      fabric_(simulation_, model_, plan.fabric,
              SimPortConfig{.ip_mtu = plan.fabric.mtu_payload + 256,
                            .receive_limit = kReceiveRing,
                            .own_buffers = true},
              plan.pool_packets),
      memories_(plan.fabric.hosts),
      peers_(plan.fabric.hosts),
      lives_(plan.fabric.hosts, 1),
      datagram_endpoints_(plan.fabric.hosts),
      datagram_peers_(plan.fabric.hosts),
      windows_(plan.fabric.hosts),
      has_multi_receive_(plan.fabric.hosts, false),
      any_crash_(plan.has(Trouble::kCrash)) {
  lay_out_memory();
  if (plan.secure.is_on) {
    secure_ = std::make_unique<SecureWorld>(simulation_, fabric_, plan_, hosts_,
                                            [this](const std::string& why) { fail_hard(why); });
  }
  for (HostId h = 0; h < plan.hosts(); ++h) {
    ses::EndpointConfig endpoint;
    endpoint.resource_index = 1;
    endpoint.sends_ordered = plan.ordered[h];
    hosts_.push_back(std::make_unique<Host>(
        simulation_, fabric_.port(h), plan.fep, endpoint,
        [this](Host& host, const ses::Completion& c) { on_completion(host, c); }, recorded_events,
        [this](HostId host, fep::FepConfig& config) {
          if (secure_) secure_->arm(host, config);
          config.ses.spray_ordered = plan_.sprays_order() && plan_.sprays[host];
          config.ses.rendezvous = plan_.has_rendezvous() && plan_.fetches[host];
          config.ses.defers = plan_.has_deferrals();
          config.ses.sends_deferrable = plan_.has_deferrals() && plan_.defers[host];
        }));
  }
  if (plan.attack.is_hostile()) {
    hostile_ = std::make_unique<HostileWorld>(
        simulation_, fabric_, plan_, hosts_, [this](const std::string& why) { fail_hard(why); },
        [](bool is_bait, std::uint64_t index) {
          return context_of(is_bait ? Context::kBait : Context::kLure, index);
        });
  }
  if (secure_) secure_->start();
  for (HostId h = 0; h < plan.hosts(); ++h) {
    if (hostile_) hostile_->open(h);
    watch_windows(h);
    open_memory(h);
    open_datagrams(h);
    connect(h);
  }
  schedule();
}

void Swarm::lay_out_memory() {
  states_.resize(plan_.ops.size());
  for (std::size_t i = 0; i < plan_.ops.size(); ++i) {
    const PlannedOp& op = plan_.ops[i];
    OpState& s = states_[i];
    s.op = &op;
    by_id_[op.id] = i;
    s.error_allowed = plan_.crashes(op.from) || plan_.crashes(op.to);
    if (op.is_read()) {
      s.local.make(op.bytes, kGuard);
    } else {
      s.local.make_pattern(op.bytes, op.id);
    }
    if (!op.has_slot()) continue;
    // A slot of the target's region, between guards; reads find their pattern there.
    std::vector<std::uint8_t>& memory = memories_[op.to].bytes;
    if (memory.empty()) memory.assign(kGuardBytes, kGuard);
    s.remote_at = memory.size();
    memory.resize(memory.size() + op.bytes, 0);
    if (op.is_read()) write_pattern({memory.data() + s.remote_at, op.bytes}, op.id);
    memory.insert(memory.end(), kGuardBytes, kGuard);
  }
  for (Memory& m : memories_) {
    if (m.bytes.empty()) m.bytes.assign(kGuardBytes, kGuard);
  }
}

void Swarm::open_memory(HostId host) {
  Memory& m = memories_[host];
  const iovec bytes{m.bytes.data(), m.bytes.size()};
  ses::MemoryRequest request;
  request.iov = {&bytes, 1};
  request.remote_read = request.remote_write = true;
  request.virtual_addressing = false;
  request.key = kMemoryKey;
  const auto key = hosts_[host]->ses().register_memory(request);
  if (!key.has_value()) return fail("memory could not be registered");
  m.key = key.value();
  if (!plan_.has(SwarmMode::kRudi)) return;
  request.key = kRudiMemoryKey;
  request.idempotent_safe = true;
  const auto rudi_key = hosts_[host]->ses().register_memory(request);
  if (!rudi_key.has_value()) return fail("memory could not be registered for RUDI");
  m.rudi_key = rudi_key.value();
}

void Swarm::watch_windows(HostId host) {
  windows_[host] = std::make_unique<WindowWatch>(
      plan_.fep.pds, !plan_.attack.is_hostile(),
      [this, host](const std::string& why) { fail(fmt::format("host {}: {}", host, why)); });
  hosts_[host]->trace().add_sink(*windows_[host]);
}

void Swarm::connect(HostId host) {
  peers_[host].assign(plan_.fabric.hosts, 0);
  for (HostId to = 0; to < plan_.hosts(); ++to) {
    if (to == host || !hosts_[to]->is_up()) continue;
    ses::Address address = hosts_[to]->address();
    if (plan_.sprays_order() && plan_.claims_to_restore[to]) address.fep_cap |= ses::kRestoresOrder;
    if (plan_.has_rendezvous() && plan_.claims_to_fetch[to])
      address.fep_cap |= ses::kFetchesRendezvous;
    const auto peer = hosts_[host]->ses().add_peer(address);
    if (!peer.has_value()) return fail("peer could not be added");
    peers_[host][to] = peer.value();
  }
}

void Swarm::set_faults(const FaultProfile& profile) {
  for (Link* link : fabric_.all_links()) link->set_faults(profile);
}

void Swarm::schedule() {
  set_faults(plan_.faults);
  simulation_.events.call_at(plan_.faults_end, [this] { set_faults(FaultProfile{}); });
  for (const PlannedTrouble& t : plan_.troubles) schedule_trouble(t);
  if (hostile_) hostile_->start();
  for (OpState& s : states_) {
    OpState* const before = find(s.op->receive_after);
    if (before != nullptr) {
      before->next_receive = &s;
    } else if (s.op->is_send()) {
      simulation_.events.call_at(s.op->receive_at, [this, &s] { post_receive(s); });
    }
    simulation_.events.call_at(s.op->at, [this, &s] { post(s); });
  }
}

// --- Troubles -----------------------------------------------------------------------------------

void Swarm::schedule_trouble(const PlannedTrouble& t) {
  EventQueue& events = simulation_.events;
  switch (t.kind) {
    case Trouble::kCrash:
      events.call_at(t.at, [this, h = t.host] { crash(h); });
      events.call_at(t.until, [this, h = t.host] { restart(h); });
      break;
    case Trouble::kClockJump:
      events.call_at(t.at, [this, &t] {
        hosts_[t.host]->node().jump_clock(Duration::from_ns((t.until - t.at).ps() / 100));
      });
      break;
    case Trouble::kPoolExhausted:
      events.call_at(t.at, [this, h = t.host] { fabric_.port(h).slab_pool().set_exhausted(true); });
      events.call_at(t.until, [this, h = t.host] {
        fabric_.port(h).slab_pool().set_exhausted(false);
        hosts_[h]->node().poke();
      });
      break;
    case Trouble::kSlowHost:
      events.call_at(t.at, [this, h = t.host] {
        hosts_[h]->node().set_turn_cost(SimSpan::from(Duration::from_us(20)));
      });
      events.call_at(t.until, [this, h = t.host] { hosts_[h]->node().set_turn_cost(SimSpan{}); });
      break;
    case Trouble::kPause:
      events.call_at(t.at, [this, &t] {
        for (Link* link : fabric_.find_links(fmt::format("host{}", t.host)))
          link->pause_until(t.until);
      });
      break;
    case Trouble::kPartition:
    case Trouble::kPlaneOutage:
      events.call_at(t.at, [this, &t] { set_host_links(t, false); });
      events.call_at(t.until, [this, &t] { set_host_links(t, true); });
      break;
    case Trouble::kDeadPlane:
      events.call_at(t.at, [this, &t] { set_plane_links(t, false); });
      events.call_at(t.until, [this, &t] { set_plane_links(t, true); });
      break;
    case Trouble::kTinyWindow:
    case Trouble::kPsnWrap:
    case Trouble::kTinyTables:
    case Trouble::kCount:
      break;  // part of the endpoint's configuration
  }
}

/// Outages hit one direction or both. A host sees that it cannot send, but not that it hears nothing.
void Swarm::set_host_links(const PlannedTrouble& t, bool up) {
  const std::int64_t which = t.at.ps() % 3;
  SimPort& port = fabric_.port(t.host);
  for (unsigned plane = 0; plane < port.planes(); ++plane) {
    if (t.kind == Trouble::kPlaneOutage && plane != t.plane) continue;
    for (Link* link : fabric_.find_links(fmt::format("plane{}/host{}", plane, t.host))) {
      const bool outward = link == &port.egress(plane);
      if (which == 0 || (which == 1) == outward) link->set_up(up);
    }
  }
}

/// All hosts at once: all their links into the plane, or, unseen by them, what the plane sends them.
void Swarm::set_plane_links(const PlannedTrouble& t, bool up) {
  const bool unseen = t.at.ps() % 2 == 0;
  for (HostId h = 0; h < plan_.fabric.hosts; ++h) {
    for (Link* link : fabric_.find_links(fmt::format("plane{}/host{}", t.plane, h)))
      if (!unseen || link != &fabric_.port(h).egress(t.plane)) link->set_up(up);
  }
}

void Swarm::crash(HostId host) {
  if (!hosts_[host]->is_up()) return;
  for (OpState& s : states_) {
    if (s.op->from == host && s.completions == 0) s.is_void = true;
    if (s.op->to == host && s.receive_completions == 0) s.receive_void = true;
  }
  has_multi_receive_[host] = false;
  if (secure_) secure_->on_crash(host);
  hosts_[host]->crash();
}

void Swarm::restart(HostId host) {
  if (hosts_[host]->is_up()) return;
  hosts_[host]->restart();
  ++lives_[host];
  ++result_.counters.restarts;
  watch_windows(host);
  open_memory(host);
  open_datagrams(host);
  if (hostile_) hostile_->open(host);
  connect(host);
  // Operations that were not posted before the crash are posted after the restart; posted ones are lost.
}

// --- The course of a world ----------------------------------------------------------------------

/// Runs events up to `end`, or until `done`; null: up to `end`. True when it got there.
bool Swarm::run_until(SimTime end, bool (Swarm::*done)()) {
  constexpr int kStride = 64;  // looking costs more than one event
  while (!has_failed()) {
    if (done != nullptr && (this->*done)()) return true;
    for (int i = 0; i < kStride; ++i) {
      if (simulation_.events.next_at() > end || !simulation_.events.run_next())
        return done == nullptr || (this->*done)();
    }
    const std::uint64_t most = plan_.may_inject() ? kMaxEventsInjected : kMaxEvents;
    if (simulation_.events.events_run() > most)
      fail_hard(fmt::format("{} events and no end:{}", most, unfinished()));
  }
  return false;
}

void Swarm::count() {
  SwarmCounters& c = result_.counters;
  for (Link* link : fabric_.all_links()) {
    const FaultCounters faults = link->fault_counters();
    for (std::size_t i = 0; i < kFaultCount; ++i) c.faults[i] += faults[i];
  }
  for (std::size_t i = 0; i < kTroubleCount; ++i)
    c.troubles[i] += plan_.has(static_cast<Trouble>(i)) ? 1 : 0;
  for (const OpState& s : states_) {
    ++c.ops[static_cast<std::size_t>(s.op->kind)];
    ++c.modes[static_cast<std::size_t>(plan_.mode_of(*s.op))];
    if (!s.op->is_datagram() || s.completions == 0) continue;
    const auto arrivals = static_cast<std::uint64_t>(s.deliveries);
    c.datagrams += arrivals > 0;
    c.datagrams_lost += arrivals == 0;
    c.datagram_copies += arrivals > 1 ? arrivals - 1 : 0;
  }
  for (const auto& host : hosts_) {
    c.retransmissions += host->count(base::EventId::kPacketRetransmitted);
    c.nacks += host->count(base::EventId::kNackReceived);
    c.timeouts += host->count(base::EventId::kTimeout);
    c.pdcs += host->count(base::EventId::kPdcOpened);
  }
  c.events = simulation_.events.events_run();
  ++c.profiles[static_cast<std::size_t>(plan_.profile)];
  if (secure_) {
    c.secured = 1;
    c.sealed_packets = secure_->sealed().sealed();
    c.rotations = secure_->rotations();
    c.link_attack_packets = secure_->attacker().packets();
    c.link_attacks = secure_->attacker().attacks();
    c.secure_modes[static_cast<std::size_t>(plan_.secure.domain.mode)] = 1;
    c.counters_lost = secure_->counters_lost();
  }
  if (!hostile_) return;
  c.hostile = 1;
  c.attack_packets = hostile_->packets_sent();
  for (std::size_t i = 0; i < kAttackKindCount; ++i)
    c.attacks[i] += plan_.attack.has(static_cast<AttackKind>(i)) ? 1 : 0;
}

void Swarm::dump_recorders() {
  for (const auto& host : hosts_) {
    if (!host->is_up()) continue;
    const auto p = host->fep().pds().gauges();
    const SlabPool& pool = fabric_.port(host->id()).slab_pool();
    result_.last_events += fmt::format(
        "  host {}: {} of {} packets in use, {} PDCs open, {} half open, {} packets outstanding, "
        "{} messages "
        "queued, {} sends\n",
        host->id(), pool.in_use(), pool.capacity(), p.pdcs_open, p.pdcs_half_open,
        p.outstanding_packets, p.queued_messages, host->ses().gauges().sends_active);
    host->fep().pds().for_each_pdc([&](const pds::Pds::PdcView& v) {
      result_.last_events += fmt::format(
          "  host {} pdc {:>5} {} with {} ({}): {}, {} unacknowledged, {} to send again, {} "
          "messages "
          "queued, {} answers owed, {} kept, {} locks\n",
          host->id(), v.id, v.is_initiator ? "to" : "from", v.peer.to_string(),
          fep::name_of(v.mode), v.state, v.unacked, v.to_resend, v.queued, v.owed, v.stored,
          v.locks);
      return true;
    });
    host->fep().pds().for_each_congestion([&](const pds::Pds::CongestionView& v) {
      result_.last_events += fmt::format(
          "  host {} {} context with {}: window {}, in flight {}, credit {} bytes\n", host->id(),
          v.sprayed ? "sprayed" : "ordered", v.peer.to_string(), v.ccc.window_bytes(),
          v.ccc.inflight_bytes(), v.ccc.carries_credit() ? v.ccc.credit_bytes() : 0);
    });
    const std::vector<base::Event> events = host->trace().recorded();
    for (const base::Event& e : events) {
      const base::EventDescription& d = base::describe(e.id);
      result_.last_events += fmt::format(
          "  host {} {:>14.3f} us  {:<18} pdc {:>5} psn {:>10}  {} {}  {} {}\n", host->id(),
          static_cast<double>(e.at.ns()) / 1000, d.name, e.pdc, e.psn.value(), d.a, e.a, d.b, e.b);
    }
  }
}

/// Everything is over when the attacker on the links says it all again. Of what is complete nothing may be delivered once more,
/// also by a host that has forgotten its earlier life.
void Swarm::replay_everything() {
  std::vector<int> before;
  for (const OpState& s : states_) before.push_back(s.deliveries);
  // Sends that wait for ever at a host that started again keep notifications of others back.
  const bool is_over = std::all_of(states_.begin(), states_.end(),
                                   [](const OpState& s) { return s.is_void || s.completions > 0; });
  run_until(secure_->replay_everything(), nullptr);
  for (std::size_t i = 0; i < states_.size(); ++i) {
    const OpState& s = states_[i];
    // Datagrams are told apart by a replay window alone, and that goes with a crash. One that was lost comes late.
    const bool has_window = plan_.secure.domain.replay_window != 0 && !plan_.crashes(s.op->to);
    if (!is_over || (s.op->is_datagram() && !has_window)) continue;
    if (s.deliveries > std::max(before[i], 1))
      fail(fmt::format("op {} was delivered again by an attacker", s.op->id));
  }
}

/// Nothing is left to do, so nothing may happen: an endpoint that goes on turning costs its host a core.
void Swarm::rest() {
  hostile_->begin_rest();
  run_until(simulation_.now() + SimSpan::from(HostilePromises::kRest), nullptr);
  hostile_->check_rest();
}

SwarmResult Swarm::play() {
  SimTime calm = plan_.faults_end;
  for (const PlannedTrouble& t : plan_.troubles) calm = std::max(calm, t.until);
  for (const PlannedOp& op : plan_.ops) calm = std::max({calm, op.at, op.receive_at});
  if (hostile_) calm = std::max(calm, plan_.attack.end);
  if (!run_until(calm + kProgressLimit, &Swarm::all_done_now) && !has_failed()) {
    fail("no progress on a healthy path:" + unfinished());
  }
  // Late copies and restarts belong to the world even when all operations are done.
  if (!has_failed()) run_until(calm, nullptr);
  if (!has_failed() && secure_) replay_everything();
  SimSpan quiet_limit = kQuietLimit;
  if (hostile_) {
    // A peer that was heard and is silent now may be one that computes; only then is it given up.
    hostile_->check_bounds();
    quiet_limit = quiet_limit + SimSpan::from(plan_.fep.pds.peer_timeout) * 2 +
                  SimSpan::from(plan_.fep.ses.message_idle);
  }
  const bool may_rest = std::all_of(states_.begin(), states_.end(), [](const OpState& op) {
    return op.is_void || op.completions > 0;
  });
  if (!has_failed() && may_rest && !run_until(simulation_.now() + quiet_limit, &Swarm::quiet_now) &&
      !has_failed()) {
    std::string held;
    for (const auto& host : hosts_) {
      const auto p = host->fep().pds().gauges();
      const auto s = host->ses().gauges();
      if (host->fep().is_idle() && p.pdcs_open + p.pdcs_half_open + s.messages_receiving +
                                           s.unexpected_messages + s.reads_returning ==
                                       0)
        continue;
      held += fmt::format(
          " host {}: {} PDCs open, {} half open, {} packets outstanding, {} messages queued, {} "
          "sends, {} receiving, {} unexpected, {} reads returning;",
          host->id(), p.pdcs_open, p.pdcs_half_open, p.outstanding_packets, p.queued_messages,
          s.sends_active, s.messages_receiving, s.unexpected_messages, s.reads_returning);
    }
    fail(fmt::format("not quiet after everything completed:{} {} frames under way", held,
                     simulation_.frames.in_use()));
  }
  if (!has_failed() && hostile_ && is_quiet()) rest();
  if (!has_failed()) {
    check_memory();
    check_order();
    if (may_rest) check_pools();
  }
  if (!has_failed() && hostile_) hostile_->check_bounds();
  if (!has_failed() && secure_) secure_->check();
  count();
  if (has_failed()) dump_recorders();
  result_.fingerprint = simulation_.hash.value();
  result_.virtual_ms = simulation_.now().us() / 1000;
  return result_;
}

void SwarmCounters::add(const SwarmCounters& o) {
  for (std::size_t i = 0; i < faults.size(); ++i) faults[i] += o.faults[i];
  for (std::size_t i = 0; i < troubles.size(); ++i) troubles[i] += o.troubles[i];
  for (std::size_t i = 0; i < ops.size(); ++i) ops[i] += o.ops[i];
  for (std::size_t i = 0; i < modes.size(); ++i) modes[i] += o.modes[i];
  for (std::size_t i = 0; i < attacks.size(); ++i) attacks[i] += o.attacks[i];
  for (std::size_t i = 0; i < profiles.size(); ++i) profiles[i] += o.profiles[i];
  for (std::size_t i = 0; i < link_attacks.size(); ++i) link_attacks[i] += o.link_attacks[i];
  for (std::size_t i = 0; i < secure_modes.size(); ++i) secure_modes[i] += o.secure_modes[i];
  secured += o.secured;
  counters_lost += o.counters_lost;
  sealed_packets += o.sealed_packets;
  rotations += o.rotations;
  link_attack_packets += o.link_attack_packets;
  hostile += o.hostile;
  attack_packets += o.attack_packets;
  excused += o.excused;
  bytes += o.bytes;
  completions += o.completions;
  failed_ops += o.failed_ops;
  retransmissions += o.retransmissions;
  nacks += o.nacks;
  timeouts += o.timeouts;
  pdcs += o.pdcs;
  events += o.events;
  truncated += o.truncated;
  restarts += o.restarts;
  multi_received += o.multi_received;
  peeked += o.peeked;
  claimed += o.claimed;
  discarded += o.discarded;
  cancelled += o.cancelled;
  datagrams += o.datagrams;
  datagrams_lost += o.datagrams_lost;
  datagram_copies += o.datagram_copies;
}

SwarmResult run_world(const SwarmPlan& plan, std::size_t recorded_events) {
  return Swarm(plan, recorded_events).play();
}

}  // namespace uet::sim
