/// RCCC, source side: send while credit is above zero; the destination grants it. [CC 5.3]
///
/// Knows: credit, the cumulative counters of the wire, speculative credit of the first round trip.
/// Not what waits: that arrives with each call.
#pragma once

#include "cc/credit_source.h"

namespace uet::cc {

class RcccSource {
 public:
  RcccSource(const CcConfig& config, Instant now);

  bool may_send() const { return credit_ > 0 || sends_without_credit_; }
  void on_send(Instant now, ByteCount bytes);
  /// An ACK, NACK or credit arrived: unused speculative credit is void from now on.
  void on_first_feedback();
  void on_credit(Instant now, std::uint32_t credit_units);
  /// A timeout before the destination knows us: no credit can come and no request can go, so one
  /// packet may.
  void on_timeout_without_pdc() { sends_without_credit_ = true; }

  /// Demand counter after a packet of `bytes_leaving` has left (0 for a Credit Request). 24 bits.
  std::uint32_t credit_target(const Demand& demand, ByteCount bytes_leaving) const;
  /// The packet that is about to leave spends the last credit.
  bool spends_last(ByteCount bytes) const { return credit_ - bytes <= 0; }

  /// All PDCs of this CCC are gone, so the destination forgets the counters too.
  void reset(Instant now);

  ByteCount credit() const { return credit_; }
  CreditRequestTimer& timer() { return timer_; }
  const CreditRequestTimer& timer() const { return timer_; }

 private:
  const CcConfig& config_;
  CreditRequestTimer timer_;
  ByteCount credit_;
  std::uint32_t credit_seen_ = 0;
  bool speculative_ = true;
  bool heard_credit_ = false;
  bool sends_without_credit_ = false;
};

}  // namespace uet::cc
