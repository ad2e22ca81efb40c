#include "cc/fabric_factor.h"

#include <algorithm>

namespace uet::cc {
namespace {

constexpr double kMarksTolerated = 0.3;
constexpr double kRecoveryStep = 0.01;

}  // namespace

FabricFactor::FabricFactor(const CcConfig& config, double oversubscription, base::Rng& rng,
                           base::Instant now)
    : interval_(config.config_base_rtt * 3 / 2),
      rng_(rng),
      floor_(std::clamp(0.9 / std::max(oversubscription, 1.0), 0.01, 1.0)) {
  start_interval(now);
}

double FabricFactor::poll(base::Instant now) {
  if (now < interval_end_) return factor_;
  const double share = packets_ == 0 ? 0 : static_cast<double>(marks_) / packets_;
  marked_ = (marked_ + share) / 2;
  bool quiet = true;
  if (trims_ > 0) {
    factor_ -= static_cast<double>(trims_) / (packets_ + trims_);
    quiet = false;
  }
  if (marked_ > kMarksTolerated) {
    factor_ *= 1 - 0.5 * (marked_ - kMarksTolerated);
    quiet = false;
  }
  if (quiet) {
    recovery_ = recovery_ > 0 && marks_ == 0 ? std::min(recovery_ * 2, 1.0) : kRecoveryStep;
    factor_ += recovery_;
  } else {
    recovery_ = 0;
  }
  factor_ = std::clamp(factor_, floor_, 1.0);
  start_interval(now);
  return factor_;
}

// Random lengths keep the destinations of a fabric from acting in step.
void FabricFactor::start_interval(base::Instant now) {
  const double scale = 0.75 + 0.5 * rng_.unit();
  interval_end_ = now + base::Duration::from_ns(
                            static_cast<std::int64_t>(static_cast<double>(interval_.ns()) * scale));
  packets_ = marks_ = trims_ = 0;
}

}  // namespace uet::cc
