#include "fep/report/path_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>

namespace uet::fep {
namespace {

constexpr Duration kInterval = Duration::from_seconds(1);

double in_us(Duration d) {
  return static_cast<double>(d.ns()) / 1000;
}

/// Acknowledged bytes are told in rounded units, so the balance may fall a little below zero.
base::ByteCount in_flight(const cc::Ccc& ccc) {
  return std::max(ccc.inflight_bytes(), base::ByteCount{0});
}

/// `,"credit":n` where the receiver grants it.
std::string credit_member(const cc::Ccc& ccc) {
  return ccc.carries_credit() ? fmt::format(R"(,"credit":{})", ccc.credit_bytes()) : "";
}

}  // namespace

std::string to_json(Instant now, const pds::Pds::CongestionView& view) {
  const cc::Ccc& ccc = view.ccc;
  std::string line = fmt::format(
      R"({{"t":{},"peer":"{}","window":{},"inflight":{},"base_rtt_us":{},"rtt_us":{}{},"paths":[)",
      now.ns(), view.peer.to_string(), ccc.window_bytes(), in_flight(ccc), in_us(ccc.base_rtt()),
      in_us(ccc.smoothed_rtt()), credit_member(ccc));
  const char* separator = "";
  for (std::size_t i = 0; i < ccc.path_count(); ++i) {
    const cc::Ccc::PathInfo path = ccc.path(i);
    if (path.sent == 0) continue;
    fmt::format_to(
        std::back_inserter(line),
        R"({}{{"entropy":{},"plane":{},"state":"{}","score":{},"rtt_us":{},"sent":{},"marks":{},"trims":{},"losses":{}}})",
        separator, path.entropy, path.plane, name_of(path.state), path.penalty, in_us(path.rtt),
        path.sent, path.marks, path.trims, path.losses);
    separator = ",";
  }
  return line + "]}\n";
}

std::string ordered_to_json(Instant now, const pds::Pds::CongestionView& view) {
  const cc::Ccc& ccc = view.ccc;
  return fmt::format(
      R"({{"t":{},"peer":"{}","window":{},"inflight":{},"base_rtt_us":{},"rtt_us":{}{},"ordered":true,)"
      R"("note":"an ordered context (ROD) keeps to one path: FI_UET_LB and FI_UET_PATHS do not apply"}})"
      "\n",
      now.ns(), view.peer.to_string(), ccc.window_bytes(), in_flight(ccc), in_us(ccc.base_rtt()),
      in_us(ccc.smoothed_rtt()), credit_member(ccc));
}

std::string planes_to_json(Instant now, const net::Port& port) {
  std::string line = fmt::format(R"({{"t":{},"planes":[)", now.ns());
  for (unsigned p = 0; p < port.facts().planes; ++p) {
    const net::PlaneCounters c = port.plane_counters(p);
    fmt::format_to(
        std::back_inserter(line),
        R"({}{{"plane":{},"up":{},"sent":{},"received":{},"waiting":{},"dropped":{},"times_down":{}}})",
        p == 0 ? "" : ",", p, c.is_up, c.sent, c.received, c.waiting, c.dropped, c.times_down);
  }
  return line + "]}\n";
}

std::unique_ptr<PathLog> PathLog::open(const std::string& path, std::string& error) {
  auto out = net::OutputFile::open(path);
  if (!out) {
    error = "FI_UET_PATH_LOG: cannot write " + path + ": " + std::strerror(errno);
    return nullptr;
  }
  return std::unique_ptr<PathLog>(new PathLog(std::move(out)));
}

void PathLog::write(Instant now, Fep& fep) {
  next_ = now + kInterval;
  const auto put = [this](const std::string& line) { file_->write(line); };
  if (fep.port().facts().planes > 1) put(planes_to_json(now, fep.port()));
  fep.pds().for_each_congestion([&](const pds::Pds::CongestionView& view) {
    put(view.sprayed ? to_json(now, view) : ordered_to_json(now, view));
  });
  file_->flush_now();  // the log may be watched live
}

}  // namespace uet::fep
