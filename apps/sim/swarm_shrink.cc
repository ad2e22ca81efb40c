#include "apps/sim/swarm_shrink.h"

#include <algorithm>
#include <vector>

#include "apps/sim/swarm_world.h"

namespace uet::sim {

namespace {

bool still_fails(std::uint64_t seed, const SwarmMask& mask) {
  SwarmPlan plan = plan_world(seed);
  apply(mask, plan);
  return !plan.ops.empty() && !run_world(plan).failure.empty();
}

void drop_ingredients(std::uint64_t seed, SwarmMask& mask) {
  SwarmPlan plan = plan_world(seed);
  apply(mask, plan);
  for (const std::string& name : ingredients(plan)) {
    SwarmMask smaller = mask;
    smaller.without.insert(name);
    if (still_fails(seed, smaller)) mask = smaller;
  }
}

/// Tries to leave out ever smaller blocks of operations (delta debugging).
void drop_ops(std::uint64_t seed, SwarmMask& mask) {
  SwarmPlan plan = plan_world(seed);
  apply(mask, plan);
  std::vector<std::uint32_t> ids;
  for (const PlannedOp& op : plan.ops) ids.push_back(op.id);
  for (std::size_t block = std::max<std::size_t>(ids.size() / 2, 1); block > 0; block /= 2) {
    for (std::size_t from = 0; from < ids.size();) {
      std::vector<std::uint32_t> rest(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(from));
      rest.insert(rest.end(),
                  ids.begin() + static_cast<std::ptrdiff_t>(std::min(from + block, ids.size())),
                  ids.end());
      SwarmMask smaller = mask;
      smaller.ops = {rest.begin(), rest.end()};
      if (!rest.empty() && still_fails(seed, smaller)) {
        ids = rest;
        mask = smaller;
      } else {
        from += block;
      }
    }
  }
}

}  // namespace

SwarmMask shrink(std::uint64_t seed, const SwarmMask& failing) {
  SwarmMask mask = failing;
  drop_ops(seed, mask);
  drop_ingredients(seed, mask);
  drop_ops(seed, mask);
  return mask;
}

}  // namespace uet::sim
