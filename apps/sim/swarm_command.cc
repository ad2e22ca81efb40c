#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "apps/sim/commands.h"
#include "apps/sim/swarm_shrink.h"
#include "apps/sim/swarm_world.h"

namespace uet::sim {

namespace {

struct Options {
  std::string seeds = "1..100";
  std::string ops, without;
  bool shrink = false, verbose = false, keep_going = false;
};

/// What the signal handler prints: the command that runs the current world again.
char g_reproduce[256];

extern "C" void on_fatal_signal(int signal) {
  constexpr char kText[] = "\nuet-sim swarm: a check of our own code failed. Again:\n  ";
  // Nothing can be done when writing fails here.
  (void)!write(STDERR_FILENO, kText, sizeof kText - 1);
  (void)!write(STDERR_FILENO, g_reproduce, std::strlen(g_reproduce));
  (void)!write(STDERR_FILENO, "\n", 1);
  std::signal(signal, SIG_DFL);
  raise(signal);
}

struct SeedRange {
  std::uint64_t first = 0, last = 0;
};

std::optional<SeedRange> parse_seeds(const std::string& text) {
  char tail = 0;
  unsigned long long a = 0, b = 0;
  if (std::sscanf(text.c_str(), "%llu..%llu%c", &a, &b, &tail) == 2 && a <= b) {
    return SeedRange{a, b};
  }
  if (std::sscanf(text.c_str(), "%llu%c", &a, &tail) == 1) return SeedRange{a, a};
  return {};
}

std::optional<SwarmMask> parse_mask(const Options& o) {
  SwarmMask mask;
  std::istringstream ops(o.ops), without(o.without);
  for (std::string word; std::getline(ops, word, ',');) {
    unsigned id = 0;
    char tail = 0;
    if (std::sscanf(word.c_str(), "%u%c", &id, &tail) != 1) return {};
    mask.ops.insert(id);
  }
  for (std::string word; std::getline(without, word, ',');) mask.without.insert(word);
  return mask;
}

std::string command_for(std::uint64_t seed, const SwarmMask& mask) {
  std::string s = fmt::format("uet-sim swarm --seeds {0}..{0} --verbose", seed);
  if (!mask.ops.empty()) s += fmt::format(" --ops {}", fmt::join(mask.ops, ","));
  if (!mask.without.empty()) s += fmt::format(" --without {}", fmt::join(mask.without, ","));
  return s;
}

void print_summary(const SwarmCounters& c, std::uint64_t worlds, std::uint64_t failed,
                   double wall_s) {
  fmt::print("worlds {}  failed {}  in {:.1f} s ({:.0f} a second)\n", worlds, failed, wall_s,
             static_cast<double>(worlds) / wall_s);
  fmt::print("operations:");
  for (std::size_t i = 0; i < c.ops.size(); ++i)
    fmt::print("  {} {}", name_of(static_cast<SwarmOp>(i)), c.ops[i]);
  fmt::print("\ncompletions {}  failed by crashes {}  truncated {}  bytes {}\n", c.completions,
             c.failed_ops, c.truncated, c.bytes);
  fmt::print("packets lost or damaged:");
  for (std::size_t i = 0; i < kFaultCount; ++i)
    fmt::print("  {} {}", name_of(static_cast<Fault>(i)), c.faults[i]);
  fmt::print("\ntroubles (worlds):");
  for (std::size_t i = 0; i < kTroubleCount; ++i)
    fmt::print("  {} {}", name_of(static_cast<Trouble>(i)), c.troubles[i]);
  fmt::print("\nPDCs {}  retransmissions {}  NACKs {}  timeouts {}  restarts {}  events {}\n",
             c.pdcs, c.retransmissions, c.nacks, c.timeouts, c.restarts, c.events);
}

void report(std::uint64_t seed, const SwarmMask& mask, const SwarmPlan& plan,
            const std::string& failure) {
  fmt::print("FAILED seed {}: {}\n{}again: {}\n", seed, failure, describe(plan),
             command_for(seed, mask));
  std::fflush(stdout);
}

int swarm(const Options& o) {
  const auto seeds = parse_seeds(o.seeds);
  if (!seeds) {
    fmt::print(stderr, "uet-sim: --seeds wants A..B with A <= B, not '{}'\n", o.seeds);
    return kUsage;
  }
  const auto mask = parse_mask(o);
  if (!mask) {
    fmt::print(stderr, "uet-sim: --ops wants numbers with commas between, not '{}'\n", o.ops);
    return kUsage;
  }
  std::signal(SIGABRT, on_fatal_signal);
  std::signal(SIGSEGV, on_fatal_signal);
  SwarmCounters totals;
  std::uint64_t worlds = 0, failed = 0;
  const auto begin = std::chrono::steady_clock::now();
  for (std::uint64_t seed = seeds->first;; ++seed) {
    *fmt::format_to_n(g_reproduce, sizeof g_reproduce - 1, "{}", command_for(seed, *mask)).out = 0;
    SwarmPlan plan = plan_world(seed);
    apply(*mask, plan);
    if (o.verbose) fmt::print("{}", describe(plan));
    const SwarmResult result = run_world(plan);
    if (o.verbose) {
      fmt::print("seed {}: {}, {:.3f} ms, {} events, fingerprint {:016x}\n", seed,
                 result.failure.empty() ? "passed" : "FAILED", result.virtual_ms,
                 result.counters.events, result.fingerprint);
    }
    totals.add(result.counters);
    ++worlds;
    if (!result.failure.empty()) {
      ++failed;
      report(seed, *mask, plan, result.failure);
      if (o.verbose) fmt::print("{}", result.last_events);
      if (o.shrink) {
        const SwarmMask smaller = shrink(seed, *mask);
        SwarmPlan small = plan_world(seed);
        apply(smaller, small);
        fmt::print("shrunk:\n");
        report(seed, smaller, small, run_world(small).failure);
      }
      if (!o.keep_going) break;
    }
    if (seed == seeds->last) break;
  }
  const double wall_s =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  print_summary(totals, worlds, failed, wall_s);
  return failed == 0 ? kDone : kFailed;
}

}  // namespace

void add_swarm_command(CLI::App& app, int& exit_code) {
  auto o = std::make_shared<Options>();
  CLI::App* command =
      app.add_subcommand("swarm", "play random worlds and check that every promise is kept");
  command->add_option("--seeds", o->seeds, "which worlds: A..B, or one number")
      ->capture_default_str();
  command->add_option("--ops", o->ops, "only these operations of a world, with commas between");
  command->add_option("--without", o->without,
                      "leave out these faults and troubles, with commas between");
  command->add_flag("--shrink", o->shrink, "make a failing world as small as it goes");
  command->add_flag("--keep-going", o->keep_going, "do not stop at the first failing world");
  command->add_flag("--verbose", o->verbose, "describe every world");
  command->callback([o, &exit_code] { exit_code = swarm(*o); });
}

}  // namespace uet::sim
