#include "apps/sim/html_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

namespace uet::sim {

namespace {

constexpr double kWidth = 640, kHeight = 300;
constexpr double kLeft = 64, kRight = 16, kTop = 16, kBottom = 44;
/// Windows are drawn for the first hosts only: more lines than this show nothing.
constexpr std::size_t kMaxLines = 8;

struct Line {
  std::string name;
  std::vector<std::pair<double, double>> points;
};

/// The next "round" number at or above `x`: few digits, and a fifth of it is round as well.
double round_up(double x) {
  if (x <= 0) return 1;
  const double power = std::pow(10, std::floor(std::log10(x)));
  for (const double m : {1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0}) {
    if (m * power >= x) return m * power;
  }
  return 10 * power;
}

/// An SVG chart with axes from 0.
class Chart {
 public:
  Chart(std::string title, std::string x_name, std::string y_name, double x_max, double y_max)
      : title_(std::move(title)),
        x_name_(std::move(x_name)),
        y_name_(std::move(y_name)),
        x_max_(x_max > 0 ? x_max : 1),
        y_max_(round_up(y_max)) {}

  void add(const Line& line) {
    const int hue = static_cast<int>((210 + 137 * lines_) % 360);
    if (!line.name.empty()) {
      body_ += fmt::format(
          R"~(<text x="{:.1f}" y="{:.1f}" text-anchor="end" style="fill:hsl({},70%,40%)">{}</text>)~",
          kWidth - kRight - 6, kTop + 14 + 15 * static_cast<double>(lines_), hue, line.name);
    }
    ++lines_;
    std::string points;
    for (const auto& [px, py] : line.points) points += fmt::format("{:.1f},{:.1f} ", x(px), y(py));
    body_ += fmt::format(
        R"~(<polyline fill="none" stroke="hsl({},70%,45%)" stroke-width="1.5" points="{}"><title>{}</title></polyline>)~",
        hue, points, line.name);
  }
  /// Bars stand at 0, 1, 2...; ticks below them replace those of the axis.
  void add_bar(std::size_t at, double value, std::string_view label, std::string_view name) {
    is_bars_ = true;
    const double from = static_cast<double>(at) + 0.1, to = static_cast<double>(at) + 0.9;
    if (!label.empty()) {
      body_ += fmt::format(R"(<text x="{:.1f}" y="{:.1f}" text-anchor="middle">{}</text>)",
                           x((from + to) / 2), y(0) + 16, label);
    }
    body_ += fmt::format(
        R"~(<rect x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}" fill="hsl(210,60%,55%)"><title>{}</title></rect>)~",
        x(from), y(value), x(to) - x(from), y(0) - y(value), name);
  }
  void add_mark(double at, std::string_view name) {
    body_ += fmt::format(
        R"(<line x1="{0:.1f}" x2="{0:.1f}" y1="{1:.1f}" y2="{2:.1f}" stroke="#c33" stroke-dasharray="4 3"><title>{3}</title></line>)",
        x(at), y(0), y(y_max_), name);
  }
  /// The axis of a quantity ends at a round number.
  Chart& with_round_axis() {
    x_max_ = round_up(x_max_);
    return *this;
  }
  std::string html() const {
    std::string s = fmt::format(R"(<figure><figcaption>{}</figcaption><svg viewBox="0 0 {} {}">)",
                                title_, kWidth, kHeight);
    constexpr int kTicks = 5;
    for (int i = 0; i <= kTicks; ++i) {
      const double xv = x_max_ * i / kTicks, yv = y_max_ * i / kTicks;
      if (!is_bars_) {
        s += fmt::format(
            R"(<line class="grid" x1="{0:.1f}" x2="{0:.1f}" y1="{1:.1f}" y2="{2:.1f}"/>)", x(xv),
            y(0), y(y_max_));
        s += fmt::format(R"(<text x="{:.1f}" y="{:.1f}" text-anchor="middle">{:g}</text>)", x(xv),
                         y(0) + 16, xv);
      }
      s +=
          fmt::format(R"(<line class="grid" x1="{1:.1f}" x2="{2:.1f}" y1="{0:.1f}" y2="{0:.1f}"/>)",
                      y(yv), x(0), x(x_max_));
      s += fmt::format(R"(<text x="{:.1f}" y="{:.1f}" text-anchor="end">{:g}</text>)", x(0) - 6,
                       y(yv) + 4, yv);
    }
    s += fmt::format(R"(<text x="{:.1f}" y="{:.1f}" text-anchor="middle">{}</text>)", x(x_max_ / 2),
                     kHeight - 8, x_name_);
    s += fmt::format(
        R"~(<text transform="translate(14 {:.1f}) rotate(-90)" text-anchor="middle">{}</text>)~",
        y(y_max_ / 2), y_name_);
    return s + body_ + "</svg></figure>\n";
  }

 private:
  double x(double v) const { return kLeft + v / x_max_ * (kWidth - kLeft - kRight); }
  double y(double v) const { return kHeight - kBottom - v / y_max_ * (kHeight - kTop - kBottom); }

