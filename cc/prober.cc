#include "cc/prober.h"

#include <algorithm>
#include <utility>

namespace uet::cc {
namespace {

constexpr ByteCount kProbeBytes = 64;  // on the wire
constexpr std::uint8_t kMostDoublings = 10;

/// A probe is short: its round trip lacks the time that a full packet takes to send at every hop.
/// Where that is much of the round trip, the window would become too small to keep a link busy.
bool is_probe_like_data(const CcConfig& config) {
  constexpr std::int64_t kSmallShare = 25;
  const auto bits_per_rtt = static_cast<base::WideInt>(config.link_rate.bps()) *
                            config.config_base_rtt.ns() / 1'000'000'000;
  return bits_per_rtt >= kSmallShare * 8 * static_cast<base::WideInt>(config.mtu_bytes);
}

}  // namespace

Prober::Prober(const CcConfig& config, Duration cached_base_rtt)
    : config_(config),
      may_measure_base_(config.probe_base_rtt && cached_base_rtt == Duration() &&
                        config.base_rtt_floor < config.config_base_rtt &&
                        is_probe_like_data(config)) {}

void Prober::on_feedback() {
  if (!may_measure_base_) return;
  is_wanted_ = measures_base_ = true;
  may_measure_base_ = false;
}

std::optional<Duration> Prober::on_answer(Instant sent_at, std::optional<Duration> rtt) {
  on_settled(sent_at);
  if (!rtt || !std::exchange(measures_base_, false) || *rtt <= Duration()) return std::nullopt;
  return *rtt + shortfall(*rtt);
}

Instant Prober::due(bool is_stuck) const {
  return is_stuck && !is_wanted_ && asked_at_ == Instant() ? ask_again_at_ : Instant::never();
}

bool Prober::poll(Instant now, bool is_stuck, Duration base_rtt) {
  if (!is_wanted_ && due(is_stuck) > now) return false;
  if (!is_wanted_) {
    ask_again_at_ = now + base_rtt * (1 << vain_);
    if (vain_ < kMostDoublings) ++vain_;
  }
  is_wanted_ = false;
  asked_at_ = now;
  return true;
}

/// What a probe's round trip lacks to that of a full packet, which every link on the way takes longer to send. The longest way
/// is config_base_rtt and, in the largest fabrics, kMostLinks links; a shorter one has as many links as its time is shorter, and
/// two at least. A plane sends a packet alone. (docs/notes/replacing-few-entropy-values.md)
Duration Prober::shortfall(Duration probe_rtt) const {
  constexpr std::int64_t kLeastLinks = 2, kMostLinks = 6;
  const auto link = config_.link_rate.time_for((config_.mtu_bytes - kProbeBytes) * config_.planes);
  // With many planes a packet may take so long that little is left of the longest way.
  const auto longest = std::max(config_.config_base_rtt - link * kMostLinks, link);
  const auto links = (probe_rtt.ns() * kMostLinks * 2 + longest.ns()) / (longest.ns() * 2);
  return link * std::clamp(links, kLeastLinks, kMostLinks);
}

}  // namespace uet::cc
