#include "apps/sim/swarm_plan.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "apps/sim/swarm_planner.h"
#include "ses/payload_sizes.h"

namespace uet::sim {

using base::Duration;

/// Field of the profile that switches each fault on. kPartition is a trouble, not a probability.
double* probability(FaultProfile& p, Fault f) {
  switch (f) {
    case Fault::kLoss:
      return &p.loss;
    case Fault::kBurstLoss:
      return &p.burst_enter;
    case Fault::kDuplicate:
      return &p.duplicate;
    case Fault::kLateDuplicate:
      return &p.late_duplicate;
    case Fault::kReorder:
      return &p.reorder;
    case Fault::kCorrupt:
      return &p.corrupt;
    case Fault::kTruncate:
      return &p.truncate;
    case Fault::kTrim:
      return &p.trim;
    case Fault::kPartition:
    case Fault::kCount:
      break;
  }
  return nullptr;
}

void Planner::choose_fabric() {
  FabricConfig& f = plan_.fabric;
  f.hosts = 2 + rng_.below(7);
  f.tree = FatTree::for_hosts(f.hosts, 2);
  f.link_rate = one_of(std::array{base::BitRate::from_gbps(1), base::BitRate::from_gbps(10),
                                  base::BitRate::from_gbps(100)});
  f.hop_delay = SimSpan::from(one_of(std::array{Duration::from_ns(100), Duration::from_us(1),
                                                Duration::from_us(10), Duration::from_us(50)}));
  f.trimming = rng_.chance(0.5);
  f.mtu_payload = one_of(std::array{1024u, 2048u, 4096u});
  busy_ = SimSpan::from(
      one_of(std::array{Duration::from_us(50), Duration::from_ms(1), Duration::from_ms(10)}));
}

/// Half of a message whose sender crashed keeps its receive for so long. Longer than any outage that is not a crash.
constexpr Duration kMessageIdle = Duration::from_ms(2500);
/// No receive is posted in the new life of a host for a message of the old one. A send that waits for it keeps its place in
/// the window, and so what is behind it, until its sender gives up: when the last receive of any world has long been posted and
/// kMessageIdle is over.
constexpr Duration kPatience = Duration::from_seconds(3);

void Planner::choose_endpoint() {
  fep::FepConfig& c = plan_.fep;
  const FabricConfig& f = plan_.fabric;
  c.protection = fep::DataProtection::kCrc;
  c.payload_mtu = f.mtu_payload;
  c.burst = one_of(std::array{1u, 4u, 32u});

  c.cc.algorithm =
      one_of(std::array{cc::Algorithm::kNone, cc::Algorithm::kNscc, cc::Algorithm::kNscc,
                        cc::Algorithm::kRccc, cc::Algorithm::kBoth});
  c.cc.load_balancing = one_of(std::array{cc::LoadBalancing::kSingle, cc::LoadBalancing::kOblivious,
                                          cc::LoadBalancing::kBitmap, cc::LoadBalancing::kReps,
                                          cc::LoadBalancing::kMixed});
  c.cc.paths = one_of(std::array<std::uint16_t, 3>{4, 16, 64});
  c.cc.trimming = f.trimming;
  c.cc.config_base_rtt = f.base_rtt().duration();
  c.cc.link_rate = f.link_rate;

  pds::PdsConfig& p = c.pds;
  p.use_trimming = f.trimming;
  p.rto_init_time = std::max(Duration::from_us(200), f.base_rtt().duration() * 3);
  p.rto_max = Duration::from_ms(20);
  p.max_rto_retx_cnt = pds::PdsConfig::kNoTimeoutLimit;
  p.max_nack_retx_cnt = pds::PdsConfig::kNoNackLimit;
  p.nack_retx_time = Duration::from_us(300);
  p.pds_clear_time = Duration::from_us(500);
  p.close_req_time = Duration::from_us(500);
  p.pdc_idle_time =
      one_of(std::array{Duration::from_us(300), Duration::from_ms(3), Duration::from_ms(30)});
  p.syn_retx_safety_time = Duration::from_ms(5);
  p.ack_on_ecn = rng_.chance(0.8);
  p.enb_ack_per_pkt = rng_.chance(0.2);
  p.rod_reorder = rng_.chance(0.5);
  p.sack_loss_thresh = rng_.chance(0.3) ? 16 : 0;
  p.tail_loss_time = rng_.chance(0.3) ? Duration::from_us(400) : Duration{};
  p.max_pdc_per_key = static_cast<std::uint8_t>(1 + rng_.below(4));
  p.pdc_spread_bytes = 16 * 1024;
  p.peer_timeout = p.opening_patience = Duration::from_seconds(1);
  p.ses_procg_limit = kPatience;
  if (rng_.chance(0.3)) p.forced_start_psn = static_cast<std::uint32_t>(0u - (1 + rng_.below(200)));
  if (rng_.chance(0.25)) p.local_mp_range = 128;

  ses::SesConfig& s = c.ses;
  s.max_endpoints = 4;
  s.max_sends = 256;
  s.max_receives = 1024;
  s.max_messages = 256;
  s.max_peers = 16;
  s.max_memory_regions = 16;
  s.retry_backoff_min = Duration::from_us(100);
  s.retry_backoff_max = Duration::from_ms(100);
  // Some pauses are shorter, and a target that could not take a message for that long may have a new generation when it can.
  constexpr std::uint32_t kShorterPauses = 10, kAtOnce = 3;
  s.retry_limit = static_cast<std::uint32_t>(kPatience.ns() / s.retry_backoff_max.ns()) +
                  kShorterPauses + kAtOnce;
  s.message_idle = kMessageIdle;
  s.ri_reuse = Duration::from_ms(1);
  if (rng_.chance(0.2)) {
    p.max_pdc = 4 + rng_.below(8);
    p.max_messages = 8 + rng_.below(16);
    p.max_messages_per_pdc = 4;
    p.gtd_store_max = 8;
    s.max_sends = 16;
    s.max_messages = ses::SesConfig::kFewestMessages;
    s.overflow_msgs = 4;
    s.overflow_bytes = 128 * 1024;
    plan_.troubles.push_back({Trouble::kTinyTables, 0, {}, {}});
  } else {
    p.max_pdc = 128;
  }
  if (p.forced_start_psn != 0) plan_.troubles.push_back({Trouble::kPsnWrap, 0, {}, {}});
  if (p.local_mp_range == 128) {
    plan_.troubles.push_back({Trouble::kTinyWindow, 0, {}, {}});
    plan_.fep.ses.asked_packets = 2;
  }
  for (HostId h = 0; h < f.hosts; ++h) {
    plan_.ordered.push_back(rng_.chance(0.4));
    plan_.pool_packets.push_back(rng_.chance(0.15) ? 96 : 2048);
  }
}

void Planner::choose_faults() {
  constexpr std::array kRates = {0.001, 0.01, 0.05, 0.1};
  const bool is_clean = rng_.chance(0.1);
  for (std::size_t i = 0; i < kFaultCount; ++i) {
    double* p = probability(plan_.faults, static_cast<Fault>(i));
    // Draw always, so that one more fault kind changes no other world.
    const bool on = rng_.chance(0.35);
    const double rate = one_of(kRates);
    if (p != nullptr && on && !is_clean) *p = rate;
  }
  plan_.faults.burst_leave = 0.2;
  plan_.faults.corrupt = std::min(plan_.faults.corrupt, 0.05);
  plan_.faults.reorder_delay =
      SimSpan::from(one_of(std::array{Duration::from_us(5), Duration::from_us(100)}));
  plan_.faults.late_delay =
      SimSpan::from(one_of(std::array{Duration::from_ms(1), Duration::from_ms(20)}));
  plan_.faults_end = SimTime{} + busy_ * 3 + SimSpan::from(Duration::from_ms(5));
}

void Planner::choose_troubles() {
  const auto add = [this](Trouble kind, double chance, Duration longest) {
    const bool on = rng_.chance(chance);
    PlannedTrouble t{kind, any_host(), within(busy_ * 2), {}};
    t.until =
        t.at + SimSpan::from(Duration::from_us(10)) + (within(SimSpan::from(longest)) - SimTime{});
    if (on) plan_.troubles.push_back(t);
  };
  add(Trouble::kCrash, 0.15, Duration::from_ms(20));
  add(Trouble::kClockJump, 0.15, Duration::from_ms(1));
  add(Trouble::kPoolExhausted, 0.15, Duration::from_ms(5));
  add(Trouble::kSlowHost, 0.15, Duration::from_ms(20));
  add(Trouble::kPause, 0.15, Duration::from_ms(10));
  add(Trouble::kPartition, 0.15, Duration::from_ms(30));
}

std::uint32_t Planner::choose_size() {
  const std::uint32_t mtu = plan_.fabric.mtu_payload;
  switch (rng_.below(8)) {
    case 0:
      return 0;
    case 1:
      return 1 + rng_.below(64);
    case 2:
      return mtu - 1 + rng_.below(3);
    case 3:
      return mtu * (1 + rng_.below(8)) - 1 + rng_.below(3);
    case 4:
    case 5:
      return rng_.below(4 * mtu);
    default:
      return rng_.below(PlannedOp::kLongest);
  }
}

void Planner::choose_ops() {
  const std::uint32_t count = 1 + rng_.below(rng_.chance(0.3) ? 200 : 40);
  for (std::uint32_t i = 0; i < count; ++i) {
    PlannedOp op;
    op.id = i + 1;
    op.kind =
        one_of(std::array{SwarmOp::kSend, SwarmOp::kTaggedSend, SwarmOp::kWrite, SwarmOp::kRead});
    op.from = any_host();
    op.to = (op.from + 1 + rng_.below(plan_.fabric.hosts - 1)) % plan_.fabric.hosts;
    op.bytes = choose_size();
    op.at = within(busy_);
    op.receive_at = rng_.chance(0.5) ? SimTime{} : within(busy_ * 2);
    const bool is_short = op.kind == SwarmOp::kTaggedSend && rng_.chance(0.1);
    op.receive_bytes = is_short ? rng_.below(op.bytes + 1) : op.bytes + rng_.below(100);
    op.inject =
        op.kind != SwarmOp::kRead && op.bytes <= PlannedOp::kShortInject && rng_.chance(0.5);
    op.delivery_complete = rng_.chance(0.3);
    op.fence = rng_.chance(0.05);
    op.wants_data = op.kind == SwarmOp::kSend || rng_.chance(0.5);
    plan_.ops.push_back(op);
  }
}

/// Ways to receive that are not a plain receive.
void Planner::choose_more() {
  for (HostId h = 0; h < plan_.fabric.hosts; ++h) plan_.multi_receive.push_back(more_.chance(0.2));
  constexpr std::array kActions = {ses::PeekAction::kPeek, ses::PeekAction::kPeek,
                                   ses::PeekAction::kClaim, ses::PeekAction::kDiscard};
  for (PlannedOp& op : plan_.ops)
    if (op.kind == SwarmOp::kTaggedSend && more_.chance(0.2))
      op.peek = kActions[claims_.below(kActions.size())];
  limit_multi_receives();
}

void Planner::limit_multi_receives() {
  if (!plan_.has(Trouble::kTinyWindow)) return;
  // The next multi-receive buffer waits until all messages in the present one are complete. A message that has no room there and
  // must be delivered before it is answered keeps the window where it is, and the rest of one in the buffer may be behind that.
  // The window is there to limit this [PDS 19 R17], so a program must not rely on more.
  for (PlannedOp& op : plan_.ops)
    if (op.kind == SwarmOp::kSend && plan_.multi_receive[op.to]) op.delivery_complete = false;
}

/// RUDI and UUD, in half of all worlds.
void Planner::choose_single_packets() {
  const std::uint32_t mtu = plan_.fabric.mtu_payload;
  const std::uint32_t count = single_.chance(0.5) ? 0 : 1 + single_.below(40);
  for (std::uint32_t i = 0; i < count; ++i) {
    PlannedOp op;
    op.id = static_cast<std::uint32_t>(plan_.ops.size()) + 1;
    constexpr std::array kKinds = {SwarmOp::kRudiWrite, SwarmOp::kRudiRead, SwarmOp::kDatagram};
    op.kind = kKinds[single_.below(kKinds.size())];
    op.from = single_.below(plan_.fabric.hosts);
    op.to = (op.from + 1 + single_.below(plan_.fabric.hosts - 1)) % plan_.fabric.hosts;
    op.bytes = single_.chance(0.2) ? mtu - single_.below(2) : single_.below(mtu + 1);
    op.at = SimTime::from_ps(
        static_cast<std::int64_t>(single_.unit() * static_cast<double>(busy_.ps())));
    op.inject = !op.is_read() && op.bytes <= PlannedOp::kShortInject && single_.chance(0.5);
    op.delivery_complete = op.kind == SwarmOp::kRudiWrite && single_.chance(0.3);
    op.fence = single_.chance(0.05);
    op.wants_data = op.is_datagram();
    plan_.ops.push_back(op);
  }
}

/// A third of all worlds have fabrics side by side; in most of these some host, or all of them, lose one for a while.
void Planner::choose_planes() {
  FabricConfig& f = plan_.fabric;
  const auto part_of = [this](SimSpan span) {
    return SimSpan::from_ps(
        static_cast<std::int64_t>(planes_.unit() * static_cast<double>(span.ps())));
  };
  if (!planes_.chance(0.33)) return;
  f.planes = 2 + planes_.below(3);
  plan_.fep.cc.link_rate = f.host_rate();
  const std::uint32_t outages = planes_.chance(0.25) ? 0 : 1 + planes_.below(4);
  for (std::uint32_t i = 0; i < outages; ++i) {
    const auto kind = planes_.chance(0.75) ? Trouble::kPlaneOutage : Trouble::kDeadPlane;
    PlannedTrouble t{kind, planes_.below(f.hosts), SimTime{} + part_of(busy_ * 2), {}};
    t.plane = planes_.below(f.planes);
    t.until =
        t.at + SimSpan::from(Duration::from_us(10)) + part_of(SimSpan::from(Duration::from_ms(30)));
    plan_.troubles.push_back(t);
  }
}

/// What is forgotten sooner than the last copy of a packet dies can be delivered twice: tombstones and quarantine promise
/// nothing about packets that live longer. Each link may hold a packet, or a copy of it, back once more.
void Planner::remember_long_enough() {
  const FaultProfile& f = plan_.faults;
  constexpr Duration kQueues = Duration::from_ms(10);  // full buffers and busy hosts on the way
  SimSpan life = (f.late_delay + f.reorder_delay) * plan_.fabric.tree.longest_hops();
  for (const PlannedTrouble& t : plan_.troubles) life = life + (t.until - t.at);
  const Duration memory = life.duration() + kQueues;
  pds::PdsConfig& p = plan_.fep.pds;
  const bool is_own = plan_.profile == Profile::kOwn;
  p.tombstone_time = is_own ? memory : std::max(memory, p.tombstone_time);
  p.pdcid_quarantine = is_own ? memory : std::max(memory, p.pdcid_quarantine);
}

std::string_view name_of(SwarmOp op) {
  constexpr std::array<std::string_view, static_cast<std::size_t>(SwarmOp::kCount)> kNames = {
      "send", "tagged-send", "write", "read", "rudi-write", "rudi-read", "datagram"};
  return kNames[static_cast<std::size_t>(op)];
}

std::string_view name_of(SwarmMode mode) {
  constexpr std::array<std::string_view, kSwarmModeCount> kNames = {"RUD", "ROD", "RUDI", "UUD"};
  return kNames[static_cast<std::size_t>(mode)];
}

std::string_view name_of(Profile profile) {
  constexpr std::array<std::string_view, static_cast<std::size_t>(Profile::kCount)> kNames = {
      "own", "specification", "software"};
  return kNames[static_cast<std::size_t>(profile)];
}

bool parse(std::string_view name, SwarmMode& mode) {
  const auto same = [](char a, char b) { return std::toupper(static_cast<unsigned char>(a)) == b; };
  for (std::size_t i = 0; i < kSwarmModeCount; ++i) {
    mode = static_cast<SwarmMode>(i);
    const std::string_view known = name_of(mode);
    if (std::equal(name.begin(), name.end(), known.begin(), known.end(), same)) return true;
  }
  return false;
}

std::string_view name_of(Trouble trouble) {
  constexpr std::array<std::string_view, kTroubleCount> kNames = {
      "crash",       "clock-jump", "pool-exhausted", "slow-host",    "pause",     "outage",
      "tiny-window", "psn-wrap",   "tiny-tables",    "plane-outage", "dead-plane"};
  return kNames[static_cast<std::size_t>(trouble)];
}

bool SwarmPlan::has(Trouble kind) const {
  return std::any_of(troubles.begin(), troubles.end(),
                     [kind](const PlannedTrouble& t) { return t.kind == kind; });
}

/// Half of the worlds that have ordered traffic. Few hosts do not restore order, and some of these claim to.
void Planner::choose_spray() {
  plan_.fep.ses.spray_ordered = false;  // each host has its own
  const bool is_on = spray_.chance(0.5);
  const bool is_short = spray_.chance(0.2);
  const bool any_ordered = std::any_of(plan_.ordered.begin(), plan_.ordered.end(),
                                       [](bool is_ordered) { return is_ordered; });
  if (!is_on || !any_ordered) return;
  for (HostId h = 0; h < plan_.hosts(); ++h) {
    const bool sprays = spray_.chance(0.9);
    plan_.sprays.push_back(sprays);
    plan_.claims_to_restore.push_back(sprays || spray_.chance(0.5));
  }
  if (is_short) plan_.fep.ses.max_streams = 2;
  plan_.attack.numbers = true;
}

/// Two fifths of the worlds: some messages begin so, others when there was no room for them, and half of the stores are small.
void Planner::choose_rendezvous() {
  plan_.fep.ses.rendezvous = false;  // each host has its own
  constexpr double kShare = 0.4;
  if (!rendezvous_.chance(kShare)) return;
  constexpr std::array<std::uint64_t, 4> kFrom = {1, 3000, 20'000, 100'000};
  constexpr std::array<std::uint32_t, 4> kEager = {0, 0, 1000, 10'000};
  constexpr std::array<std::uint32_t, 4> kFetches = {1, 2, 8, 256};
  ses::SesConfig& c = plan_.fep.ses;
  if (rendezvous_.chance(0.5)) c.rendezvous_from = kFrom[rendezvous_.below(kFrom.size())];
  c.rendezvous_eager = kEager[rendezvous_.below(kEager.size())];
  c.max_fetches = kFetches[rendezvous_.below(kFetches.size())];
  plan_.overflow_bytes = c.overflow_bytes;
  if (rendezvous_.chance(0.5)) c.overflow_bytes = std::min<std::uint64_t>(c.overflow_bytes, 24'000);
  for (HostId h = 0; h < plan_.hosts(); ++h) {
    const bool fetches = rendezvous_.chance(0.9);
    plan_.fetches.push_back(fetches);
    plan_.claims_to_fetch.push_back(fetches || rendezvous_.chance(0.5));
  }
  plan_.attack.rendezvous = true;
}

/// A third of the worlds: hosts that put messages off, and most of which send such as can be. What is put off at a host that crashes
/// then is given up after kPatience.
void Planner::choose_deferrals() {
  constexpr double kShare = 0.33;
  if (!deferrals_.chance(kShare)) return;
  constexpr std::array<std::uint64_t, 4> kKept = {0, 3000, 20'000, 1 << 20};
  ses::SesConfig& c = plan_.fep.ses;
  c.overflow_max = kKept[deferrals_.below(kKept.size())];
  c.max_deferred_of_peer = deferrals_.chance(0.3) ? 1 : 8;
  c.restart_limit = kPatience;
  for (HostId h = 0; h < plan_.hosts(); ++h) plan_.defers.push_back(deferrals_.chance(0.8));
}

/// Hosts that receive their tagged messages one after the other, each when the one before is complete, in any order. Such a program
/// is a right one whatever its sends need: every message that it waits for has been sent, or will be. So all of it has to end, with any
/// store, where nothing but the store is small, and all hosts fetch what has no room.
void Planner::choose_programs() {
  const bool is_on = programs_.chance(0.5);
  const bool all_fetch =
      plan_.has_rendezvous() &&
      std::all_of(plan_.fetches.begin(), plan_.fetches.end(), [](bool fetches) { return fetches; });
  if (!is_on || !all_fetch || plan_.attack.is_hostile() || plan_.has(Trouble::kTinyTables) ||
      plan_.has(Trouble::kCrash))
    return;
  plan_.fep.ses.max_memory_regions = 256;  // each announcement holds one until its turn comes
  for (HostId h = 0; h < plan_.hosts(); ++h) {
    std::vector<PlannedOp*> receives;
    for (PlannedOp& op : plan_.ops)
      if (op.kind == SwarmOp::kTaggedSend && op.to == h && !op.peek) receives.push_back(&op);
    for (std::uint32_t i = 0; i < receives.size(); ++i)
      std::swap(receives[i],
                receives[i + programs_.below(static_cast<std::uint32_t>(receives.size()) - i)]);
    for (std::size_t i = 1; i < receives.size(); ++i)
      receives[i]->receive_after = receives[i - 1]->id;
  }
}

/// Half of the worlds: injected operations for which no user waits, with the settings of real endpoints for silence and losses.
void Planner::choose_patience() {
  if (!patience_.chance(0.5)) return;
  plan_.is_patient = true;
  pds::PdsConfig& c = plan_.fep.pds;
  plan_.hasty_tail_loss_time = c.tail_loss_time;
  plan_.hasty_tail_loss_asks = c.tail_loss_asks;
  plan_.hasty_reorder_window = c.reorder_window;
  constexpr std::array kSilences = {Duration::from_us(100), Duration::from_us(400),
                                    Duration::from_ms(1)};
  if (c.tail_loss_time == Duration{})
    c.tail_loss_time = kSilences[patience_.below(kSilences.size())];
  c.tail_loss_asks = true;
  if (c.reorder_window == Duration{} && patience_.chance(0.5))
    c.reorder_window = Duration::from_us(50);
  for (PlannedOp& op : plan_.ops) op.completion_may_wait = op.inject && patience_.chance(0.8);
}

/// Half of the worlds with the smallest payload: that of an Ethernet with its usual MTU. [decision 169]
void Planner::choose_ethernet() {
  if (plan_.fabric.mtu_payload != ses::kSmallestPayload || !ethernet_.chance(0.5)) return;
  plan_.fep.payload_mtu = plan_.fabric.mtu_payload = ses::kEthernetPayload;
}

/// Half of the worlds: injected messages of several packets, as long as those of real endpoints. [decision 172]
void Planner::choose_long_injects() {
  if (!long_injects_.chance(0.5)) return;
  constexpr std::uint32_t kMost = 16384;
  plan_.fep.ses.inject_size = kMost;
  for (PlannedOp& op : plan_.ops) {
    const bool can_be = (op.is_send() || op.kind == SwarmOp::kWrite) && op.bytes <= kMost;
    if (!can_be || op.bytes <= PlannedOp::kShortInject || !long_injects_.chance(0.5)) continue;
    op.inject = true;
    op.completion_may_wait = plan_.is_patient && long_injects_.chance(0.8);
  }
}

/// In a few of the worlds with small packets one READ is so long that what comes behind a request that was lost is more than any window
/// of packet delivery. [decision 108] Small tables refuse requests for longer than the specification's limits allow.
void Planner::choose_long_reads() {
  const std::uint32_t payload = plan_.fabric.mtu_payload;
  const bool is_refused_too_often = plan_.profile == Profile::kSpec && small_tables_;
  if (payload > ses::kEthernetPayload || is_refused_too_often || !long_reads_.chance(0.1)) return;
  const auto read = std::ranges::find(plan_.ops, SwarmOp::kRead, &PlannedOp::kind);
  if (read != plan_.ops.end())
    read->bytes = (3072 + long_reads_.below(3072)) * payload + long_reads_.below(payload);
}

/// Half of the worlds with deferrals and without what leaves receives waiting in other ways: one host sends another a burst of messages
/// that are put off, and takes them back while they are asked for all at once, and wait for each other.
void Planner::choose_cancels() {
  const bool is_on = cancels_.chance(0.5);
  const HostId from = cancels_.below(plan_.hosts());
  if (!is_on || !plan_.has_deferrals() || plan_.has_rendezvous() || plan_.has_programs() ||
      plan_.attack.is_hostile() || plan_.secure.is_on || plan_.has(Trouble::kCrash) ||
      plan_.ordered[from] || !plan_.defers[from])
    return;
  const auto part_of = [this](SimSpan span) {
    return SimSpan::from_ps(
        static_cast<std::int64_t>(cancels_.unit() * static_cast<double>(span.ps())));
  };
  const SimSpan round = plan_.fabric.base_rtt();
  const SimTime at = SimTime{} + part_of(busy_ * 2);
  const std::uint32_t count = 4 + cancels_.below(17);
  PlannedOp op;
  op.kind = SwarmOp::kTaggedSend;
  op.from = from;
  op.to = (from + 1 + cancels_.below(plan_.hosts() - 1)) % plan_.hosts();
  op.bytes = op.receive_bytes = plan_.fabric.mtu_payload * (2 + cancels_.below(14));
  op.at = at;
  op.receive_at = at + round * (cancels_.chance(0.8) ? 8 : 0);
  const SimSpan sending = SimSpan::from(
      plan_.fabric.link_rate.time_for(static_cast<base::ByteCount>(op.bytes) * count));
  for (std::uint32_t i = 0; i < count; ++i) {
    op.id = static_cast<std::uint32_t>(plan_.ops.size()) + 1;
    op.cancel_after = part_of(std::max(round * 3, sending));
    plan_.ops.push_back(op);
  }
}

bool SwarmPlan::has_programs() const {
  return std::any_of(ops.begin(), ops.end(),
                     [](const PlannedOp& op) { return op.receive_after != 0; });
}

bool SwarmPlan::has(SwarmMode mode) const {
  return std::any_of(ops.begin(), ops.end(),
                     [this, mode](const PlannedOp& op) { return mode_of(op) == mode; });
}

bool SwarmPlan::crashes(HostId host) const {
  return std::any_of(troubles.begin(), troubles.end(), [host](const PlannedTrouble& t) {
    return t.kind == Trouble::kCrash && t.host == host;
  });
}

SwarmMode SwarmPlan::mode_of(const PlannedOp& op) const {
  if (op.is_rudi()) return SwarmMode::kRudi;
  if (op.is_datagram()) return SwarmMode::kUud;
  const bool in_context = ordered[op.from] && !is_sprayed(op.from, op.to);
  return op.is_send() && in_context ? SwarmMode::kRod : SwarmMode::kRud;
}

bool SwarmPlan::is_calm() const {
  const auto is_setting = [](const PlannedTrouble& t) {
    return t.kind == Trouble::kTinyWindow || t.kind == Trouble::kPsnWrap;
  };
  return faults.is_perfect() && std::all_of(troubles.begin(), troubles.end(), is_setting);
}

SwarmPlan plan_world(std::uint64_t seed, bool with_hostile, bool with_secure, bool with_servers) {
  return Planner(seed).plan(with_hostile, with_secure, with_servers);
}

SwarmPlan plan_world(std::uint64_t seed, const SwarmMask& mask) {
  SwarmPlan plan = plan_world(seed, !mask.without.contains("hostile"),
                              !mask.without.contains("secure"), !mask.without.contains("servers"));
  apply(mask, plan);
  return plan;
}

}  // namespace uet::sim