  std::string title_, x_name_, y_name_, body_;
  double x_max_, y_max_;
  std::size_t lines_ = 0;
  bool is_bars_ = false;
};

std::string completion_times(const RunResult& r) {
  std::vector<double> times;
  for (const FlowResult& f : r.flows) {
    if (f.is_complete()) times.push_back(f.fct().us());
  }
  std::sort(times.begin(), times.end());
  Line line{"", {{0, 0}}};
  for (std::size_t i = 0; i < times.size(); ++i) {
    const double below = static_cast<double>(i) / static_cast<double>(times.size());
    line.points.emplace_back(times[i], below);
    line.points.emplace_back(times[i], below + 1.0 / static_cast<double>(times.size()));
  }
  Chart chart("Completion times (dashed: lower bound)", "us", "share of flows",
              std::max(r.fct_max.us(), r.bound.us()), 1);
  chart.with_round_axis().add(line);
  chart.add_mark(r.bound.us(), fmt::format("lower bound {:.3f} us", r.bound.us()));
  return chart.html();
}

std::string queues(const RunConfig& config, const RunResult& r) {
  Line longest{"", {}};
  double highest = 1;
  for (const QueueSample& s : r.queue_samples) {
    longest.points.emplace_back(s.at.us(), static_cast<double>(s.longest_bytes) / 1000);
    highest = std::max(highest, longest.points.back().second);
  }
  Chart chart(
      fmt::format("Longest switch queue (limit {:.0f} kB)",
                  static_cast<double>(config.fabric.switch_queue(false).data_limit_bytes) / 1000),
      "us", "kB", r.ended.us(), highest);
  chart.with_round_axis().add(longest);
  return chart.html();
}

std::string windows(const RunResult& r) {
  std::map<HostId, Line> lines;
  double highest = 1;
  for (const WindowSample& s : r.window_samples) {
    if (!lines.contains(s.host) && lines.size() == kMaxLines) continue;
    Line& line = lines[s.host];
    line.name = fmt::format("host {}", s.host);
    line.points.emplace_back(s.at.us(), static_cast<double>(s.window) / 1000);
    highest = std::max(highest, line.points.back().second);
  }
  Chart chart("Congestion windows of the first hosts", "us", "kB", r.ended.us(), highest);
  chart.with_round_axis();
  for (const auto& [host, line] : lines) chart.add(line);
  return chart.html();
}

std::string shares(const RunConfig& config, const RunResult& r) {
  const double highest =
      r.top_share.empty() ? 1 : *std::max_element(r.top_share.begin(), r.top_share.end());
  const char* what = config.fabric.tree.tiers == 2 ? "spine" : "core";
  const std::size_t tops = config.fabric.tree.tops();
  Chart chart(fmt::format("Data packets by {}", what),
              config.fabric.planes > 1 ? fmt::format("plane/{}", what) : what, "%",
              static_cast<double>(std::max<std::size_t>(r.top_share.size(), 1)),
              std::max(1.0, 100 * highest));
  // More labels than this run into each other.
  constexpr std::size_t kMaxLabels = 24;
  const std::size_t step = (r.top_share.size() + kMaxLabels - 1) / kMaxLabels;
  for (std::size_t i = 0; i < r.top_share.size(); ++i) {
    const std::string name =
        config.fabric.planes > 1 ? fmt::format("{}/{}", i / tops, i % tops) : fmt::format("{}", i);
    chart.add_bar(i, 100 * r.top_share[i], i % step == 0 ? name : "",
                  fmt::format("{} {}: {:.2f} %", what, name, 100 * r.top_share[i]));
  }
  return chart.html();
}

}  // namespace

bool write_html_report(const std::string& path, const RunConfig& config, const RunResult& r) {
  std::ofstream out(path);
  out << R"(<!doctype html><html lang="en"><meta charset="utf-8"><title>uet-sim</title><style>
body{font:15px system-ui,sans-serif;margin:2em auto;max-width:1360px;color:#222}
main{display:grid;grid-template-columns:repeat(auto-fit,minmax(480px,1fr));gap:1em}
figure{margin:0}figcaption{font-weight:600}svg{width:100%}svg text{font-size:12px;fill:#555}
.grid{stroke:#ddd}table{border-collapse:collapse}td{padding:2px 14px 2px 0}
</style><h1>uet-sim</h1><table>
)";
  const auto row = [&out](std::string_view name, const std::string& value) {
    out << "<tr><td>" << name << "<td>" << value << "</tr>\n";
  };
  row("flows", fmt::format("{} of {} completed", r.completed, r.flows.size()));
  row("fabric", fmt::format("{} hosts, {} tiers, {} planes, seed {}", config.fabric.hosts,
                            config.fabric.tree.tiers, config.fabric.planes, config.seed));
  row("completion time",
      fmt::format("min {:.3f}, median {:.3f}, p99 {:.3f}, max {:.3f} us; bound {:.3f} us",
                  r.fct_min.us(), r.fct_median.us(), r.fct_p99.us(), r.fct_max.us(), r.bound.us()));
  if (r.job.ps() > 0) {
    row("whole job", fmt::format("{:.3f} us; its critical path alone takes {:.3f} us", r.job.us(),
                                 r.job_bound.us()));
  }
  row("Jain index", fmt::format("{:.4f}", r.jain));
  row("data packets", fmt::format("{}, {} retransmissions, {} trims, {} drops, {} marks", r.packets,
                                  r.retransmissions, r.trims, r.drops, r.marks));
  out << "</table><main>\n"
      << completion_times(r) << queues(config, r) << windows(r) << shares(config, r)
      << "</main></html>\n";
  out.flush();
  return static_cast<bool>(out);
}

}  // namespace uet::sim
