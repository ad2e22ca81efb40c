#include "apps/sim/flow_paths.h"

#include <algorithm>

namespace uet::sim {

namespace {

PathSummary summary_of(const cc::Ccc& ccc) {
  PathSummary s;
  s.known = static_cast<std::uint32_t>(ccc.path_count());
  for (std::size_t i = 0; i < ccc.path_count(); ++i) {
    const cc::Ccc::PathInfo path = ccc.path(i);
    s.used += path.sent > 0 ? 1 : 0;
    s.evicted += path.state == cc::Ccc::PathState::kEvicted ? 1 : 0;
    s.returning += path.state == cc::Ccc::PathState::kReturning ? 1 : 0;
    s.sent += path.sent;
    s.marks += path.marks;
    s.trims += path.trims;
    s.losses += path.losses;
    if (path.rtt == base::Duration{}) continue;
    s.rtt_max = std::max(s.rtt_max, path.rtt);
    s.rtt_min = s.rtt_min == base::Duration{} ? path.rtt : std::min(s.rtt_min, path.rtt);
  }
  return s;
}

}  // namespace

void read_paths(const pds::Pds& pds, const net::FabricAddress& peer, bool keep_all,
                FlowResult& flow) {
  pds.for_each_congestion([&](const pds::Pds::CongestionView& view) {
    if (!view.sprayed || view.peer != peer) return;
    flow.path_summary = summary_of(view.ccc);
    flow.paths.clear();
    for (std::size_t i = 0; keep_all && i < view.ccc.path_count(); ++i) {
      flow.paths.push_back(view.ccc.path(i));
    }
  });
}

}  // namespace uet::sim
