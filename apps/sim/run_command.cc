#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <memory>

#include "apps/sim/commands.h"
#include "apps/sim/html_report.h"
#include "apps/sim/run_options.h"
#include "apps/sim/run_output.h"

namespace uet::sim {

namespace {

struct Options : RunOptions {
  std::string per_flow, trace, plot;
  bool json = false, path_state = false;
};

int fail(const std::string& why) {
  fmt::print(stderr, "uet-sim: {}\n", why);
  return kFailed;
}
int refuse(const std::string& why) {
  fmt::print(stderr, "uet-sim: {}\n", why);
  return kUsage;
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

int run(const Options& o) {
  if (const std::string wrong = check(o); !wrong.empty()) return refuse(wrong);
  const auto matrix = load(o);
  if (!matrix) return o.pattern.empty() ? fail(matrix.error()) : refuse(matrix.error());
  auto config = configure(o, *matrix);
  if (!config) return refuse(config.error());
  RunConfig& c = config.value();
  c.keep_paths = o.path_state;

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
  add_world_options(command, o);
  add_choice(command, "--cc", o.algorithm, kAlgorithms, "congestion control (default: nscc)");
  add_choice(command, "--lb", o.load_balancing, kBalancers, "path choice (default: bitmap)");
  command.add_option("--seed", o.seed, "of everything random")
      ->check([](const std::string& text) {
        return text.starts_with('-') ? std::string("a seed is not negative") : std::string();
      })
      ->capture_default_str();
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
