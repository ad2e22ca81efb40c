#include "cc/path_judge.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace uet::cc {
namespace {

/// Another path would have helped only against what happened inside the fabric. [CC 3.5]
PathFeedback feedback_of(const NackSignal& nack) {
  if (nack.cause == NackCause::kTrimmed) return PathFeedback::kNacked;
  return nack.ecn ? PathFeedback::kEcn : PathFeedback::kGood;
}

/// What goes by one path in a row: as many full packets as the port moves as one. Smaller ones fill the place of a full one,
/// which keeps paths as even, unless every packet is to tell of another path. [decision 127]
ByteCount run_bytes_of(const CcConfig& config, std::uint16_t packets) {
  const bool by_bytes = packets > 1 || config.load_balancing == LoadBalancing::kOblivious;
  return by_bytes ? ByteCount{packets} * config.mtu_bytes : 0;
}

constexpr ByteCount kNeverWorn = std::numeric_limits<std::int32_t>::max();

}  // namespace

PathJudge::PathJudge(const CcConfig& config, bool sprayed, base::Rng& rng, base::Trace& trace)
    : table_(config, path_count_for(config, sprayed), evicts_paths(config, sprayed), rng, trace),
      selector_(make_path_selector(config, sprayed, table_, rng)),
      uses_good_news_(selector_->uses_good_news()),
      worn_by_(config.runs_end_with_turn ? ByteCount{config.mtu_bytes} : kNeverWorn),
      run_bytes_(run_bytes_of(config, config.run_packets)),
      calm_run_bytes_(run_bytes_of(config, config.calm_run_packets)) {}

void PathJudge::on_arrived(Instant now, Transmission& t, Duration base_rtt) {
  if (note_delivery(t, base_rtt)) feed_good(now, t.entropy);
}

void PathJudge::tell_good(Instant now, std::uint16_t entropy) {
  if (const auto index = table_.find(entropy))
    selector_->on_feedback(now, *index, PathFeedback::kGood);
}

void PathJudge::on_ack(Instant now, const AckSignal& ack, std::optional<Duration> rtt,
                       Duration slow_above, Duration base_rtt, Duration usual_rtt) {
  const auto unnamed = std::exchange(maybe_named_, std::nullopt);
  if (unnamed && (ack.trigger == nullptr || ack.trigger->entropy != *unnamed))
    feed_good(now, *unnamed);
  clean_answers_ = ack.ecn ? 0 : std::min(clean_answers_ + 1, kCalmAfter);
  const bool knows_path = ack.trigger == nullptr || ack.trigger->resent == 0 || ack.retx_echo;
  if (!knows_path || ack.is_probe_answer) return;
  const auto entropy = ack.trigger != nullptr ? ack.trigger->entropy : ack.entropy;
  const auto index = table_.find(entropy);
  if (rtt && index) table_.note_rtt(now, *index, *rtt);
  if (!ack.ecn && rtt && index && *rtt > slow_above) {
    selector_->on_slow(now, *index, base_rtt);
  } else {
    if (ack.ecn)
      feed(now, entropy, PathFeedback::kEcn, base_rtt);
    else
      feed_good(now, entropy);
  }
  // Without a record, the packet answered left about a round trip ago.
  note_answer(now, entropy, ack.trigger != nullptr ? ack.trigger->sent_at : now - usual_rtt);
}

void PathJudge::on_nack(Instant now, const Transmission& t, const NackSignal& nack,
                        Duration base_rtt) {
  feed(now, t.entropy, feedback_of(nack), base_rtt);
  note_answer(now, t.entropy, t.sent_at);
}

void PathJudge::on_loss(Instant now, const Transmission& t, Duration base_rtt) {
  feed(now, t.entropy, PathFeedback::kTimeout, base_rtt, t.sent_at);
}

void PathJudge::feed(Instant now, std::uint16_t entropy, PathFeedback kind, Duration base_rtt,
                     Instant sent_at) {
  if (kind != PathFeedback::kGood) clean_answers_ = 0;
  const auto index = table_.find(entropy);
  if (!index) return;
  if (kind != PathFeedback::kGood) table_.on_feedback(now, *index, kind, base_rtt, sent_at);
  selector_->on_feedback(now, *index, kind);
}

void PathJudge::note_answer(Instant now, std::uint16_t entropy, Instant sent_at) {
  if (const auto index = table_.find(entropy)) table_.on_answered(now, *index, sent_at);
}

}  // namespace uet::cc
