// uet-sim compare: the same traffic under several algorithms, path choices and faults, over several seeds, in one table.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <utility>

#include "apps/program.h"
#include "apps/sim/choice.h"
#include "apps/sim/commands.h"
#include "apps/sim/run_name.h"
#include "apps/sim/run_options.h"

namespace uet::sim {

namespace {

struct CompareOptions : RunOptions {
  std::vector<cc::Algorithm> algorithms = {cc::Algorithm::kNscc};
  std::vector<cc::LoadBalancing> balancers = {cc::LoadBalancing::kBitmap};
  std::vector<std::string> faults;  ///< as given; empty: one without any
  std::uint32_t seeds = 3;
  bool json = false, csv = false;
};

/// A figure over the seeds.
struct Spread {
  std::vector<double> values;
  double least() const { return *std::min_element(values.begin(), values.end()); }
  double most() const { return *std::max_element(values.begin(), values.end()); }
  double mean() const {
    return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
  }
};

/// What all lines share.
struct Shared {
  RunName name;
  nlohmann::ordered_json run;
};

/// One line of the table: what was run, and what came of it.
struct Row {
  std::string fault, algorithm, balancer;
  std::size_t incomplete = 0;  ///< seeds of which not every flow ended
  Spread job_us, of_bound, median_us, retransmissions, trims, drops;
};

/// Several words of `map`, separated by commas.
template <typename T>
void add_choices(CLI::App& command, const char* name, std::vector<T>& values,
                 const std::map<std::string, T>& map, const std::string& help) {
  const auto take = [&values, &map](const std::vector<std::string>& words) {
    values.clear();
    for (const std::string& word : words) values.push_back(map.at(word));
  };
  command
      .add_option_function<std::vector<std::string>>(
          name, take, help + ", separated by commas: " + words_of(map))
      ->delimiter(',')
      ->transform(one_of(map));
}

/// As --fault would say it, with the faults of all lines: "degrade=spine0=0.25+fail=spine1@50".
std::string whole_fault(const RunOptions& o, const std::string& own) {
  std::string all;
  for (const std::string& text : o.degrade) all += "degrade=" + text + "+";
  for (const std::string& text : o.fail) all += "fail=" + text + "+";
  if (own != "none") return all + own;
  return all.empty() ? own : all.substr(0, all.size() - 1);
}

/// "none", or words like degrade=spine0=0.25 and fail=spine1@50, joined by '+'. A sentence when it is neither.
std::string add_fault(const std::string& text, RunOptions& o) {
  if (text == "none") return {};
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find('+', begin), text.size());
    const std::string word = text.substr(begin, end - begin);
    if (word.starts_with("degrade="))
      o.degrade.push_back(word.substr(8));
    else if (word.starts_with("fail="))
      o.fail.push_back(word.substr(5));
    else
      return fmt::format("--fault: '{}' is neither none, degrade=LINKS... nor fail=LINKS...", word);
    begin = end + 1;
  }
  return {};
}

void add_run(Row& row, const RunResult& r) {
  if (r.completed != r.flows.size()) {
    ++row.incomplete;
    return;
  }
  row.job_us.values.push_back(r.job.us());
  // Neither the load of the links nor the order of the flows can be beaten.
  row.of_bound.values.push_back(r.job.us() / r.job_bound.us());
  row.median_us.values.push_back(r.fct_median.us());
  row.retransmissions.values.push_back(static_cast<double>(r.retransmissions));
  row.trims.values.push_back(static_cast<double>(r.trims));
  row.drops.values.push_back(static_cast<double>(r.drops));
}

/// One line of the table before it is run.
struct Line {
  std::string fault;
  cc::Algorithm algorithm;
  cc::LoadBalancing balancer;
};

/// One run of a line.
struct Draw {
  RunOptions options;
  TrafficMatrix matrix;
  RunConfig config;
};

