#include "apps/sim/run_output.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "apps/sim/flow_paths.h"
#include "sim/bounds.h"

namespace uet::sim {

namespace {

using Json = nlohmann::ordered_json;

double rounded(double value, double unit) {
  return std::round(value / unit) * unit;
}

double us(SimSpan s) {
  return rounded(s.us(), 1e-6);
}

double us(base::Duration d) {
  return rounded(static_cast<double>(d.ns()) / 1000, 1e-3);
}

std::uint64_t max_rss_kib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::uint64_t>(usage.ru_maxrss);
}

Json fct_json(const RunResult& r) {
  const auto value = [](bool is_known, SimSpan s) {
    return is_known ? Json(us(s)) : Json(nullptr);
  };
  const bool any = r.completed > 0;
  const bool all = any && is_whole(r);
  return {{"min", value(any, r.fct_min)},
          {"median", value(any, r.fct_median)},
          {"p99", value(all, r.fct_p99)},
          {"max", value(all, r.fct_max)}};
}

Json path_totals(const RunResult& r) {
  PathSummary sum;
  for (const FlowResult& f : r.flows) {
    const PathSummary& s = f.path_summary;
    sum.known += s.known;
    sum.used += s.used;
    sum.evicted += s.evicted;
    sum.returning += s.returning;
  }
  return {{"known", sum.known},
          {"used", sum.used},
          {"good", sum.known - sum.evicted - sum.returning},
          {"evicted", sum.evicted},
          {"returning", sum.returning}};
}

/// Paths that carried nothing are left out, unless they are not well.
bool is_of_interest(const cc::Ccc::PathInfo& path) {
  return path.sent > 0 || path.state != cc::Ccc::PathState::kGood;
}

Json flow_paths(const FlowResult& f) {
  Json paths = Json::array();
  for (const auto& p : f.paths) {
    if (!is_of_interest(p)) continue;
    paths.push_back({{"entropy", p.entropy},
                     {"plane", p.plane},
                     {"state", name_of(p.state)},
                     {"score", p.penalty},
                     {"rtt_us", p.rtt == base::Duration{} ? Json(nullptr) : Json(us(p.rtt))},
                     {"sent", p.sent},
                     {"marks", p.marks},
                     {"trims", p.trims},
                     {"losses", p.losses}});
  }
  return {{"id", f.flow.id},
          {"source", f.flow.source},
          {"destination", f.flow.destination},
          {"paths", std::move(paths)}};
}

std::string state_of(const FlowResult& f) {
  if (f.is_complete()) return "done";
  if (f.failed) return fmt::format("failed-{:#04x}", f.code);
  return f.started.is_never() ? "waiting" : "running";
}

}  // namespace

bool is_whole(const RunResult& r) {
  return r.completed == r.flows.size();
}

bool has_order(const RunResult& r) {
  return std::any_of(r.flows.begin(), r.flows.end(),
                     [](const FlowResult& f) { return f.flow.started_by.has_value(); });
}

std::string json_text(Json run, const RunConfig& config, const RunResult& r, double wall_s) {
  const bool has_shares = r.completed > 0 && is_whole(r);
  Json j;
  j["run"] = std::move(run);
  j["flows"] = r.flows.size();
  j["completed"] = r.completed;
  j["bound_us"] = us(r.bound);
  j["fct_us"] = fct_json(r);
  j["job_us"] = r.job.ps() > 0 ? Json(us(r.job)) : Json(nullptr);
  j["job_bound_us"] = us(r.job_bound);
  j["jain"] = has_shares ? Json(rounded(r.jain, 1e-6)) : Json(nullptr);
  j["packets"] = r.packets;
  j["retransmissions"] = r.retransmissions;
  j["timeouts"] = r.timeouts;
  j["trims"] = r.trims;
  j["drops"] = r.drops;
  j["marks"] = r.marks;
  auto& share = j["spine_share"] = Json::array();
  for (const double s : r.top_share) share.push_back(rounded(s, 1e-6));
  j["ooo_distance_max"] = r.ooo_distance_max;
  j["paths"] = path_totals(r);
  if (config.keep_paths) {
    auto& states = j["path_state"] = Json::array();
    for (const FlowResult& f : r.flows) states.push_back(flow_paths(f));
  }
  j["events"] = r.events;
  j["max_rss_kib"] = max_rss_kib();
  j["wall_s"] = rounded(wall_s, 1e-4);
  return j.dump();
}

