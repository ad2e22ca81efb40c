#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <map>
#include <memory>

#include "apps/sim/commands.h"
#include "apps/sim/flow_run.h"
#include "apps/sim/html_report.h"
#include "apps/sim/link_change.h"
#include "apps/sim/run_output.h"

namespace uet::sim {

namespace {

struct Options {
  std::string matrix, pattern, per_flow, trace, plot;
  std::uint32_t hosts = 32;
  std::uint64_t bytes = 2'000'000;
  std::uint32_t tiers = 0;
  double link_gbps = 100;
  std::int64_t hop_ns = 1000;
  std::uint32_t mtu_payload = 4086;
  cc::Algorithm algorithm = cc::Algorithm::kNscc;
  cc::LoadBalancing load_balancing = cc::LoadBalancing::kBitmap;
  std::uint32_t paths = 64;
  std::uint32_t run_packets = 1;
  std::vector<std::string> degrade, fail;
  std::uint32_t planes = 1;
  double repair_us = -1;
  bool no_trim = false, ack_every_packet = false, json = false, path_state = false;
  std::uint64_t seed = 1;
  double end_us = 0;
  std::int64_t queue_bytes = 0;
};

/// An option whose value is one of the words of `map`, in any case.
template <typename T>
void add_choice(CLI::App& command, const char* name, T& value, const std::map<std::string, T>& map,
                const std::string& help) {
  std::string words;
  for (const auto& [word, meaning] : map) words += (words.empty() ? "" : ", ") + word;
  const auto find = [&map, words](const std::string& text) -> const T* {
    const auto found = map.find(CLI::detail::to_lower(text));
    return found == map.end() ? nullptr : &found->second;
  };
  command
      .add_option_function<std::string>(
          name, [&value, find](const std::string& text) { value = *find(text); },
          help + ": " + words)
      ->check([find, words](const std::string& text) {
        return find(text) != nullptr ? std::string()
                                     : fmt::format("'{}' is none of {}", text, words);
      });
}

const std::map<std::string, cc::Algorithm> kAlgorithms = {{"nscc", cc::Algorithm::kNscc},
                                                          {"rccc", cc::Algorithm::kRccc},
                                                          {"both", cc::Algorithm::kBoth},
                                                          {"none", cc::Algorithm::kNone}};
const std::map<std::string, cc::LoadBalancing> kBalancers = {
    {"oblivious", cc::LoadBalancing::kOblivious}, {"bitmap", cc::LoadBalancing::kBitmap},
    {"reps", cc::LoadBalancing::kReps},           {"reps_legacy", cc::LoadBalancing::kRepsLegacy},
    {"mixed", cc::LoadBalancing::kMixed},         {"single", cc::LoadBalancing::kSingle}};

int fail(const std::string& why) {
  fmt::print(stderr, "uet-sim: {}\n", why);
  return kFailed;
}
int refuse(const std::string& why) {
  fmt::print(stderr, "uet-sim: {}\n", why);
  return kUsage;
}

base::Result<TrafficMatrix, std::string> load(const Options& o) {
  if (!o.pattern.empty()) return build_pattern(o.pattern, o.hosts, o.bytes, o.seed);
  std::ifstream file(o.matrix);
  if (!file) return fmt::format("{}: cannot be opened", o.matrix);
  auto matrix = parse_matrix(file);
  if (!matrix) return fmt::format("{}: {}", o.matrix, matrix.error());
  return matrix;
}

/// Redraws one line on a terminal, at most ten times a second.
class ProgressBar {
 public:
  void show(double share, SimTime now) {
    const auto t = std::chrono::steady_clock::now();
    if (t - last_ < std::chrono::milliseconds(100)) return;
    last_ = t;
    shown_ = true;
    constexpr int kWidth = 40;
    const int full = static_cast<int>(share * kWidth);
    fmt::print(stderr, "\r[{:#<{}}{:.<{}}] {:3.0f} %  {:.0f} us ", "", full, "", kWidth - full,
               share * 100, now.us());
  }
  ~ProgressBar() {
    if (shown_) fmt::print(stderr, "\r{:70}\r", "");
  }

