#include "apps/sim/secure_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "apps/sim/swarm_planner.h"
#include "sim/sim_port.h"

namespace uet::sim {

using base::Duration;

std::string_view name_of(SecureAttack attack) {
  constexpr std::array<std::string_view, kSecureAttackCount> kNames = {
      "replay-sealed", "reflect", "flip",   "splice", "cut",
      "impersonate",   "reroute", "remark", "hold"};
  return kNames[static_cast<std::size_t>(attack)];
}

std::string describe(const SecurePlan& plan) {
  if (!plan.is_on) return {};
  const tss::DomainConfig& d = plan.domain;
  return fmt::format(
      "  secured: {} mode{}{}, epoch {}, replay window {}, {} readable bytes, openings {}, trim "
      "hints {}, keys "
      "rotate "
      "every {} packets within {:.1f} us, {:.2f} attacks for a packet after up to {:.1f} us, "
      "{:.3f} "
      "held{}{}\n",
      d.mode == tss::Mode::kServer ? fmt::format("server ({} servers)", plan.servers)
                                   : std::string(name_of(d.mode)),
      d.ssi_mode ? " with SSI" : "", d.rekey.mask != 0 ? ", renewed keys" : "", d.epoch,
      d.replay_window, d.clear_bytes,
      d.opening == tss::OpeningMethod::kExpected ? "expected" : "challenged",
      d.trim_hints ? "on" : "off", plan.rotate_packets, plan.skew.us(), plan.attack_rate,
      plan.attack_delay.us(), plan.hold_rate,
      plan.forgets ? ", nothing is remembered of closed PDCs" : "",
      plan.loses_counters ? ", counters are lost in crashes" : "");
}

std::string_view name_of(tss::Mode mode) {
  constexpr std::array<std::string_view, kSecureModeCount> kNames = {"direct", "cluster", "server"};
  return kNames[static_cast<std::size_t>(mode)];
}

namespace {

tss::DomainConfig choose_domain(base::Rng& rng, HostId hosts) {
  tss::DomainConfig c;
  c.sdi = 1 + rng.below(tss::kSdiMax);
  c.mode = rng.chance(0.5) ? tss::Mode::kDirect : tss::Mode::kCluster;
  c.ssi_mode = rng.chance(0.5);
  if (c.mode == tss::Mode::kCluster && rng.chance(0.5)) c.rekey = {.mask = 0x1c0, .shift = 6};
  if (rng.chance(0.4)) c.replay_window = 64u << rng.below(10);
  if (rng.chance(0.3)) c.clear_bytes = 12;
  if (rng.chance(0.3)) c.opening = tss::OpeningMethod::kChallenge;
  c.epoch = static_cast<std::uint16_t>(rng.next_u32());
  if (rng.chance(0.3))
    for (HostId h = 0; h < hosts; ++h)
      c.members.push_back({.ssi = c.ssi_mode ? ssi_of(h) : 0, .address = address_of(h)});
  return c;
}

/// With the specification's limits, see choose_profile(): a packet is lost also when it is cut and cannot be read, when so many overtake it that it
/// passes for a replay, and when an attacker holds it back. And answers to copies that were faster than the network make it look shorter than it is:
/// the window becomes too small for what has to go back before a peer has refused five times.
void lose_nothing(SecurePlan& s, SimSpan round_trip) {
  constexpr std::uint32_t kAsManyAsAreUnderWay = 4096;
  s.domain.trim_hints = true;
  s.hold_rate = 0;
  s.attack_lag = SimSpan::from_ps(round_trip.ps() / 2);
  if (s.domain.replay_window != 0)
    s.domain.replay_window = std::max(s.domain.replay_window, kAsManyAsAreUnderWay);
}

}  // namespace

/// Three in ten secured worlds are in server mode. Operations are turned to hosts of the other kind.
void Planner::choose_servers() {
  SecurePlan& s = plan_.secure;
  tss::DomainConfig& d = s.domain;
  s.servers = 1 + late_secure_.below(plan_.hosts() - 1);
  d.mode = tss::Mode::kServer;
  d.rekey = {};
  const HostId clients = plan_.hosts() - s.servers;
  for (PlannedOp& op : plan_.ops) {
    if (!are_strangers(s, op.from, op.to)) continue;
    op.to = op.from < s.servers ? s.servers + op.to % clients : op.to % s.servers;
  }
  limit_multi_receives();
}

/// A third of all worlds. Last, since it looks at what the others chose.
void Planner::choose_security(bool with_servers) {
  if (!secure_.chance(0.34)) return;
  SecurePlan& s = plan_.secure;
  s.is_on = true;
  s.seed = secure_.next_u64();
  s.domain = choose_domain(secure_, plan_.hosts());
  if (secure_.chance(0.8)) s.rotate_packets = 50 + secure_.below(450);
  const SimSpan round_trip = plan_.fabric.base_rtt();
  s.skew = round_trip * (1 + secure_.below(20));
  constexpr std::array kRates = {0.02, 0.1, 0.5};
  s.attack_rate = kRates[secure_.below(kRates.size())];
  s.attack_delay = secure_.chance(0.5) ? round_trip * 4 : busy_ * 3;
  s.forgets = secure_.chance(0.5);
  // A challenge has to be answered before it is forgotten, also by a host that is slow.
  s.domain.new_pdc_time = std::max(Duration::from_ms(20), round_trip.duration() * 8);
  s.domain.trim_hints = secure_.chance(0.5);
  plan_.fep.protection = fep::DataProtection::kTss;
  pds::PdsConfig& p = plan_.fep.pds;
  p.new_pdc_time = s.domain.new_pdc_time;
  if (s.forgets) p.tombstone_time = p.pdcid_quarantine = Duration{};
  if (late_secure_.chance(0.3) && with_servers) choose_servers();
  constexpr std::array kHoldRates = {0.0, 0.005, 0.05};
  s.hold_rate = kHoldRates[late_secure_.below(kHoldRates.size())];
  s.loses_counters = late_secure_.chance(0.9) && s.servers == 0;
  if (plan_.profile == Profile::kSpec) lose_nothing(s, round_trip);
}

}  // namespace uet::sim
