/// RCCC's answer to congestion inside the fabric, seen from the destination: how much of the link
/// to share out. [CC 5.5]
#pragma once

#include <cstdint>

#include "cc/cc_config.h"
#include "lib/base/rng.h"
#include "lib/base/units.h"

namespace uet::cc {

/// Optional. Fed with every data packet of the FEP by the CreditPacer, which gives credit by its factor.
class FabricFactor {
 public:
  /// `oversubscription` of the fabric, at least 1. `config` must be complete.
  FabricFactor(const CcConfig& config, double oversubscription, base::Rng& rng, base::Instant now);

  void on_data(bool ecn) {
    ++packets_;
    marks_ += ecn ? 1 : 0;
  }
  void on_trimmed(bool last_hop) { trims_ += last_hop ? 0 : 1; }
  /// Call at next_deadline(). Returns the factor for the coming interval.
  double poll(base::Instant now);
  base::Instant next_deadline() const { return interval_end_; }
  double factor() const { return factor_; }

 private:
  void start_interval(base::Instant now);

  base::Duration interval_;
  base::Rng& rng_;
  double floor_;
  double factor_ = 1.0;
  double marked_ = 0;    ///< smoothed share of marked packets
  double recovery_ = 0;  ///< step of the last quiet interval
  std::uint32_t packets_ = 0, marks_ = 0, trims_ = 0;
  base::Instant interval_end_;
};

}  // namespace uet::cc