base::Result<Draw, std::string> draw(const CompareOptions& options, const Line& line,
                                     std::uint32_t seed, const TrafficMatrix* fixed) {
  RunOptions o = options;
  o.algorithm = line.algorithm;
  o.load_balancing = line.balancer;
  o.seed = seed;
  if (std::string wrong = add_fault(line.fault, o); !wrong.empty()) return wrong;
  auto matrix = fixed != nullptr ? base::Result<TrafficMatrix, std::string>(*fixed) : load(o);
  if (!matrix) return matrix.error();
  auto config = configure(o, *matrix);
  if (!config) return config.error();
  return Draw{std::move(o), std::move(matrix.value()), std::move(config.value())};
}

base::Result<Row, std::string> measure(const CompareOptions& options, const Line& line,
                                       const TrafficMatrix* fixed) {
  Row row{.fault = whole_fault(options, line.fault),
          .algorithm = std::string(cc::name_of(line.algorithm)),
          .balancer = std::string(cc::name_of(line.balancer))};
  for (std::uint32_t seed = 1; seed <= options.seeds; ++seed) {
    const auto run = draw(options, line, seed, fixed);
    if (!run) return run.error();
    const auto result = run_matrix(run->config, run->matrix);
    if (!result) return result.error();
    add_run(row, *result);
  }
  return row;
}

void print_row(const Row& row, std::size_t width) {
  fmt::print("{:<{}} {:<5} {:<11} ", row.fault, width, row.algorithm, row.balancer);
  if (row.incomplete > 0) return fmt::print("{} seeds did not end\n", row.incomplete);
  fmt::print(
      "{:>10.1f} {:>10.1f} {:>10.1f} {:>7.3f} {:>7.3f} {:>10.1f} {:>8.0f} {:>8.0f} {:>8.0f}\n",
      row.job_us.least(), row.job_us.mean(), row.job_us.most(), row.of_bound.mean(),
      row.of_bound.most(), row.median_us.mean(), row.retransmissions.mean(), row.trims.mean(),
      row.drops.mean());
}

void print_table_head(const CompareOptions& o, const Shared& shared, std::size_t width) {
  fmt::print("traffic    {}\n", shared.name.traffic);
  fmt::print("fabric     {}\n", shared.name.fabric);
  fmt::print("seeds      1 to {}\n", o.seeds);
  fmt::print(
      "us of the whole job; /bound: against what the load of the links and the order of the flows "
      "allow\n");
  fmt::print("{:<{}} {:<5} {:<11} {:>10} {:>10} {:>10} {:>7} {:>7} {:>10} {:>8} {:>8} {:>8}\n",
             "fault", width, "cc", "lb", "best", "mean", "worst", "/bound", "worst", "median",
             "resent", "trims", "drops");
}

void print_csv_head() {
  fmt::print(
      "fault,cc,lb,incomplete_seeds,job_us_min,job_us_mean,job_us_max,of_bound_mean,of_"
      "bound_max,median_us_mean,"
      "retransmissions_mean,trims_mean,drops_mean\n");
}

void print_csv_row(const Row& r) {
  fmt::print("{},{},{},{}", r.fault, r.algorithm, r.balancer, r.incomplete);
  if (r.incomplete > 0)
    fmt::print(",,,,,,,,,\n");
  else
    fmt::print(",{},{},{},{},{},{},{},{},{}\n", r.job_us.least(), r.job_us.mean(), r.job_us.most(),
               r.of_bound.mean(), r.of_bound.most(), r.median_us.mean(), r.retransmissions.mean(),
               r.trims.mean(), r.drops.mean());
}

