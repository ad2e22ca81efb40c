#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "apps/sim/commands.h"
#include "apps/sim/swarm_shrink.h"
#include "apps/sim/swarm_world.h"
#include "lib/base/planted.h"

namespace uet::sim {

namespace {

struct SwarmOptions {
  std::string seeds = "1..100";
  std::string ops, without, modes, episodes, only;
  bool shrink = false, verbose = false, keep_going = false, expect_all = false;
  std::size_t recorded_events = 40;
  unsigned jobs = 1;
  std::string plant = std::string(base::name_of(base::PlantedBug::kNone));
};

/// A world takes milliseconds. One that is still busy after so long hangs inside a single event.
constexpr int kLongestWorldSeconds = 120;

/// What the signal handler prints: the command that runs the current world again.
char g_reproduce[256];

extern "C" void on_fatal_signal(int signal) {
  constexpr char kCheck[] = "\nuet-sim swarm: a check of our own code failed. Again:\n  ";
  constexpr char kHang[] = "\nuet-sim swarm: a world does not come to an end. Again:\n  ";
  // Nothing can be done when writing fails here.
  if (signal == SIGPROF)
    (void)!write(STDERR_FILENO, kHang, sizeof kHang - 1);
  else
    (void)!write(STDERR_FILENO, kCheck, sizeof kCheck - 1);
  (void)!write(STDERR_FILENO, g_reproduce, std::strlen(g_reproduce));
  (void)!write(STDERR_FILENO, "\n", 1);
  std::signal(signal, SIG_DFL);
  raise(signal);
}

struct SeedRange {
  std::uint64_t first = 0, last = 0;
};

/// Digits and nothing else.
template <typename T>
std::optional<T> whole_number(std::string_view text) {
  T value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return {};
  return value;
}

std::optional<SeedRange> parse_seeds(std::string_view text) {
  constexpr std::string_view kTo = "..";
  const std::size_t at = text.find(kTo);
  const auto first = whole_number<std::uint64_t>(text.substr(0, at));
  const auto last =
      at == text.npos ? first : whole_number<std::uint64_t>(text.substr(at + kTo.size()));
  if (!first || !last || *first > *last) return {};
  return SeedRange{*first, *last};
}

std::string list_ingredients() {
  std::string text;
  for (const std::string& name : known_ingredients()) text += (text.empty() ? "" : ", ") + name;
  return text;
}

/// The first word of --without that is no ingredient.
std::optional<std::string> unknown_ingredient(const SwarmMask& mask) {
  const std::vector<std::string> known = known_ingredients();
  for (const std::string& word : mask.without)
    if (std::find(known.begin(), known.end(), word) == known.end()) return word;
  return {};
}

std::optional<SwarmMask> parse_mask(const SwarmOptions& o) {
  SwarmMask mask;
  std::istringstream ops(o.ops), episodes(o.episodes), without(o.without), modes(o.modes);
  for (std::string word; std::getline(ops, word, ',');) {
    const auto id = whole_number<unsigned>(word);
    if (!id) return {};
    mask.ops.insert(*id);
  }
  for (std::string word; std::getline(episodes, word, ',');) {
    const auto id = whole_number<unsigned>(word);
    if (!id) return {};
    mask.episodes.insert(*id);
  }
  for (std::string word; std::getline(without, word, ',');) mask.without.insert(word);
  for (std::string word; std::getline(modes, word, ',');) {
    SwarmMode mode{};
    if (!parse(word, mode)) return {};
    mask.modes.insert(mode);
  }
  return mask;
}

std::string command_for(std::uint64_t seed, const SwarmMask& mask) {
#ifdef UET_PLANTED_BUGS
  std::string s = fmt::format("uet-sim-planted swarm --seeds {0}..{0} --verbose --plant {1}", seed,
                              base::name_of(base::planted_bug));
#else
  std::string s = fmt::format("uet-sim swarm --seeds {0}..{0} --verbose", seed);
#endif
  // By hand: fmt::join makes g++ 12 see an overflow that is none when it optimises for release.
  const auto list = [&s](std::string_view option, const auto& values, const auto& text) {
    std::string_view before = option;
    for (const auto& value : values) {
      s.append(before).append(text(value));
      before = ",";
    }
  };
  list(" --ops ", mask.ops, [](auto op) { return std::to_string(op); });
  list(" --episodes ", mask.episodes, [](auto id) { return std::to_string(id); });
  list(" --modes ", mask.modes, [](SwarmMode mode) { return name_of(mode); });
  list(" --without ", mask.without, [](const std::string& what) { return what; });
  return s;
}

/// What one process found out about its share of the worlds. Travels through a pipe as it is.
struct Totals {
  SwarmCounters counters;
  std::uint64_t worlds = 0, failed = 0;
  unsigned unplayed = 0;  ///< shares that no process played, or not to their end

