#include "cc/allowance.h"

namespace uet::cc {
namespace {

bool uses(const CcConfig& config, Algorithm algorithm) {
  return config.algorithm == algorithm || config.algorithm == Algorithm::kBoth;
}

Nscc::Trim trim_of(NackCause cause) {
  switch (cause) {
    case NackCause::kTrimmed:
      return Nscc::Trim::kInFabric;
    case NackCause::kTrimmedLastHop:
      return Nscc::Trim::kLastHop;
    case NackCause::kOther:
      break;
  }
  return Nscc::Trim::kNone;
}

}  // namespace

Allowance::Allowance(const CcConfig& config, Duration cached_base_rtt, Instant now,
                     ContendingContexts* contending)
    : config_(config),
      window_decides_(uses(config, Algorithm::kNscc)),
      credit_decides_(uses(config, Algorithm::kRccc)),
      nscc_(config, cached_base_rtt, now),
      rccc_(config, now),
      contending_(contending) {}

std::uint32_t Allowance::credit_target(Demand waiting, ByteCount leaving) const {
  if (window_decides_) waiting.window = nscc_.window();
  if (contending_ != nullptr) waiting.contending = contending_->ready;
  return rccc_.credit_target(waiting, leaving);
}

void Allowance::on_ack(Instant now, ByteCount newly_received, const AckSignal& ack,
                       std::optional<Duration> rtt) {
  if (!window_decides_) {
    nscc_.remove_inflight(newly_received);
    if (rtt) nscc_.on_base_rtt_sample(*rtt);
    return;
  }
  nscc_.on_ack(now,
               {.newly_received = newly_received,
                .ecn = ack.ecn,
                .rtt = rtt,
                .penalty = static_cast<std::uint8_t>(ack.has_nscc_state ? ack.penalty & 0x7f : 0),
                .restore_window = ack.has_nscc_state && ack.restore_window});
}

void Allowance::on_nack(Instant now, ByteCount bytes, NackCause cause,
                        std::optional<Duration> rtt) {
  if (window_decides_) return nscc_.on_nack(now, bytes, trim_of(cause), rtt, credit_decides_);
  nscc_.remove_inflight(bytes);
  if (rtt) nscc_.on_base_rtt_sample(*rtt);
}

void Allowance::on_loss(ByteCount bytes, bool is_congestion) {
  if (window_decides_ && is_congestion)
    nscc_.on_inferred_loss(bytes);
  else
    nscc_.remove_inflight(bytes);
}

void Allowance::count_readiness(bool has_data) {
  const bool is_ready = has_data && allows(config_.mtu_bytes);
  if (is_ready == is_contending_) return;
  is_contending_ = is_ready;
  contending_->ready += is_ready ? 1u : ~0u;
}

}  // namespace uet::cc
