#include "apps/sim/swarm_shrink.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <vector>

#include "apps/sim/swarm_world.h"

namespace uet::sim {

namespace {

/// In a process of its own, since a world may fail by killing it.
bool still_fails(std::uint64_t seed, const SwarmMask& mask) {
  const SwarmPlan plan = plan_world(seed, mask);
  if (plan.ops.empty() && !plan.attack.is_hostile()) return false;
  const pid_t pid = fork();
  if (pid == 0) {
    for (const int signal : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL}) std::signal(signal, SIG_DFL);
    _exit(run_world(plan).failure.empty() ? 0 : 1);
  }
  int status = 0;
  if (pid < 0 || waitpid(pid, &status, 0) != pid) return false;
  return !WIFEXITED(status) || WEXITSTATUS(status) != 0;
}

void drop_ingredients(std::uint64_t seed, SwarmMask& mask) {
  const SwarmPlan plan = plan_world(seed, mask);
  for (const std::string& name : ingredients(plan)) {
    SwarmMask smaller = mask;
    smaller.without.insert(name);
    if (still_fails(seed, smaller)) mask = smaller;
  }
}

/// Tries to leave out ever smaller blocks of `ids`, of which `chosen` keeps the rest (delta debugging).
void drop(std::uint64_t seed, SwarmMask& mask, std::vector<std::uint32_t> ids,
          std::set<std::uint32_t> SwarmMask::*chosen) {
  for (std::size_t block = std::max<std::size_t>(ids.size() / 2, 1); block > 0; block /= 2) {
    for (std::size_t from = 0; from < ids.size();) {
      std::vector<std::uint32_t> rest(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(from));
      rest.insert(rest.end(),
                  ids.begin() + static_cast<std::ptrdiff_t>(std::min(from + block, ids.size())),
                  ids.end());
      SwarmMask smaller = mask;
      smaller.*chosen = {rest.begin(), rest.end()};
      if (!rest.empty() && still_fails(seed, smaller)) {
        ids = rest;
        mask = smaller;
      } else {
        from += block;
      }
    }
  }
}

void drop_ops(std::uint64_t seed, SwarmMask& mask) {
  std::vector<std::uint32_t> ids;
  for (const PlannedOp& op : plan_world(seed, mask).ops) ids.push_back(op.id);
  drop(seed, mask, std::move(ids), &SwarmMask::ops);
}

void drop_episodes(std::uint64_t seed, SwarmMask& mask) {
  std::vector<std::uint32_t> ids;
  for (const AttackEpisode& e : plan_world(seed, mask).attack.episodes) ids.push_back(e.id);
  drop(seed, mask, std::move(ids), &SwarmMask::episodes);
}

}  // namespace

SwarmMask shrink(std::uint64_t seed, const SwarmMask& failing) {
  SwarmMask mask = failing;
  drop_episodes(seed, mask);
  drop_ops(seed, mask);
  drop_ingredients(seed, mask);
  drop_ops(seed, mask);
  return mask;
}

}  // namespace uet::sim