 private:
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
  bool shown_ = false;
};

/// Fills in everything but the output streams; a sentence when the options contradict the matrix.
base::Result<RunConfig, std::string> configure(const Options& o, const TrafficMatrix& matrix) {
  RunConfig c;
  const auto tiers = o.tiers == 0 ? std::nullopt : std::optional<std::uint32_t>(o.tiers);
  c.fabric.tree = FatTree::for_hosts(matrix.nodes, tiers);
  c.fabric.hosts = matrix.nodes;
  c.fabric.planes = o.planes;
  c.fabric.link_rate = base::BitRate::from_bps(static_cast<std::uint64_t>(o.link_gbps * 1e9));
  c.fabric.hop_delay = SimSpan::from_ps(o.hop_ns * 1000);
  c.fabric.mtu_payload = o.mtu_payload;
  c.fabric.trimming = !o.no_trim;
  c.fabric.queue_bytes = o.queue_bytes;
  // The receiver's credit owns the last hop, so marks there would be about nothing. [CC 8]
  c.fabric.mark_last_hop =
      o.algorithm != cc::Algorithm::kRccc && o.algorithm != cc::Algorithm::kBoth;
  c.algorithm = o.algorithm;
  c.load_balancing = o.load_balancing;
  c.paths = static_cast<std::uint16_t>(o.paths);
  c.run_packets = static_cast<std::uint16_t>(o.run_packets);
  c.ack_every_packet = o.ack_every_packet;
  c.keep_paths = o.path_state;
  if (o.repair_us >= 0) {
    c.repair_delay = SimSpan::from_ps(static_cast<std::int64_t>(o.repair_us * 1e6));
  }
  c.seed = o.seed;
  if (o.end_us > 0) c.end = SimTime::from_ps(static_cast<std::int64_t>(o.end_us * 1e6));
  for (const std::string& text : o.degrade) {
    auto changes = parse_degrade(text, c.fabric.tree);
    if (!changes) return changes.error();
    c.changes.insert(c.changes.end(), changes->begin(), changes->end());
  }
  for (const std::string& text : o.fail) {
    auto changes = parse_fail(text);
    if (!changes) return changes.error();
    c.changes.insert(c.changes.end(), changes->begin(), changes->end());
  }
  return c;
}

int run(const Options& o) {
  if (o.matrix.empty() == o.pattern.empty())
    return refuse("run needs either --matrix or --pattern");
  if ((o.paths & (o.paths - 1)) != 0) return refuse("--paths must be a power of two");
  const auto matrix = load(o);
  if (!matrix) return o.pattern.empty() ? fail(matrix.error()) : refuse(matrix.error());
  auto config = configure(o, *matrix);
  if (!config) return refuse(config.error());
  RunConfig& c = config.value();

  std::ofstream trace;
  if (!o.trace.empty()) {
    trace.open(o.trace);
    if (!trace) return fail(fmt::format("{}: cannot be written", o.trace));
    c.trace = &trace;
  }
  if (!o.plot.empty())
    c.sample_period = SimSpan::from_ps(std::max<std::int64_t>(c.fabric.base_rtt().ps() / 2, 1));
  const auto bar = isatty(STDERR_FILENO) ? std::make_unique<ProgressBar>() : nullptr;
  if (bar) c.progress = [&bar](double share, SimTime now) { bar->show(share, now); };

  const auto begin = std::chrono::steady_clock::now();
  const auto result = run_matrix(c, *matrix);
  const double wall_s =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  if (!result) return refuse(result.error());

  if (!o.per_flow.empty() && !write_per_flow(o.per_flow, c, *result)) {
    return fail(fmt::format("{}: cannot be written", o.per_flow));
  }
  if (o.path_state && !o.per_flow.empty() && !write_paths(o.per_flow + ".paths", *result)) {
    return fail(fmt::format("{}.paths: cannot be written", o.per_flow));
  }
  if (!o.plot.empty() && !write_html_report(o.plot, c, *result)) {
    return fail(fmt::format("{}: cannot be written", o.plot));
  }
  if (o.json) {
    fmt::print("{}\n", json_text(c, *result, wall_s));
  } else {
    print_text(c, *result, wall_s);
  }
  return result->completed == result->flows.size() ? kDone : kFailed;
}

void add_options(CLI::App& command, Options& o) {
  command.add_option("--matrix", o.matrix, "flows, in htsim's .cm format");
  command.add_option(
      "--pattern", o.pattern,
      "built-in flows instead: permutation, incast, outcast, all-to-all, ring-allreduce, "
      "tree-allreduce, all-gather, reduce-scatter, pipeline");
  command.add_option("--hosts", o.hosts, "hosts of --pattern")
      ->check(CLI::Range(2, 65536))
      ->capture_default_str();
  command.add_option("--bytes", o.bytes, "bytes of one host of --pattern")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{0xffffffff}))
      ->capture_default_str();
  command
      .add_option("--tiers", o.tiers,
                  "2: leaf-spine, 3: fat tree (default: by the number of hosts)")
      ->check(CLI::IsMember({2, 3}));
  command.add_option("--link-gbps", o.link_gbps, "speed of every link")
      ->check(CLI::Range(0.001, 10000.0))
      ->capture_default_str();
  command.add_option("--hop-ns", o.hop_ns, "delay of every link")
      ->check(CLI::Range(0, 1'000'000'000))
      ->capture_default_str();
  command.add_option("--mtu-payload", o.mtu_payload, "payload bytes of a full packet")
      ->check(CLI::Range(64, 16000))
      ->capture_default_str();
  add_choice(command, "--cc", o.algorithm, kAlgorithms, "congestion control (default: nscc)");
  add_choice(command, "--lb", o.load_balancing, kBalancers, "path choice (default: bitmap)");
  command.add_option("--run-packets", o.run_packets, "packets in a row that take one path")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  command.add_option("--paths", o.paths, "entropy values of a flow, a power of two")
      ->check(CLI::Range(1, 32768))
      ->capture_default_str();
  command
      .add_option("--planes", o.planes,
                  "fabrics side by side, each a whole tree; every host has a port into each")
      ->check(CLI::Range(1u, net::kMaxPlanes))
      ->capture_default_str();
  command.add_option("--degrade", o.degrade,
                     "LINKS[=FACTOR][@START_US[-END_US]][~PERIOD_US], for example spine0=0.25; or "
                     "a number of spines at 25 %");
  command.add_option(
      "--fail", o.fail,
      "LINKS[@START_US[-END_US]][~PERIOD_US], for example spine0@50 or leaf0-spine1@10-200");
  command
      .add_option("--repair-us", o.repair_us,
                  "switches route around dead links so long after they died (default: never)")
      ->check(CLI::Range(0.0, 1e9));
  command.add_flag("--no-trim", o.no_trim,
                   "switches drop instead of trimming, with five times the queue");
  command
      .add_option("--queue-bytes", o.queue_bytes,
                  "data queue of a switch port (default: from the bandwidth-delay product)")
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{1} << 40));
  command.add_flag("--ack-every-packet", o.ack_every_packet, "receivers acknowledge every packet");
  command.add_option("--seed", o.seed, "of everything random")
      ->check([](const std::string& text) {
        return text.starts_with('-') ? std::string("a seed is not negative") : std::string();
      })
      ->capture_default_str();
  command.add_option("--end-us", o.end_us, "stop there even if flows still run")
      ->check(CLI::NonNegativeNumber);
  command.add_option("--per-flow", o.per_flow, "write one CSV line a flow");
  command.add_flag("--path-state", o.path_state,
                   "with --json or --per-flow: the state of every path of every flow (the CSV goes "
                   "to FILE.paths)");
  command.add_option("--trace", o.trace,
                     "write every event of every endpoint, one JSON object a line");
  command.add_flag("--json", o.json, "print one JSON object");
}

}  // namespace

void add_run_command(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<Options>();
  CLI::App* run_app =
      app.add_subcommand("run", "run a traffic matrix and measure completion times");
  add_options(*run_app, *options);
  run_app->callback([options, &exit_code] { exit_code = run(*options); });

  auto plot_options = std::make_shared<Options>();
  CLI::App* plot_app =
      app.add_subcommand("plot", "as run, and draw what happened into one HTML file");
  add_options(*plot_app, *plot_options);
  plot_app->add_option("--out", plot_options->plot, "the HTML file")->required();
  plot_app->callback([plot_options, &exit_code] { exit_code = run(*plot_options); });
}

}  // namespace uet::sim