void print_json(const CompareOptions& o, Shared& shared, const std::vector<Row>& rows) {
  auto list = nlohmann::json::array();
  for (const Row& r : rows) {
    list.push_back({{"fault", r.fault},
                    {"cc", r.algorithm},
                    {"lb", r.balancer},
                    {"incomplete_seeds", r.incomplete},
                    {"job_us", r.job_us.values},
                    {"of_bound", r.of_bound.values},
                    {"median_us", r.median_us.values},
                    {"retransmissions", r.retransmissions.values},
                    {"trims", r.trims.values},
                    {"drops", r.drops.values}});
  }
  // What differs from line to line, or from seed to seed, stands in the rows.
  for (const char* differs : {"cc", "lb", "faults", "seed"}) shared.run.erase(differs);
  fmt::print(
      "{}\n",
      nlohmann::ordered_json{{"run", shared.run}, {"seeds", o.seeds}, {"rows", list}}.dump());
}

int refuse(const std::string& why) {
  fmt::print(stderr, "uet-sim: {}\n", why);
  return kUsage;
}

int compare(const CompareOptions& o) {
  if (const std::string wrong = check(o); !wrong.empty()) return refuse(wrong);
  // A matrix of a file is the same for all seeds; a pattern is drawn anew.
  std::unique_ptr<TrafficMatrix> fixed;
  if (o.pattern.empty()) {
    auto matrix = load(o);
    if (!matrix) {
      fmt::print(stderr, "uet-sim: {}\n", matrix.error());
      return kFailed;
    }
    fixed = std::make_unique<TrafficMatrix>(*matrix);
  }
  std::vector<Line> lines;
  std::size_t width = 5;
  for (const std::string& fault : o.faults.empty() ? std::vector<std::string>{"none"} : o.faults) {
    width = std::max(width, whole_fault(o, fault).size());
    for (const cc::Algorithm algorithm : o.algorithms)
      for (const cc::LoadBalancing balancer : o.balancers)
        lines.push_back({fault, algorithm, balancer});
  }
  Shared shared;
  std::string looked_at;
  for (const Line& line : lines) {
    const auto first = draw(o, line, 1, fixed.get());
    if (!first) return refuse(first.error());
    // Links are those of the fabric, whatever algorithms run over it.
    if (std::exchange(looked_at, line.fault) != line.fault)
      if (const std::string wrong = unknown_link(first->config); !wrong.empty())
        return refuse(wrong);
    shared = {name_run(first->options, first->config, first->matrix),
              run_json(first->options, first->config, first->matrix)};
  }
  if (o.csv) print_csv_head();
  if (!o.csv && !o.json) print_table_head(o, shared, width);
  std::vector<Row> rows;
  for (const Line& line : lines) {
    apps::flush_output();
    auto row = measure(o, line, fixed.get());
    if (!row) return refuse(row.error());
    rows.push_back(std::move(*row));
    if (o.csv) print_csv_row(rows.back());
    if (!o.csv && !o.json) print_row(rows.back(), width);
  }
  if (o.json) print_json(o, shared, rows);
  const bool all =
      std::all_of(rows.begin(), rows.end(), [](const Row& r) { return r.incomplete == 0; });
  return all ? kDone : kFailed;
}

}  // namespace

void add_compare_command(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<CompareOptions>();
  CompareOptions& o = *options;
  CLI::App* command = app.add_subcommand(
      "compare",
      "run the same traffic under several algorithms, path choices and faults: one table");
  add_simulation_options(*command, o);
  add_choices(*command, "--cc", o.algorithms, kAlgorithms, "congestion control (default: nscc)");
  add_choices(*command, "--lb", o.balancers, kBalancers, "path choice (default: bitmap)");
  command
      ->add_option("--fault", o.faults,
                   "a row of its own for each: none, degrade=LINKS... or fail=LINKS... as for run, "
                   "joined by '+'")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command->add_option("--seeds", o.seeds, "every line is run with seeds 1 to N")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  CLI::Option* json =
      command->add_flag("--json", o.json, "print one JSON object with the figures of every seed");
  command->add_flag("--csv", o.csv, "print comma-separated values")->excludes(json);
  command->callback([options, &exit_code] { exit_code = compare(*options); });
}

}  // namespace uet::sim
