#include "apps/sim/attack_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace uet::sim {

std::string_view name_of(AttackKind kind) {
  constexpr std::array<std::string_view, kAttackKindCount> kNames = {
      "converse", "half-open", "flood-requests", "flood-reads", "flood-unexpected",
      "pieces",   "forge",     "replay",         "garble"};
  return kNames[static_cast<std::size_t>(kind)];
}

bool AttackPlan::has(AttackKind kind) const {
  return std::any_of(episodes.begin(), episodes.end(),
                     [kind](const AttackEpisode& e) { return e.kind == kind; });
}

std::string describe(const AttackPlan& plan) {
  if (!plan.is_hostile()) return {};
  std::string s =
      fmt::format("  {} attackers, {}, {}, until {:.1f} us, {} baits\n", plan.attackers,
                  plan.sight == Sight::kAll ? "see everything" : "blind",
                  plan.answers ? "answer" : "never answer", plan.end.us(), plan.baits.size());
  for (const AttackEpisode& e : plan.episodes) {
    s += fmt::format(
        "  episode {}: {} by {} at host {}, about {} packets from {:.1f} us on, every {:.1f} us\n",
        e.id, name_of(e.kind), e.attacker, e.victim, e.packets, e.at.us(), e.gap.us());
  }
  return s;
}

}  // namespace uet::sim
