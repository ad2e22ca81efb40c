#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "apps/output_path.h"
#include "apps/page/page.h"
#include "apps/program.h"
#include "apps/sim/choice.h"
#include "apps/sim/commands.h"
#include "apps/sim/flow_steps.h"
#include "apps/sim/html_report.h"
#include "apps/sim/run_options.h"
#include "apps/sim/run_output.h"

namespace uet::sim {

namespace {

/// Other runs that `plot` draws over the first one: more colors would not be told apart.
constexpr std::size_t kVersusMax = 3;

struct RunCommandOptions : RunOptions {
  std::string per_flow, trace, plot;
  bool json = false, path_state = false;
  std::vector<std::string> versus;
  /// What add_run_options took, in the order of the command line.
  std::vector<std::pair<std::string, std::vector<std::string>>> given;
};

int fail(const std::string& why) {
  fmt::print(stderr, "uet-sim: {}\n", why);
  return kFailed;
}
int refuse(const std::string& why) {
  fmt::print(stderr, "uet-sim: {}\n", why);
  return kUsage;
}

/// Right behind what failed: errno says why.
std::string cannot_write(const std::string& path) {
  return fmt::format("{}: cannot be written: {}", path, std::strerror(errno));
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

template <typename T>
void add_choice(CLI::App& command, const char* name, T& value, const std::map<std::string, T>& map,
                const std::string& help) {
  const auto take = [&value, &map](const std::string& word) { value = map.at(word); };
  command.add_option_function<std::string>(name, take, help + ": " + words_of(map))
      ->transform(one_of(map));
}

void add_run_options(CLI::App& command, RunOptions& o) {
  add_simulation_options(command, o);
  add_choice(command, "--cc", o.algorithm, kAlgorithms, "congestion control (default: nscc)");
  add_choice(command, "--lb", o.load_balancing, kBalancers, "path choice (default: bitmap)");
  command.add_option("--seed", o.seed, "seed of all random choices")
      ->check([](const std::string& text) {
        return text.starts_with('-') ? std::string("a seed is not negative") : std::string();
      })
      ->capture_default_str();
}

void forget(RunCommandOptions& o, const std::string& name) {
  std::erase_if(o.given, [&name](const auto& option) { return option.first == name; });
}

/// The options of a command line that describe its run; of a flag no values.
void note_given(const CLI::App& command, RunCommandOptions& o) {
  static const std::vector<std::string> kNotOfTheRun = {"--out",   "--json",       "--per-flow",
                                                        "--trace", "--path-state", "--versus"};
  for (const CLI::Option* option : command.parse_order()) {
    const std::string name = option->get_name();
    if (std::find(kNotOfTheRun.begin(), kNotOfTheRun.end(), name) != kNotOfTheRun.end()) continue;
    const bool is_flag = option->get_items_expected_max() == 0;
    forget(o, name);
    o.given.emplace_back(name, is_flag ? std::vector<std::string>{} : option->results());
  }
}

std::string command_line(const RunCommandOptions& o) {
  std::string line = "uet-sim run";
  for (const auto& [name, values] : o.given) {
    if (values.empty()) line += " " + name;
    for (const std::string& value : values) {
      const bool is_plain = value.find_first_not_of(
                                "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"
                                "./=@,:+") == std::string::npos;
      line += " " + name + " " + (is_plain ? value : "'" + value + "'");
    }
  }
  return line;
}

/// `base` with what the text of a --versus says differently.
base::Result<RunCommandOptions, std::string> versus(const RunCommandOptions& base,
                                                    const std::string& text) {
  RunCommandOptions o = base;
  CLI::App parser;
  parser.set_help_flag();
  add_run_options(parser, o);
  try {
    parser.parse(text, false);
  } catch (const CLI::ParseError& e) {
    return fmt::format("--versus '{}': {}", text, e.what());
  }
  const auto drop = [&o](const std::string& name, std::string& value) {
    value.clear();
    forget(o, name);
  };
  for (const char* name : {"--hosts", "--bytes"})
    if (parser.count(name) > 0 && parser.count("--pattern") == 0 && !base.matrix.empty())
      return fmt::format("--versus '{}': {} is about --pattern, and the run has --matrix", text,
                         name);
  if (parser.count("--pattern") > 0) drop("--matrix", o.matrix);
  if (parser.count("--matrix") > 0) {
    drop("--pattern", o.pattern);
    forget(o, "--hosts");
    forget(o, "--bytes");
  }
  note_given(parser, o);
  return o;
}

void show_result(const RunCommandOptions& o, const PlayedRun& run, double wall_s) {
  if (o.json) {
    fmt::print("{}\n", json_text(run.json, run.config, run.result, wall_s));
  } else {
    print_text(run.name, run.config, run.result, wall_s);
  }
}

/// Empty, or which file could not be written.
std::string write_files(const RunCommandOptions& o, const PlayedRun& run) {
  if (o.per_flow.empty()) return {};
  if (!write_per_flow(o.per_flow, run.config, run.result)) return cannot_write(o.per_flow);
  const std::string paths = o.per_flow + ".paths";
  return o.path_state && !write_paths(paths, run.result) ? cannot_write(paths) : std::string();
}

/// A run of which everything is known that can be known before it is played.
struct WantedRun {
  RunCommandOptions options;
  TrafficMatrix matrix;
  RunConfig config;
};

/// An exit code when it cannot be played.
base::Result<WantedRun, int> prepare(const RunCommandOptions& o) {
  if (const std::string wrong = check(o); !wrong.empty()) return refuse(wrong);
  auto matrix = load(o);
  if (!matrix) return o.pattern.empty() ? fail(matrix.error()) : refuse(matrix.error());
  auto config = configure(o, *matrix);
  if (!config) return refuse(config.error());
  if (const std::string wrong = unknown_link(*config); !wrong.empty()) return refuse(wrong);
  config.value().keep_paths = o.path_state;
  return WantedRun{o, std::move(matrix.value()), std::move(config.value())};
}

/// The files that the options name for output.
std::vector<std::string> outputs(const RunCommandOptions& o) {
  std::vector<std::string> all = {o.per_flow, o.trace, o.plot};
  if (o.path_state && !o.per_flow.empty()) all.push_back(o.per_flow + ".paths");
  std::erase(all, "");
  return all;
}

/// Empty, or which file would be overwritten that is to be read.
std::string why_overwritten(const std::vector<RunCommandOptions>& runs) {
  std::vector<std::string> matrices;
  for (const RunCommandOptions& o : runs)
    if (!o.matrix.empty()) matrices.push_back(o.matrix);
  for (const std::string& path : outputs(runs.front()))
    if (apps::is_input(path, matrices))
      return fmt::format("{} is the --matrix to read; write into another file", path);
  return {};
}

/// Empty, or which file cannot be written.
std::string why_unwritable(const RunCommandOptions& o) {
  for (const std::string& path : outputs(o))
    if (!apps::can_write(path)) return cannot_write(path);
  return {};
}

/// Plays the run and shows its figures; an exit code when it cannot be played.
base::Result<PlayedRun, int> play(WantedRun& wanted) {
  const RunCommandOptions& o = wanted.options;
  const TrafficMatrix* const matrix = &wanted.matrix;
  RunConfig& c = wanted.config;
  std::ofstream trace;
  if (!o.trace.empty()) {
    trace.open(o.trace);
    if (!trace) return fail(cannot_write(o.trace));
    c.trace = &trace;
  }
  if (!o.plot.empty())
    c.sample_period = SimSpan::from_ps(std::max<std::int64_t>(c.fabric.base_rtt().ps() / 2, 1));
  auto bar = isatty(STDERR_FILENO) ? std::make_unique<ProgressBar>() : nullptr;
  if (bar) c.progress = [&bar](double share, SimTime now) { bar->show(share, now); };

  const auto begin = std::chrono::steady_clock::now();
  auto result = run_matrix(c, *matrix);
  const double wall_s =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  if (!result) return refuse(result.error());
  bar.reset();
  c.progress = nullptr;
  c.trace = nullptr;
  trace.close();
  if (!o.trace.empty() && !trace) return fail(o.trace + ": cannot be written to its end");

  PlayedRun run{.config = c,
                .name = name_run(o, c, *matrix),
                .command = command_line(o),
                .steps = steps_of(*matrix),
                .json = run_json(o, c, *matrix),
                .result = std::move(result.value())};
  show_result(o, run, wall_s);
  apps::flush_output();
  if (const std::string why = write_files(o, run); !why.empty()) return fail(why);
  return run;
}

int write_page(const std::string& path, const std::vector<PlayedRun>& runs) {
  std::ofstream out(path);
  if (!out) return fail(cannot_write(path));
  out << draw(runs);
  out.flush();
  return out ? kDone : fail(cannot_write(path));
}

int run(const RunCommandOptions& o) {
  if (o.path_state && !o.json && o.per_flow.empty())
    return refuse("--path-state goes into --json or --per-flow: give one of them");
  std::vector<RunCommandOptions> options = {o};
  if (!o.plot.empty() && !page::can_draw()) return fail(page::drawing_missing("uet-sim"));
  if (o.versus.size() > kVersusMax) return refuse(fmt::format("at most {} --versus", kVersusMax));
  if (!o.versus.empty() && !(o.per_flow.empty() && o.trace.empty()))
    return refuse("--per-flow and --trace are about one run: leave --versus away");
  for (const std::string& text : o.versus) {
    auto other = versus(o, text);
    if (!other) return refuse(other.error());
    options.push_back(std::move(other.value()));
  }
  if (const std::string why = why_overwritten(options); !why.empty()) return refuse(why);
  std::vector<WantedRun> wanted;
  for (const RunCommandOptions& each : options) {
    auto one = prepare(each);
    if (!one) return one.error();
    wanted.push_back(std::move(one.value()));
  }
  if (const std::string why = why_unwritable(o); !why.empty()) return fail(why);
  std::vector<PlayedRun> runs;
  for (WantedRun& each : wanted) {
    if (!runs.empty() && !o.json) fmt::print("\n");
    auto played = play(each);
    if (!played) return played.error();
    runs.push_back(std::move(played.value()));
  }
  if (!o.plot.empty()) {
    if (const int code = write_page(o.plot, runs); code != kDone) return code;
  }
  const bool all = std::all_of(runs.begin(), runs.end(), [](const PlayedRun& played) {
    return played.result.completed == played.result.flows.size();
  });
  return all ? kDone : kFailed;
}

void add_options(CLI::App& command, RunCommandOptions& o) {
  add_run_options(command, o);
  command.add_option("--per-flow", o.per_flow, "write one CSV line a flow");
  command.add_flag("--path-state", o.path_state,
                   "with --json or --per-flow: the state of every path of every flow (the CSV goes "
                   "to FILE.paths)");
  command.add_option("--trace", o.trace,
                     "write every event of every endpoint, one JSON object a line");
  command.add_flag("--json", o.json, "print one JSON object a run");
}

}  // namespace

void add_run_command(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<RunCommandOptions>();
  CLI::App* run_app =
      app.add_subcommand("run", "run a traffic matrix and measure completion times");
  add_options(*run_app, *options);
  run_app->callback([options, run_app, &exit_code] {
    note_given(*run_app, *options);
    exit_code = run(*options);
  });

  auto plot_options = std::make_shared<RunCommandOptions>();
  CLI::App* plot_app = app.add_subcommand(
      "plot", "as run, and draw what happened into one HTML file, also runs over each other");
  add_options(*plot_app, *plot_options);
  plot_app->add_option("--out", plot_options->plot, "the HTML file")->required();
  plot_app
      ->add_option("--versus", plot_options->versus,
                   "draw another run over the first one; OPTIONS say what differs: "
                   "'--lb mixed', '--degrade spine0=0.25'")
      ->type_name("OPTIONS")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  plot_app->callback([plot_options, plot_app, &exit_code] {
    note_given(*plot_app, *plot_options);
    exit_code = run(*plot_options);
  });
}

}  // namespace uet::sim
