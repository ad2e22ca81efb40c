#include "apps/sim/swarm_shrink.h"

#include <sys/time.h>
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

/// Of the processor, for a world that is made smaller: hundreds are tried, of which each may hang like the first.
constexpr int kLongestTrySeconds = 10;

/// A failure without times and numbers: smaller worlds fail in the same way and not with the same ones.
std::string kind_of(const std::string& failure) {
  std::string kind;
  constexpr std::size_t kEnough = 40;
  const std::size_t at = failure.find(" us: ");
  for (const char c : at == std::string::npos ? failure : failure.substr(at))
    if (std::isdigit(static_cast<unsigned char>(c)) == 0 && kind.size() < kEnough) kind += c;
  return kind;
}

/// A world to shrink, and how it fails.
struct Shrinking {
  std::uint64_t seed;
  std::string kind;
  SwarmMask mask;

  bool try_mask(const SwarmMask& smaller) {
    if (kind_of(failure_of(seed, smaller)) != kind) return false;
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

void limit_world(int seconds) {
  itimerval limit{};
  limit.it_value.tv_sec = seconds;
  (void)setitimer(ITIMER_PROF, &limit, nullptr);
}

std::string failure_of(std::uint64_t seed, const SwarmMask& mask) {
  const SwarmPlan plan = plan_world(seed, mask);
  if (plan.ops.empty() && !plan.attack.is_hostile()) return {};
  int ends[2];
  if (pipe(ends) != 0) return {};
  const pid_t pid = fork();
  if (pid == 0) {
    for (const int signal : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGPROF})
      std::signal(signal, SIG_DFL);
    limit_world(kLongestTrySeconds);  // a child inherits no timer
    const std::string failure = run_world(plan).failure;
    _exit(write(ends[1], failure.data(), failure.size()) < 0 ? 1 : 0);
  }
  close(ends[1]);
  constexpr std::size_t kLongest = 1024;
  std::string failure(kLongest, 0);
  const ssize_t n = read(ends[0], failure.data(), failure.size());
  failure.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
  close(ends[0]);
  int status = 0;
  if (pid < 0 || waitpid(pid, &status, 0) != pid) return {};
  return WIFEXITED(status) ? failure : "the process died";
}

SwarmMask shrink(std::uint64_t seed, const SwarmMask& failing) {
  Shrinking world{seed, kind_of(failure_of(seed, failing)), failing};
  if (world.kind.empty()) return failing;
  drop_episodes(world);
  drop_ops(world);
  drop_ingredients(world);
  drop_ops(world);
  return world.mask;
}

}  // namespace uet::sim
