#include "cc/paths_single.h"

namespace uet::cc {

std::uint32_t SinglePath::next(const PathRequest& request) {
  // A port that cannot take packets stops everything: leave it even though packets may then be
  // overtaken.
  const bool port_blocked = !table_.port_is_free(0, request);
  const bool lost_here = request.avoid_entropy && *request.avoid_entropy == table_.entropy(0);
  const bool may_change = request.open_packets == 0 ||
                          request.now - last_change_ >= request.base_rtt * config_.reroute_rtts;
  if (port_blocked || ((wants_change_ || lost_here) && may_change)) {
    table_.rebase(rng_, request.free_planes);
    last_change_ = request.now;
    wants_change_ = false;
  }
  return 0;
}

void SinglePath::on_feedback(Instant, std::uint32_t, PathFeedback kind) {
  if (kind != PathFeedback::kGood) wants_change_ = true;
}

}  // namespace uet::cc
