#include "apps/perf/collective_report.h"

#include <fmt/core.h>

#include <cstdio>

namespace uet::perf {

void CollectiveReport::add(const CollectiveFigure& f) {
  const CollectiveShape& s = f.shape;
  const std::string_view type = s.elements.type();
  const std::string_view reduction = s.reduces() ? s.elements.reduction() : "none";
  wrong_ += f.wrong;
  if (format_ == Format::kJson) {
    rows_.push_back(
        {{"test", s.name},
         {"provider", f.provider},
         {"size", s.bytes()},
         {"count", s.count},
         {"type", type},
         {"redop", reduction},
         {"calls", f.calls},
         {"time_us",
          {{"min", f.time_us.min}, {"median", f.time_us.median}, {"max", f.time_us.max}}},
         {"algbw_gbyte_per_s", f.algorithm_bandwidth()},
         {"busbw_gbyte_per_s", f.bus_bandwidth()},
         {"wrong", f.wrong}});
    return;
  }
  const bool is_csv = format_ == Format::kCsv;
  if (!std::exchange(has_header_, true)) {
    if (is_csv)
      fmt::print(
          "test,provider,size,count,type,redop,calls,time_us_min,time_us_median,time_us_max,"
          "algbw_gbyte_per_s,busbw_gbyte_per_s,wrong\n");
    else
      fmt::print("{:<16} {:<14}{:>11}{:>11}{:>8}{:>7}  {:>30}{:>9}{:>9}{:>7}\n", "test", "provider",
                 "size", "count", "type", "redop", "time us min/med/max", "algbw", "busbw",
                 "#wrong");
  }
  if (is_csv)
    fmt::print("{},\"{}\",{},{},{},{},{},{:.3f},{:.3f},{:.3f},{:.6f},{:.6f},{}\n", s.name,
               f.provider, s.bytes(), s.count, type, reduction, f.calls, f.time_us.min,
               f.time_us.median, f.time_us.max, f.algorithm_bandwidth(), f.bus_bandwidth(),
               f.wrong);
  else
    fmt::print(
        "{:<16} {:<14}{:>11}{:>11}{:>8}{:>7}  {:>10.2f}{:>10.2f}{:>10.2f}{:>9.3f}{:>9.3f}{:>7}\n",
        s.name, f.provider, s.bytes(), s.count, type, reduction, f.time_us.min, f.time_us.median,
        f.time_us.max, f.algorithm_bandwidth(), f.bus_bandwidth(), f.wrong);
  std::fflush(stdout);
}

void CollectiveReport::finish() {
  if (format_ != Format::kJson) return;
  about_["results"] = rows_;
  fmt::print("{}\n", about_.dump());
}

}  // namespace uet::perf
