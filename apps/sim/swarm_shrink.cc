#include "apps/sim/swarm_shrink.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <csignal>
#include <string>
#include <vector>

#include "apps/sim/swarm_world.h"

namespace uet::sim {

namespace {

/// What kind of failure a world ends with: its message without times and numbers, "crash", or nothing. In a process of its own,
/// since a world may fail by killing it.
std::string failure_kind(std::uint64_t seed, const SwarmMask& mask) {
  const SwarmPlan plan = plan_world(seed, mask);
  if (plan.ops.empty() && !plan.attack.is_hostile()) return {};
  int ends[2];
  if (pipe(ends) != 0) return {};
  const pid_t pid = fork();
  if (pid == 0) {
    for (const int signal : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL}) std::signal(signal, SIG_DFL);
    const std::string failure = run_world(plan).failure;
    _exit(write(ends[1], failure.data(), failure.size()) < 0 ? 1 : 0);
  }
  close(ends[1]);
  std::string failure(512, 0);
  failure.resize(static_cast<std::size_t>(std::max<ssize_t>(0, read(ends[0], failure.data(), failure.size()))));
  close(ends[0]);
  int status = 0;
  if (pid < 0 || waitpid(pid, &status, 0) != pid) return {};
  if (!WIFEXITED(status)) return "crash";
  std::string kind;
  constexpr std::size_t kEnough = 40;
  for (const char c : failure.substr(std::min(failure.size(), failure.find(" us: "))))
    if (std::isdigit(static_cast<unsigned char>(c)) == 0 && kind.size() < kEnough) kind += c;
  return kind;
}

/// A world to shrink, and how it fails.
struct Shrinking {
  std::uint64_t seed;
  std::string kind;
  SwarmMask mask;

  bool try_mask(const SwarmMask& smaller) {
    if (failure_kind(seed, smaller) != kind) return false;
    mask = smaller;
    return true;
  }
};

void drop_ingredients(Shrinking& world) {
  for (const std::string& name : ingredients(plan_world(world.seed, world.mask))) {
    SwarmMask smaller = world.mask;
    smaller.without.insert(name);
    world.try_mask(smaller);
  }
}

/// Tries to leave out ever smaller blocks of `ids`, of which `chosen` keeps the rest (delta debugging).
void drop(Shrinking& world, std::vector<std::uint32_t> ids,
          std::set<std::uint32_t> SwarmMask::*chosen) {
  for (std::size_t block = std::max<std::size_t>(ids.size() / 2, 1); block > 0; block /= 2) {
    for (std::size_t from = 0; from < ids.size();) {
      std::vector<std::uint32_t> rest(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(from));
      rest.insert(rest.end(),
                  ids.begin() + static_cast<std::ptrdiff_t>(std::min(from + block, ids.size())),
                  ids.end());
      SwarmMask smaller = world.mask;
      smaller.*chosen = {rest.begin(), rest.end()};
      if (!rest.empty() && world.try_mask(smaller)) {
        ids = rest;
      } else {
        from += block;
      }
    }
  }
}

void drop_ops(Shrinking& world) {
  std::vector<std::uint32_t> ids;
  for (const PlannedOp& op : plan_world(world.seed, world.mask).ops) ids.push_back(op.id);
  drop(world, std::move(ids), &SwarmMask::ops);
}

void drop_episodes(Shrinking& world) {
  std::vector<std::uint32_t> ids;
  for (const AttackEpisode& e : plan_world(world.seed, world.mask).attack.episodes)
    ids.push_back(e.id);
  drop(world, std::move(ids), &SwarmMask::episodes);
}

}  // namespace

SwarmMask shrink(std::uint64_t seed, const SwarmMask& failing) {
  Shrinking world{seed, failure_kind(seed, failing), failing};
  if (world.kind.empty()) return failing;
  drop_episodes(world);
  drop_ops(world);
  drop_ingredients(world);
  drop_ops(world);
  return world.mask;
}

}  // namespace uet::sim
