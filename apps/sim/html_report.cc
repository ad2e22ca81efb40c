#include "apps/sim/html_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string_view>

#include "apps/page/page.h"
#include "apps/sim/run_output.h"
#include "lib/base/percentile.h"

namespace uet::sim {

/// Made by apps/page/embed.py.
extern const page::Pieces kPlotScript, kPlotStyle;

namespace {

using Json = nlohmann::ordered_json;

/// More points than this show nothing in a chart of some hundred pixels.
constexpr std::size_t kPointsMax = 2000;

/// Microseconds with as many digits as a page needs.
double page_us(SimTime t) {
  return static_cast<double>(t.ps() / 1000) / 1000;
}
double page_us(SimSpan s) {
  return static_cast<double>(s.ps() / 1000) / 1000;
}
double kilobytes(std::int64_t bytes) {
  return static_cast<double>(bytes) / 1000;
}

/// The value that a share of the sorted `values` does not exceed.
template <typename T>
T quantile(const std::vector<T>& values, double share) {
  return values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1) + 0.5)];
}

Json figures(const PlayedRun& run) {
  const RunResult& r = run.result;
  Json rows = Json::array();
  const auto row = [&rows](std::string_view name, std::string value) {
    rows.push_back({name, std::move(value)});
  };
  row("flows completed", fmt::format("{} of {}", r.completed, r.flows.size()));
  if (r.job.ps() > 0) {
    row("whole job", fmt::format("{:.1f} us, {:.3f} times its bound", r.job.us(),
                                 r.job.us() / r.job_bound.us()));
  }
  if (r.completed > 0) {
    row(is_whole(r) ? "a flow" : "a flow that completed",
        fmt::format("min {:.1f}, median {:.1f}, p99 {:.1f}, max {:.1f} us", r.fct_min.us(),
                    r.fct_median.us(), r.fct_p99.us(), r.fct_max.us()));
    if (is_whole(r) && !has_order(r))
      row("slowest flow", fmt::format("{:.3f} times its bound", r.fct_max.us() / r.bound.us()));
    if (is_whole(r)) row("Jain index", fmt::format("{:.4f}", r.jain));
  }
  row("data packets", fmt::format("{}, {} retransmissions", r.packets, r.retransmissions));
  row("in the fabric", fmt::format("{} trims, {} drops, {} marks", r.trims, r.drops, r.marks));
  row("timeouts", fmt::format("{}", r.timeouts));
  return rows;
}

/// Completion times in order; of many so many that the curve stays what it is.
Json completion_times(const RunResult& r) {
  std::vector<double> times;
  for (const FlowResult& f : r.flows) {
    if (f.is_complete()) times.push_back(page_us(f.fct()));
  }
  std::sort(times.begin(), times.end());
  if (times.size() <= kPointsMax) return times;
  Json some = Json::array();
  for (std::size_t i = 0; i < kPointsMax; ++i)
    some.push_back(quantile(times, static_cast<double>(i) / (kPointsMax - 1)));
  return some;
}

/// A row for each step: number, flows, of them complete, first start, last end, median and longest flow; microseconds.
Json steps(const PlayedRun& run) {
  struct Step {
    std::size_t flows = 0;
    SimTime first = SimTime::never(), last;
    std::vector<SimSpan> times;
  };
  std::map<std::uint32_t, Step> found;
  for (std::size_t i = 0; i < run.result.flows.size(); ++i) {
    const FlowResult& f = run.result.flows[i];
    Step& step = found[run.steps[i]];
    ++step.flows;
    if (!f.started.is_never()) step.first = std::min(step.first, f.started);
    if (!f.is_complete()) continue;
    step.last = std::max(step.last, f.ended);
    step.times.push_back(f.fct());
  }
  Json rows = Json::array();
  for (auto& [number, step] : found) {
    if (step.times.empty()) continue;
    std::sort(step.times.begin(), step.times.end());
    rows.push_back({number, step.flows, step.times.size(), page_us(step.first), page_us(step.last),
                    page_us(base::median(step.times)), page_us(step.times.back())});
  }
  return rows;
}

/// Rows of time and longest queue in kB; of several samples in one row the longest.
Json queues(const RunResult& r) {
  Json rows = Json::array();
  const std::size_t bunch = r.queue_samples.size() / kPointsMax + 1;
  for (std::size_t i = 0; i < r.queue_samples.size(); i += bunch) {
    std::int64_t longest = 0;
    for (std::size_t k = i; k < std::min(i + bunch, r.queue_samples.size()); ++k)
      longest = std::max(longest, r.queue_samples[k].longest_bytes);
    rows.push_back({page_us(r.queue_samples[i].at), kilobytes(longest)});
  }
  return rows;
}