  void add(const Totals& o) {
    counters.add(o.counters);
    worlds += o.worlds;
    failed += o.failed;
    unplayed += o.unplayed;
  }
};
static_assert(std::is_trivially_copyable_v<Totals>);

/// Prints one line of names and counts; tells of names that never occurred.
template <typename Name, std::size_t N>
std::string list_counts(const char* title, const std::array<std::uint64_t, N>& counts) {
  std::string absent;
  fmt::print("{}:", title);
  for (std::size_t i = 0; i < N; ++i) {
    const auto name = name_of(static_cast<Name>(i));
    fmt::print("  {} {}", name, counts[i]);
    if (counts[i] == 0) absent += fmt::format(" {}", name);
  }
  fmt::print("\n");
  return absent;
}

/// Returns the names of what never occurred, but not of what was not asked for.
std::string print_summary(const Totals& totals, double wall_s, bool wants_hostile,
                          bool wants_secure) {
  const SwarmCounters& c = totals.counters;
  fmt::print("worlds {}  failed {}  in {:.1f} s ({:.0f} a second)\n", totals.worlds, totals.failed,
             wall_s, static_cast<double>(totals.worlds) / wall_s);
  std::string absent = list_counts<SwarmOp>("operations", c.ops);
  absent += list_counts<SwarmMode>("messages by mode", c.modes);
  absent += list_counts<Fault>("packets lost or damaged", c.faults);
  absent += list_counts<Trouble>("troubles (worlds)", c.troubles);
  fmt::print("completions {}  failed by crashes {}  truncated {}  bytes {}\n", c.completions,
             c.failed_ops, c.truncated, c.bytes);
  if (c.hostile > 0) {
    fmt::print("hostile worlds {}  packets of attackers {}  promises excused {}\n", c.hostile,
               c.attack_packets, c.excused);
    absent += list_counts<AttackKind>("attacks (worlds)", c.attacks);
    absent += list_counts<Profile>("limits (worlds)", c.profiles);
  } else if (wants_hostile) {
    absent += " attackers";
  }
  if (c.secured > 0) {
    fmt::print(
        "secured worlds {}  sealed packets {}  rotations {}  restarts without counters {}  packets "
        "of "
        "attackers on links {}\n",
        c.secured, c.sealed_packets, c.rotations, c.counters_lost, c.link_attack_packets);
    absent += list_counts<tss::Mode>("secured worlds by mode", c.secure_modes);
    absent += list_counts<SecureAttack>("attacks on links", c.link_attacks);
    absent += c.rotations > 0 ? "" : " rotation";
    absent += c.counters_lost > 0 ? "" : " restart-without-counters";
  } else if (wants_secure) {
    absent += " secured-worlds";
  }
  absent += c.multi_received > 0 ? "" : " multi-receive";
  absent += c.peeked > 0 ? "" : " peek";
  absent += c.claimed > 0 ? "" : " claim";
  absent += c.discarded > 0 ? "" : " discard";
  absent += c.datagrams > 0 ? "" : " datagram-that-arrives";
  absent += c.datagrams_lost > 0 ? "" : " datagram-that-is-lost";
  absent += c.datagram_copies > 0 ? "" : " datagram-that-comes-twice";
  fmt::print(
      "messages found by peek {} (claimed {}, discarded {})  in multi-receive buffers {}  "
      "cancelled {}\n",
      c.peeked, c.claimed, c.discarded, c.multi_received, c.cancelled);
  fmt::print("datagrams that arrived {}  were lost {}  came again {}\n", c.datagrams,
             c.datagrams_lost, c.datagram_copies);
  fmt::print("PDCs {}  retransmissions {}  NACKs {}  timeouts {}  restarts {}  events {}\n", c.pdcs,
             c.retransmissions, c.nacks, c.timeouts, c.restarts, c.events);
  return absent;
}

void report(std::uint64_t seed, const SwarmMask& mask, const SwarmPlan& plan,
            const std::string& failure) {
  fmt::print("FAILED seed {}: {}\n{}again: {}\n", seed, failure, describe(plan),
             command_for(seed, mask));
  std::fflush(stdout);
}

void report_shrunk(std::uint64_t seed, const SwarmMask& mask) {
  const SwarmMask smaller = shrink(seed, mask);
  const SwarmPlan small = plan_world(seed, smaller);
  fmt::print("shrunk:\n");
  report(seed, smaller, small, failure_of(seed, smaller));
}

/// One world, from its seed to its report.
void play(std::uint64_t seed, const SwarmOptions& o, const SwarmMask& mask, Totals& totals) {
  const std::string again = command_for(seed, mask);
  g_reproduce[again.copy(g_reproduce, sizeof g_reproduce - 1)] = 0;
  limit_world(kLongestWorldSeconds);
  const SwarmPlan plan = plan_world(seed, mask);
  if (o.verbose) fmt::print("{}", describe(plan));
  const SwarmResult result = run_world(plan, o.recorded_events);
  limit_world(0);
  if (o.verbose) {
    fmt::print("seed {}: {}, {:.3f} ms, {} events, fingerprint {:016x}\n", seed,
               result.failure.empty() ? "passed" : "FAILED", result.virtual_ms,
               result.counters.events, result.fingerprint);
  }
  totals.counters.add(result.counters);
  ++totals.worlds;
  if (result.failure.empty()) return;
  ++totals.failed;
  report(seed, mask, plan, result.failure);
  if (o.verbose) fmt::print("{}", result.last_events);
  if (o.shrink) report_shrunk(seed, mask);
}

bool is_wanted(std::uint64_t seed, const SwarmOptions& o, const SwarmMask& mask) {
  if (!mask.ops.empty() && plan_world(seed, mask).ops.empty()) return false;
  if (o.only.empty()) return true;
  const SwarmPlan plan = plan_world(seed);
  if (o.only == "secure") return plan.secure.is_on;
  return plan.attack.is_hostile() == (o.only == "hostile");
}

/// What a process has played so far; in memory that outlives it, for it may die in a world.
struct Share {
  Totals totals;
  std::uint64_t seed = 0;  ///< of the world that it plays
  bool is_done = false;
};
static_assert(std::is_trivially_copyable_v<Share>);

/// Every `step`-th world of the range.
void play_range(const SeedRange& seeds, std::uint64_t step, const SwarmOptions& o,
                const SwarmMask& mask, Share& share) {
  for (std::uint64_t seed = seeds.first; seed <= seeds.last; seed += step) {
    share.seed = seed;
    if (is_wanted(seed, o, mask)) play(seed, o, mask, share.totals);
    if (share.totals.failed > 0 && !o.keep_going) break;
    if (seeds.last - seed < step) break;
  }
  share.is_done = true;
}

/// Shares the worlds among processes: a world that crashes takes only its own process with it, and with --keep-going another
/// one goes on behind it. Where no process can be started the others play theirs; what is missing is said, and counted.
Totals play_in_processes(const SeedRange& seeds, const SwarmOptions& o, const SwarmMask& mask) {
  void* const memory = mmap(nullptr, o.jobs * sizeof(Share), PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    fmt::print(stderr, "uet-sim: no memory for {} jobs: {}\n", o.jobs, std::strerror(errno));
    return {.unplayed = o.jobs};
  }
  auto* const shares = static_cast<Share*>(memory);
  std::map<pid_t, unsigned> children;
  const auto start = [&](unsigned i, std::uint64_t first) {
    std::fflush(stdout);
    const pid_t pid = fork();
    if (pid == 0) {
      play_range({first, seeds.last}, o.jobs, o, mask, shares[i]);
      std::fflush(stdout);
      _exit(kDone);
    }
    if (pid > 0) {
      children[pid] = i;
      return;
    }
    const int why = errno;
    ++shares[i].totals.unplayed;
    fmt::print(stderr,
               "uet-sim: cannot start a process: {}; of the worlds from {} on, one in {} is not "
               "played\n",
               std::strerror(why), first, o.jobs);
  };
  for (unsigned i = 0; i < o.jobs && seeds.first + i <= seeds.last; ++i) {
    new (&shares[i]) Share;
    start(i, seeds.first + i);
  }
  while (!children.empty()) {
    const pid_t pid = waitpid(-1, nullptr, 0);
    const auto child = children.find(pid);
    if (child == children.end()) continue;
    Share& share = shares[child->second];
    const unsigned i = child->second;
    children.erase(child);
    if (share.is_done) continue;
    ++share.totals.failed;  // it has said why
    ++share.totals.worlds;
    fmt::print("FAILED seed {}: the process died\n", share.seed);
    if (o.shrink) report_shrunk(share.seed, mask);
    if (o.keep_going && seeds.last - share.seed >= o.jobs) start(i, share.seed + o.jobs);
  }
  Totals all;
  for (unsigned i = 0; i < o.jobs && seeds.first + i <= seeds.last; ++i) all.add(shares[i].totals);
  munmap(memory, o.jobs * sizeof(Share));
  return all;
}

/// False when this build has no such bug.
bool plant([[maybe_unused]] const std::string& name) {
#ifdef UET_PLANTED_BUGS
  for (std::size_t i = 0; i < static_cast<std::size_t>(base::PlantedBug::kCount); ++i) {
    if (base::name_of(static_cast<base::PlantedBug>(i)) != name) continue;
    base::planted_bug = static_cast<base::PlantedBug>(i);
    return true;
  }
  return false;
#else
  return name == base::name_of(base::PlantedBug::kNone);
#endif
}

int swarm(const SwarmOptions& o) {
  if (!plant(o.plant)) {
    fmt::print(stderr, "uet-sim: no bug '{}' can be planted in this build\n", o.plant);
    return kUsage;
  }
  const auto seeds = parse_seeds(o.seeds);
  if (!seeds) {
    fmt::print(stderr, "uet-sim: --seeds wants A..B with A <= B, not '{}'\n", o.seeds);
    return kUsage;
  }
  const auto mask = parse_mask(o);
  if (!mask) {
    fmt::print(stderr,
               "uet-sim: --ops and --episodes want numbers with commas between, not '{}' and '{}', "
               "--modes some of rud,rod,rudi,uud, not '{}'\n",
               o.ops, o.episodes, o.modes);
    return kUsage;
  }
  if (const auto unknown = unknown_ingredient(*mask)) {
    fmt::print(stderr, "uet-sim: --without: '{}' is none of {}\n", *unknown, list_ingredients());
    return kUsage;
  }
  for (const int signal : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGPROF})
    std::signal(signal, on_fatal_signal);
  const auto begin = std::chrono::steady_clock::now();
  Share alone;
  const bool in_processes = o.jobs > 1 || o.keep_going || o.shrink;
  if (!in_processes) play_range(*seeds, 1, o, *mask, alone);
  const Totals totals = in_processes ? play_in_processes(*seeds, o, *mask) : alone.totals;
  const double wall_s =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  if (totals.worlds == 0 && totals.unplayed > 0) return kFailed;  // it has said why
  const std::string absent =
      print_summary(totals, wall_s, !mask->without.contains("hostile") && o.only != "honest",
                    !mask->without.contains("secure"));
  if (o.expect_all && !absent.empty()) {
    fmt::print("FAILED: these never occurred:{}\n", absent);
    return kFailed;
  }
  if (totals.worlds == 0) {
    fmt::print(stderr, "uet-sim: {}: no world of --seeds {} is one of these\n",
               mask->ops.empty() ? "--only " + o.only : "--ops " + o.ops, o.seeds);
    return kFailed;
  }
  return totals.failed == 0 && totals.unplayed == 0 ? kDone : kFailed;
}

}  // namespace

