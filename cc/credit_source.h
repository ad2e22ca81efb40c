/// What the CCC asks of an algorithm that needs credit from the destination before it sends. [CC 5,
/// 6]
#pragma once

#include <cstdint>
#include <optional>

#include "cc/cc_config.h"
#include "lib/base/units.h"

namespace uet::cc {

using base::ByteCount;
using base::Duration;
using base::Instant;

/// What a source wants to send, as the demand counter needs it.
struct Demand {
  ByteCount new_bytes = 0;
  ByteCount resend_bytes = 0;
  std::uint32_t packets = 0;        ///< lower bound, at least 1 when bytes wait
  std::optional<ByteCount> window;  ///< NSCC's window, when it also decides
  std::uint32_t rivals = 0;         ///< CCCs of this endpoint that could send now, itself included
};

/// When to ask again for credit: shared by RCCC and TFC. [CC 5.3]
class CreditRequestTimer {
 public:
  CreditRequestTimer(const CcConfig& config, Instant now)
      : timeout_(config.credit_request_timeout), last_sign_(now) {}

  /// Credit came, a packet left, or a request was sent.
  void restart(Instant now) { last_sign_ = now; }
  void request_sent(Instant now) { last_sign_ = last_request_ = now; }
  /// New data after a rest finds no credit: there is no news to wait for.
  void expedite() { last_sign_ = Instant(); }
  /// At most one request per base RTT.
  Instant due(Duration base_rtt) const {
    const auto by_silence = last_sign_ + timeout_;
    const auto by_rate = last_request_ + base_rtt;
    return by_silence > by_rate ? by_silence : by_rate;
  }

 private:
  Duration timeout_;
  Instant last_sign_;
  Instant last_request_;
};

}  // namespace uet::cc