/// Rows of time, tenth part, median and nine tenths of the hosts' congestion windows in kB, and how many have one.
Json windows(const RunResult& r) {
  std::vector<std::vector<std::int64_t>> samples;
  std::vector<SimTime> at;
  for (const WindowSample& s : r.window_samples) {
    if (at.empty() || at.back() != s.at) {
      at.push_back(s.at);
      samples.emplace_back();
    }
    samples.back().push_back(s.window);
  }
  Json rows = Json::array();
  const std::size_t stride = at.size() / kPointsMax + 1;
  for (std::size_t i = 0; i < at.size(); i += stride) {
    std::sort(samples[i].begin(), samples[i].end());
    rows.push_back({page_us(at[i]), kilobytes(quantile(samples[i], 0.1)),
                    kilobytes(quantile(samples[i], 0.5)), kilobytes(quantile(samples[i], 0.9)),
                    samples[i].size()});
  }
  return rows;
}

/// Whether `links` names the switch, alone or as an end of cables, in this plane.
bool touches(std::string_view links, std::string_view name, std::size_t plane) {
  if (links.starts_with("plane")) {
    const std::size_t end = std::min(links.find('/'), links.size());
    if (links.substr(0, end) != fmt::format("plane{}", plane)) return false;
    if (end == links.size()) return true;
    links.remove_prefix(end + 1);
  }
  while (!links.empty()) {
    const std::size_t end = std::min(links.find_first_of("->"), links.size());
    if (links.substr(0, end) == name) return true;
    links.remove_prefix(std::min(end + 1, links.size()));
  }
  return false;
}

/// Rows of name, share of the data packets in percent, and the faults of the switch in words.
Json tops(const PlayedRun& run) {
  const FatTree& tree = run.config.fabric.tree;
  const std::string word = tree.tiers == 2 ? "spine" : "core";
  Json rows = Json::array();
  for (std::size_t i = 0; i < run.result.top_share.size(); ++i) {
    const std::size_t plane = i / tree.tops();
    const std::string name = fmt::format("{}{}", word, i % tree.tops());
    std::string faults;
    bool is_down = false;
    for (const LinkChange& change : run.config.changes) {
      if (!touches(change.links, name, plane)) continue;
      faults += (faults.empty() ? "" : ", ") + in_words(change);
      is_down |= change.speed <= 0;
    }
    const std::string label = run.config.fabric.planes > 1
                                  ? fmt::format("{}/{}", plane, i % tree.tops())
                                  : fmt::format("{}", i % tree.tops());
    rows.push_back({label, 100 * run.result.top_share[i], faults, is_down});
  }
  return rows;
}

Json changes(const RunConfig& config) {
  Json rows = Json::array();
  for (const LinkChange& c : config.changes) {
    rows.push_back({{"text", in_words(c)},
                    {"down", c.speed <= 0},
                    {"from", page_us(c.from)},
                    {"until", c.until.is_never() ? Json(nullptr) : Json(page_us(c.until))},
                    {"period", page_us(c.flap_period)}});
  }
  return rows;
}

Json run_data(const PlayedRun& run) {
  const RunResult& r = run.result;
  const FabricConfig& fabric = run.config.fabric;
  return {{"run", run.json},
          {"traffic", run.name.traffic},
          {"fabric", run.name.fabric},
          {"transport", run.name.transport},
          {"faults", run.name.faults},
          {"command", run.command},
          {"figures", figures(run)},
          {"ended", page_us(r.ended)},
          {"bound", has_order(r) ? Json(nullptr) : Json(page_us(r.bound))},
          {"times", completion_times(r)},
          {"steps", steps(run)},
          {"queue_limit", kilobytes(fabric.switch_queue(false).data_limit_bytes)},
          {"queues", queues(r)},
          {"windows", windows(r)},
          {"top_word", fabric.tree.tiers == 2 ? "spine" : "core"},
          {"tops", tops(run)},
          {"changes", changes(run.config)}};
}

}  // namespace

std::string draw(const std::vector<PlayedRun>& runs) {
  Json list = Json::array();
  for (const PlayedRun& run : runs) list.push_back(run_data(run));
  const bool same = std::all_of(runs.begin(), runs.end(), [&runs](const PlayedRun& run) {
    return run.name.traffic == runs.front().name.traffic;
  });
  return page::to_html(
      {.title = same ? runs.front().name.traffic : fmt::format("{} runs", runs.size()),
       .style = kPlotStyle,
       .body = "<div id=\"names\"></div><main></main>\n",
       .data = Json{{"runs", list}}.dump(-1, ' ', false, Json::error_handler_t::replace),
       .script = kPlotScript});
}

}  // namespace uet::sim