void add_swarm_command(CLI::App& app, int& exit_code) {
  auto o = std::make_shared<SwarmOptions>();
  CLI::App* command =
      app.add_subcommand("swarm", "play random worlds and check that every promise is kept");
  command->add_option("--seeds", o->seeds, "which worlds: A..B, or one number")
      ->capture_default_str();
  command->add_option("--ops", o->ops, "only these operations of a world, with commas between");
  command->add_option("--episodes", o->episodes,
                      "only these episodes of attackers, with commas between");
  command
      ->add_option("--only", o->only,
                   "only worlds with attackers, only those without, or only secured ones")
      ->check(CLI::IsMember({"hostile", "honest", "secure"}));
  command->add_option("--modes", o->modes,
                      "only operations of these delivery modes: some of rud,rod,rudi,uud");
  command->add_option("--without", o->without,
                      "leave these out, with commas between: " + list_ingredients());
  command->add_flag("--shrink", o->shrink, "make a failing world as small as it goes");
  command->add_flag("--keep-going", o->keep_going, "do not stop at the first failing world");
  command->add_flag("--expect-all", o->expect_all,
                    "fail when some fault, trouble, mode or operation never occurred, or no world "
                    "with attackers or under keys was played");
#ifdef UET_PLANTED_BUGS
  command->add_option("--plant", o->plant, "break this rule, to see that it is noticed");
#endif
  command->add_option("--jobs", o->jobs, "processes that share the worlds")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  command
      ->add_option("--events", o->recorded_events,
                   "with --verbose: how many of its last events each host shows after a failure")
      ->capture_default_str()
      ->check(CLI::Range(0, 100'000))
      ->needs(command->add_flag("--verbose", o->verbose, "describe every world"));
  command->callback([o, &exit_code] { exit_code = swarm(*o); });
}

}  // namespace uet::sim