void print_text(const RunName& name, const RunConfig& config, const RunResult& r, double wall_s) {
  fmt::print("traffic           {}\n", name.traffic);
  fmt::print("fabric            {}\n", name.fabric);
  fmt::print("transport         {}\n", name.transport);
  fmt::print("faults            {}\n", name.faults);
  fmt::print("seed              {}\n", config.seed);
  fmt::print("flows             {} of {} completed\n", r.completed, r.flows.size());
  if (r.completed > 0) {
    fmt::print("completion time   min {:.3f}  median {:.3f}  p99 {:.3f}  max {:.3f} us{}\n",
               r.fct_min.us(), r.fct_median.us(), r.fct_p99.us(), r.fct_max.us(),
               is_whole(r) ? "" : ", of those that completed");
    if (is_whole(r) && !has_order(r)) {
      fmt::print("slowest flow      {:.3f} times its bound of {:.3f} us\n",
                 r.fct_max.us() / r.bound.us(), r.bound.us());
    }
    if (is_whole(r)) fmt::print("Jain index        {:.4f}\n", r.jain);
  }
  if (r.job.ps() > 0) {
    fmt::print("whole job         {:.3f} us, {:.3f} times its bound of {:.3f} us\n", r.job.us(),
               r.job.us() / r.job_bound.us(), r.job_bound.us());
  }
  fmt::print("data packets      {}, of them {} retransmissions, {} timeouts\n", r.packets,
             r.retransmissions, r.timeouts);
  fmt::print("trims {}  drops {}  marks {}\n", r.trims, r.drops, r.marks);
  fmt::print("reordering        up to {} packets\n", r.ooo_distance_max);
  if (r.top_share.size() <= 16) {
    fmt::print("spine shares     ");
    for (const double s : r.top_share) fmt::print(" {:.1f} %", 100 * s);
    fmt::print("\n");
  }
  const Json paths = path_totals(r);
  fmt::print("paths             {} used of {}; {} evicted, {} returning\n",
             paths["used"].get<std::uint64_t>(), paths["known"].get<std::uint64_t>(),
             paths["evicted"].get<std::uint64_t>(), paths["returning"].get<std::uint64_t>());
  fmt::print("simulated         {:.1f} us, {} events in {:.2f} s, {} MiB, fingerprint {:016x}\n",
             r.ended.us(), r.events, wall_s, max_rss_kib() / 1024, r.fingerprint);
}

bool write_per_flow(const std::string& path, const RunConfig& config, const RunResult& r) {
  std::ofstream out(path);
  if (!out) return false;
  out << "id,source,destination,bytes,start_us,end_us,fct_us,bound_us,rate_gbps,state,paths_used,"
         "paths_evicted,paths_returning,marks,trims,losses,path_rtt_min_us,path_rtt_max_us\n";
  for (const FlowResult& f : r.flows) {
    const bool started = !f.started.is_never();
    const bool ended = !f.ended.is_never();
    const bool done = f.is_complete();
    const PathSummary& p = f.path_summary;
    const bool has_rtt = p.rtt_max > base::Duration{};
    out << fmt::format(
        "{},{},{},{},{},{},{},{:.6f},{},{},{},{},{},{},{},{},{},{}\n", f.flow.id, f.flow.source,
        f.flow.destination, f.flow.bytes, started ? fmt::format("{:.6f}", f.started.us()) : "",
        ended ? fmt::format("{:.6f}", f.ended.us()) : "",
        done ? fmt::format("{:.6f}", f.fct().us()) : "",
        solo_bound(config.fabric, f.flow.source, f.flow.destination, f.flow.bytes).us(),
        done ? fmt::format("{:.4f}", static_cast<double>(f.flow.bytes) * 8e-3 / f.fct().us()) : "",
        state_of(f), p.used, p.evicted, p.returning, p.marks, p.trims, p.losses,
        has_rtt ? fmt::format("{:.3f}", us(p.rtt_min)) : "",
        has_rtt ? fmt::format("{:.3f}", us(p.rtt_max)) : "");
  }
  out.flush();
  return static_cast<bool>(out);
}

bool write_paths(const std::string& path, const RunResult& r) {
  std::ofstream out(path);
  if (!out) return false;
  out << "id,source,destination,entropy,plane,state,score,rtt_us,sent,marks,trims,losses\n";
  for (const FlowResult& f : r.flows) {
    for (const auto& p : f.paths) {
      if (!is_of_interest(p)) continue;
      out << fmt::format("{},{},{},{},{},{},{},{},{},{},{},{}\n", f.flow.id, f.flow.source,
                         f.flow.destination, p.entropy, p.plane, name_of(p.state), p.penalty,
                         p.rtt == base::Duration{} ? "" : fmt::format("{:.3f}", us(p.rtt)), p.sent,
                         p.marks, p.trims, p.losses);
    }
  }
  out.flush();
  return static_cast<bool>(out);
}

}  // namespace uet::sim
