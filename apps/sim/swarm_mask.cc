// The ingredients of a world by their names: what it has, what a mask takes away, and the whole plan for people to read.
#include <fmt/format.h>

#include <algorithm>

#include "apps/sim/swarm_planner.h"
#include "ses/payload_sizes.h"

namespace uet::sim {

void apply(const SwarmMask& mask, SwarmPlan& plan) {
  if (mask.without.contains("spray-ordered")) {
    plan.sprays.clear();
    plan.claims_to_restore.clear();
    plan.attack.numbers = false;
  }
  if (mask.without.contains("rendezvous")) {
    plan.fetches.clear();
    plan.claims_to_fetch.clear();
    if (plan.overflow_bytes != 0) plan.fep.ses.overflow_bytes = plan.overflow_bytes;
    plan.attack.rendezvous = false;
  }
  if (mask.without.contains("deferrals")) plan.defers.clear();
  if (mask.without.contains("cancels") || mask.without.contains("deferrals"))
    std::erase_if(plan.ops, [](const PlannedOp& op) { return op.is_cancelled(); });
  if (mask.without.contains("programs") || mask.without.contains("rendezvous"))
    for (PlannedOp& op : plan.ops) op.receive_after = 0;
  if (mask.without.contains("patience") && plan.is_patient) {
    plan.is_patient = false;
    plan.fep.pds.tail_loss_time = plan.hasty_tail_loss_time;
    plan.fep.pds.tail_loss_asks = plan.hasty_tail_loss_asks;
    plan.fep.pds.reorder_window = plan.hasty_reorder_window;
    for (PlannedOp& op : plan.ops) op.completion_may_wait = false;
  }
  if (mask.without.contains("ethernet") && plan.fabric.mtu_payload == ses::kEthernetPayload)
    plan.fep.payload_mtu = plan.fabric.mtu_payload = ses::kSmallestPayload;
  if (mask.without.contains("long-injects"))
    for (PlannedOp& op : plan.ops)
      if (op.is_long_inject()) op.inject = op.completion_may_wait = false;
  if (mask.without.contains("long-reads"))
    for (PlannedOp& op : plan.ops)
      if (op.is_long_read()) op.bytes = PlannedOp::kLongest;
  if (!mask.ops.empty()) {
    std::erase_if(plan.ops, [&](const PlannedOp& op) { return !mask.ops.contains(op.id); });
  }
  if (!mask.modes.empty()) {
    std::erase_if(plan.ops,
                  [&](const PlannedOp& op) { return !mask.modes.contains(plan.mode_of(op)); });
  }
  if (mask.without.contains("more")) {
    std::erase_if(plan.ops, [](const PlannedOp& op) { return op.is_rudi() || op.is_datagram(); });
    for (PlannedOp& op : plan.ops) op.peek.reset();
    plan.multi_receive.assign(plan.fabric.hosts, false);
  }
  if (!mask.episodes.empty()) {
    std::erase_if(plan.attack.episodes,
                  [&](const AttackEpisode& e) { return !mask.episodes.contains(e.id); });
  }
  if (mask.without.contains("baits")) plan.attack.baits.clear();
  if (mask.without.contains("link-attacker")) plan.secure.attack_rate = plan.secure.hold_rate = 0;
  if (mask.without.contains("hold")) plan.secure.hold_rate = 0;
  if (mask.without.contains("lost-counters")) plan.secure.loses_counters = false;
  if (mask.without.contains("rotation")) plan.secure.rotate_packets = 0;
  for (std::size_t i = 0; i < kFaultCount; ++i) {
    const auto fault = static_cast<Fault>(i);
    double* p = probability(plan.faults, fault);
    if (p != nullptr && mask.without.contains(std::string(name_of(fault)))) *p = 0;
  }
  if (mask.without.contains("planes")) {
    plan.fabric.planes = 1;
    plan.fep.cc.link_rate = plan.fabric.link_rate;
    std::erase_if(plan.troubles, [](const PlannedTrouble& t) { return t.is_of_plane(); });
  }
  std::erase_if(plan.troubles, [&](const PlannedTrouble& t) {
    if (!mask.without.contains(std::string(name_of(t.kind)))) return false;
    const fep::FepConfig usual;
    if (t.kind == Trouble::kPsnWrap) plan.fep.pds.forced_start_psn = 0;
    if (t.kind == Trouble::kTinyWindow) {
      plan.fep.pds.local_mp_range = usual.pds.local_mp_range;
      plan.fep.ses.asked_packets = usual.ses.asked_packets;
    }
    if (t.kind == Trouble::kTinyTables) {
      plan.fep.pds.max_pdc = 128;
      plan.fep.pds.max_messages = usual.pds.max_messages;
      plan.fep.pds.max_messages_per_pdc = usual.pds.max_messages_per_pdc;
      plan.fep.pds.gtd_store_max = usual.pds.gtd_store_max;
      plan.fep.ses.max_sends = 256;
      plan.fep.ses.max_messages = 256;
      plan.fep.ses.overflow_msgs = usual.ses.overflow_msgs;
      plan.fep.ses.overflow_bytes = usual.ses.overflow_bytes;
    }
    return true;
  });
}

std::vector<std::string> ingredients(const SwarmPlan& plan) {
  std::vector<std::string> names = {"more"};
  if (plan.attack.is_hostile()) names.emplace_back("hostile");
  if (!plan.attack.baits.empty()) names.emplace_back("baits");
  if (plan.secure.is_on)
    names.insert(names.end(), {"link-attacker", "hold", "lost-counters", "rotation", "secure"});
  if (plan.fabric.planes > 1) names.emplace_back("planes");
  if (plan.sprays_order()) names.emplace_back("spray-ordered");
  if (plan.has_rendezvous()) names.emplace_back("rendezvous");
  if (plan.has_deferrals()) names.emplace_back("deferrals");
  if (plan.has_programs()) names.emplace_back("programs");
  if (plan.is_patient) names.emplace_back("patience");
  if (plan.fabric.mtu_payload == ses::kEthernetPayload) names.emplace_back("ethernet");
  if (std::ranges::any_of(plan.ops, &PlannedOp::is_long_inject)) names.emplace_back("long-injects");
  if (std::ranges::any_of(plan.ops, &PlannedOp::is_long_read)) names.emplace_back("long-reads");
  if (std::ranges::any_of(plan.ops, &PlannedOp::is_cancelled)) names.emplace_back("cancels");
  FaultProfile faults = plan.faults;
  for (std::size_t i = 0; i < kFaultCount; ++i) {
    const double* p = probability(faults, static_cast<Fault>(i));
    if (p != nullptr && *p > 0) names.emplace_back(name_of(static_cast<Fault>(i)));
  }
  for (std::size_t i = 0; i < kTroubleCount; ++i)
    if (plan.has(static_cast<Trouble>(i))) names.emplace_back(name_of(static_cast<Trouble>(i)));
  return names;
}

std::vector<std::string> known_ingredients() {
  std::vector<std::string> names = {"hostile",    "baits",         "secure",     "link-attacker",
                                    "hold",       "lost-counters", "rotation",   "servers",
                                    "planes",     "spray-ordered", "rendezvous", "deferrals",
                                    "programs",   "patience",      "ethernet",   "long-injects",
                                    "long-reads", "cancels",       "more"};
  FaultProfile faults;
  for (std::size_t i = 0; i < kFaultCount; ++i)
    if (probability(faults, static_cast<Fault>(i)) != nullptr)
      names.emplace_back(name_of(static_cast<Fault>(i)));
  for (std::size_t i = 0; i < kTroubleCount; ++i)
    names.emplace_back(name_of(static_cast<Trouble>(i)));
  return names;
}

std::string describe(const SwarmPlan& plan) {
  std::string s = fmt::format(
      "seed {}: {} hosts, {} x {} Gb/s, hop {} ns, payload {}, trimming {}, cc {}, lb {}, {} "
      "operations, {} limits\n",
      plan.seed, plan.fabric.hosts, plan.fabric.planes, plan.fabric.link_rate.bps() / 1'000'000'000,
      plan.fabric.hop_delay.ps() / 1000, plan.fabric.mtu_payload, plan.fabric.trimming,
      cc::name_of(plan.fep.cc.algorithm), cc::name_of(plan.fep.cc.load_balancing), plan.ops.size(),
      name_of(plan.profile));
  s += describe(plan.attack);
  s += describe(plan.secure);
  if (plan.sprays_order()) {
    s += fmt::format("  ordered sends are sprayed, {} streams:", plan.fep.ses.max_streams);
    for (std::size_t h = 0; h < plan.sprays.size(); ++h)
      s += plan.sprays[h] ? (plan.ordered[h] ? " yes" : " restores")
                          : (plan.claims_to_restore[h] ? " lies" : " no");
    s += '\n';
  }
  if (plan.has_rendezvous()) {
    const ses::SesConfig& c = plan.fep.ses;
    s += fmt::format("  rendezvous from {} bytes, {} eager, {} fetches, {} bytes of store:",
                     c.rendezvous_from, c.rendezvous_eager, c.max_fetches, c.overflow_bytes);
    for (std::size_t h = 0; h < plan.fetches.size(); ++h)
      s += plan.fetches[h] ? " yes" : (plan.claims_to_fetch[h] ? " lies" : " no");
    s += '\n';
  }
  if (plan.is_patient)
    s += fmt::format("  a peer that is silent for {} us is asked\n",
                     plan.fep.pds.tail_loss_time.ns() / 1000);
  if (plan.has_programs()) s += "  each host receives its tagged messages one after the other\n";
  if (plan.has_deferrals()) {
    s += fmt::format("  messages beyond {} bytes are put off; hosts that let theirs:",
                     plan.fep.ses.overflow_max);
    for (const bool defers : plan.defers) s += defers ? " yes" : " no";
    s += '\n';
  }
  FaultProfile faults = plan.faults;
  for (std::size_t i = 0; i < kFaultCount; ++i) {
    const double* p = probability(faults, static_cast<Fault>(i));
    if (p != nullptr && *p > 0) s += fmt::format("  {} {}\n", name_of(static_cast<Fault>(i)), *p);
  }
  for (const PlannedTrouble& t : plan.troubles) {
    s += fmt::format("  {} host {}{} from {:.1f} to {:.1f} us\n", name_of(t.kind), t.host,
                     t.is_of_plane() ? fmt::format(" plane {}", t.plane) : "", t.at.us(),
                     t.until.us());
  }
  constexpr std::size_t kMaxShown = 12;
  for (std::size_t i = 0; i < std::min(plan.ops.size(), kMaxShown); ++i) {
    const PlannedOp& op = plan.ops[i];
    s += fmt::format(
        "  op {}: {} {}->{} {} bytes at {:.1f} us{}{}{}{}{}{}\n", op.id, name_of(op.kind), op.from,
        op.to, op.bytes, op.at.us(),
        op.is_send()
            ? fmt::format(", receive of {} at {:.1f} us", op.receive_bytes, op.receive_at.us())
            : "",
        op.inject ? ", inject" : "", op.completion_may_wait ? ", may wait" : "",
        op.delivery_complete ? ", delivery complete" : "", op.fence ? ", fence" : "",
        op.is_cancelled()
            ? fmt::format(", cancelled {:.1f} us after both are posted", op.cancel_after->us())
            : "");
  }
  if (plan.ops.size() > kMaxShown)
    s += fmt::format("  ... and {} more\n", plan.ops.size() - kMaxShown);
  return s;
}

}  // namespace uet::sim
