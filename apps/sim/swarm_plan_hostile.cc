// Attackers, and what worlds with attackers have besides.
#include <algorithm>

#include "apps/sim/swarm_planner.h"
#include "fep/settings/settings.h"
#include "sim/sim_port.h"

namespace uet::sim {

using base::Duration;

/// A third of all worlds.
void Planner::choose_hostile() {
  if (!hostile_.chance(0.34)) return;
  AttackPlan& a = plan_.attack;
  a.attackers = hostile_.chance(0.2) ? 2 : 1;
  choose_profile();
  choose_attack();
  choose_baits();
  choose_late_ops();
  FabricConfig& f = plan_.fabric;
  f.hosts += a.attackers;
  f.tree = FatTree::for_hosts(f.hosts, 2);
  plan_.pool_packets.resize(f.hosts, 2048);
}

namespace {

fep::FepConfig software_config(const FabricConfig& fabric) {
  net::PortFacts facts;
  facts.address = address_of(0);
  facts.ip_mtu = fabric.mtu_payload + 256;
  return fep::Settings::default_config(facts);
}

/// So that hundreds of packets fill what takes thousands otherwise.
void shrink_tables(fep::FepConfig& c) {
  c.pds.max_pdc = 192;
  c.pds.gtd_store_max = 256;
  c.pds.max_tombstones = 512;
  c.pds.max_messages = 512;
  c.ses.max_sends = 512;
  c.ses.max_messages = 192;
  c.ses.max_read_returns = 256;
  c.ses.overflow_msgs = 96;
  c.ses.overflow_msgs_total = 192;
  c.ses.overflow_bytes = 512 * 1024;
  c.ses.overflow_bytes_total = 1024 * 1024;
}

}  // namespace

/// The limits that real endpoints have as often as the specification's.
void Planner::choose_profile() {
  const double draw = hostile_.unit();
  small_tables_ = hostile_.chance(0.5);
  const bool is_calm = hostile_.chance(0.5);
  // Of fewer answers there are no shares: one peer may have them all (docs/security.md).
  plan_.fep.pds.gtd_store_max = std::max(plan_.fep.pds.gtd_store_max, 32u);
  if (draw < 0.2 || plan_.has(Trouble::kTinyTables)) return;
  plan_.profile = draw < 0.6 ? Profile::kSpec : Profile::kSoftware;
  const bool is_software = plan_.profile == Profile::kSoftware;

  fep::FepConfig& c = plan_.fep;
  const pds::PdsConfig own = c.pds;
  const fep::FepConfig wanted = is_software ? software_config(plan_.fabric) : fep::FepConfig{};
  c.pds = wanted.pds;
  c.ses = wanted.ses;
  c.ses.max_endpoints = 8;
  c.pds.use_trimming = own.use_trimming;
  c.pds.rto_init_time = std::max(c.pds.rto_init_time, plan_.fabric.base_rtt().duration() * 3);
  c.pds.forced_start_psn = own.forced_start_psn;
  if (plan_.has(Trouble::kTinyWindow)) c.pds.local_mp_range = own.local_mp_range;
  if (small_tables_) shrink_tables(c);
  // The specification counts timeouts and gives up; nothing may be lost five times in a row then. What a host that starts
  // again has forgotten takes longer to time out than a world lasts.
  if (!is_software || is_calm) plan_.faults = FaultProfile{};
  std::erase_if(plan_.troubles, [&](const PlannedTrouble& t) {
    const bool is_setting = t.kind == Trouble::kTinyWindow || t.kind == Trouble::kPsnWrap;
    return !is_setting && (!is_software || is_calm || t.kind == Trouble::kCrash);
  });
}

void Planner::choose_attack() {
  AttackPlan& a = plan_.attack;
  a.sight = hostile_.chance(0.25) ? Sight::kAll : Sight::kBlind;
  a.answers = hostile_.chance(0.8);
  // Long enough for PDCs that idle, are asked to close and are given up.
  const bool is_long = hostile_.chance(plan_.profile == Profile::kOwn ? 0.2 : 0.6);
  const SimSpan longest = is_long ? SimSpan::from(Duration::from_seconds(8))
                                  : busy_ * 3 + SimSpan::from(Duration::from_ms(50));
  a.end = SimTime{} + busy_ + part_of(longest);
  struct Weight {
    AttackKind kind;
    std::uint32_t weight;
  };
  constexpr std::array kWeights = {
      Weight{AttackKind::kConverse, 30},       Weight{AttackKind::kHalfOpen, 8},
      Weight{AttackKind::kFloodRequests, 8},   Weight{AttackKind::kFloodReads, 8},
      Weight{AttackKind::kFloodUnexpected, 8}, Weight{AttackKind::kPieces, 10},
      Weight{AttackKind::kForge, 12},          Weight{AttackKind::kReplay, 8},
      Weight{AttackKind::kGarble, 8}};
  const std::uint32_t episodes = 1 + hostile_.below(8);
  for (std::uint32_t i = 0; i < episodes; ++i) {
    std::uint32_t draw = hostile_.below(100);
    std::size_t k = 0;
    while (draw >= kWeights[k].weight) draw -= kWeights[k++].weight;
    choose_episode(kWeights[k].kind);
  }
}

void Planner::choose_episode(AttackKind kind) {
  AttackPlan& a = plan_.attack;
  AttackEpisode e;
  e.id = static_cast<std::uint32_t>(a.episodes.size()) + 1;
  e.kind = kind;
  e.attacker = hostile_.below(a.attackers);
  e.victim = hostile_.below(plan_.fabric.hosts);
  const SimSpan length = a.end - SimTime{};
  e.at = SimTime{} + part_of(length);
  e.seed = hostile_.next_u64();
  const bool is_flood = kind == AttackKind::kFloodRequests || kind == AttackKind::kFloodReads ||
                        kind == AttackKind::kFloodUnexpected || kind == AttackKind::kHalfOpen ||
                        kind == AttackKind::kPieces;
  if (is_flood) {
    // Fast, but far from filling a link: this is about what an endpoint keeps, not about bandwidth.
    const bool is_large = !small_tables_ && plan_.profile != Profile::kOwn && hostile_.chance(0.4);
    e.packets = 20 + hostile_.below(is_large ? 5000 : 700);
    e.gap = SimSpan::from(Duration::from_us(20)) + part_of(SimSpan::from(Duration::from_us(100)));
  } else {
    e.packets = 10 + hostile_.below(200);
    const SimSpan rest = a.end - e.at;
    e.gap = SimSpan::from_ps(part_of(rest).ps() / e.packets);
  }
  a.episodes.push_back(e);
}

void Planner::choose_baits() {
  AttackPlan& a = plan_.attack;
  const std::uint32_t count = hostile_.chance(0.3) ? 0 : 1 + hostile_.below(8);
  for (std::uint32_t i = 0; i < count; ++i) {
    Bait b;
    b.from = hostile_.below(plan_.fabric.hosts);
    b.attacker = hostile_.below(a.attackers);
    b.kind = static_cast<Bait::Kind>(hostile_.below(3));
    b.bytes = hostile_.below(6 * plan_.fabric.mtu_payload);
    b.at = SimTime{} + part_of(a.end - SimTime{});
    a.baits.push_back(b);
  }
}

/// Honest operations during the whole attack and a little longer, so that PDCs idle and are opened again.
void Planner::choose_late_ops() {
  const std::uint32_t hosts = plan_.fabric.hosts;
  const SimSpan time = plan_.attack.end - SimTime{} + SimSpan::from(Duration::from_ms(20));
  const std::uint32_t count = 2 + hostile_.below(24);
  constexpr std::array kKinds = {SwarmOp::kSend, SwarmOp::kTaggedSend, SwarmOp::kWrite,
                                 SwarmOp::kRead};
  for (std::uint32_t i = 0; i < count; ++i) {
    PlannedOp op;
    op.id = static_cast<std::uint32_t>(plan_.ops.size()) + 1;
    op.kind = kKinds[hostile_.below(kKinds.size())];
    op.from = hostile_.below(hosts);
    op.to = (op.from + 1 + hostile_.below(hosts - 1)) % hosts;
    op.bytes = hostile_.below(hostile_.chance(0.5) ? 100 : 5 * plan_.fabric.mtu_payload);
    op.at = SimTime{} + part_of(time);
    op.receive_at =
        hostile_.chance(0.7) ? op.at : op.at + part_of(SimSpan::from(Duration::from_ms(5)));
    op.receive_bytes = op.bytes;
    op.wants_data = op.kind == SwarmOp::kSend || hostile_.chance(0.5);
    plan_.ops.push_back(op);
  }
}

}  // namespace uet::sim
