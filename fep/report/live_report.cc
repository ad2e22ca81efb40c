#include "fep/report/live_report.h"

#include <algorithm>
#include <sstream>
#include <system_error>

#include "fep/report/event_log.h"
#include "lib/net/output_file.h"

namespace uet::fep {
namespace {

constexpr std::size_t kShownMax = 65536;

/// `,"not_written":[{"file":"...","records":n,"why":"..."},...]` where a capture or log of this process lacks something.
std::string files_not_written() {
  std::string out;
  for (const net::NotWritten& file : net::not_written())
    out += (out.empty() ? R"(,"not_written":[{"file":)" : R"(,{"file":)") + json_string(file.path) +
           R"(,"records":)" + std::to_string(file.records) + R"(,"why":)" +
           json_string(std::generic_category().message(file.error)) + "}";
  return out.empty() ? out : out + "]";
}

}  // namespace

LiveReport::LiveReport(const std::string& request, int pid, std::string_view program)
    : pid_(pid), program_(program) {
  std::istringstream words(request);
  std::string what;
  words >> what;
  if (what == "events") kind_ = Kind::kEvents;
  if (what != "stat") return;
  kind_ = Kind::kStat;
  if (std::size_t n = 0; words >> n) limits_.pdcs = limits_.contexts = std::min(n, kShownMax);
}

void LiveReport::add(Instant now, Fep& fep, const Settings& settings) {
  if (kind_ == Kind::kStat) {
    if (!snapshots_.empty()) snapshots_ += ',';
    snapshots_ += snapshot(now, fep, settings, limits_);
  } else if (kind_ == Kind::kEvents) {
    recorded_.push_back({fep.port().facts().address.to_string(), fep.trace().recorded()});
  }
}

std::string LiveReport::text() const {
  const std::string pid = std::to_string(pid_);
  if (kind_ == Kind::kUnknown) return R"({"error":"unknown request"})";
  if (kind_ == Kind::kStat)
    return R"({"version":1,"pid":)" + pid + R"(,"program":)" + json_string(program_) +
           files_not_written() + R"(,"endpoints":[)" + snapshots_ + "]}\n";
  std::string out;
  for (const Recorded& endpoint : recorded_) {
    out += R"({"address":)" + json_string(endpoint.address) + R"(,"pid":)" + pid + "}\n";
    for (const base::Event& event : endpoint.events) out += to_json(event) + '\n';
  }
  return out;
}

}  // namespace uet::fep
