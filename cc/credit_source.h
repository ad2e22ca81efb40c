/// What the CCC asks of an algorithm that needs credit from the destination before it sends. [CC 5]
#pragma once

#include <algorithm>
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
  std::uint32_t contending = 0;     ///< CCCs of this endpoint that could send now, itself included
};

/// When to ask again for credit. [CC 5.3]
///
/// The request timeout is twice the last interval between grants: under incast grants are rare, and the Credit Requests of a hundred
/// sources would displace data. (docs/notes/desynchronising-credit-sources.md)
class CreditRequestTimer {
 public:
  CreditRequestTimer(const CcConfig& config, Instant now)
      : timeout_(config.credit_request_timeout),
        patience_(config.credit_request_timeout),
        waits_since_(now),
        last_sign_(now) {}

  void packet_left(Instant now) {
    waits_since_ = last_sign_ = now;
    unanswered_ = 0;
  }
  void credit_came(Instant now) {
    patience_ = std::clamp((now - waits_since_) * 2, timeout_, timeout_ * kLongestInTimeouts);
    packet_left(now);
  }
  /// A destination that is gone answers none: each further request waits twice as long.
  void request_sent(Instant now) {
    last_sign_ = last_request_ = now;
    if (unanswered_ > 0) patience_ = std::min(patience_ * 2, std::max(patience_, kLongestSilence));
    if (unanswered_ < 255) ++unanswered_;
  }
  /// Requests that have left since a packet or new credit did.
  unsigned unanswered() const { return unanswered_; }
  /// Since when nothing has come of many requests, and no packet has left; never while they are few.
  Instant in_vain_since() const {
    return unanswered_ >= kManyRequests ? waits_since_ : Instant::never();
  }
  /// New data after a rest. Without credit the request is due at once.
  void data_came(Instant now, bool finds_credit) {
    patience_ = timeout_;
    unanswered_ = 0;
    waits_since_ = now;
    if (!finds_credit) last_sign_ = Instant();
  }
  /// At most one request per base RTT.
  Instant due(Duration base_rtt) const {
    const auto by_silence = last_sign_ + patience_;
    const auto by_rate = last_request_ + base_rtt;
    return by_silence > by_rate ? by_silence : by_rate;
  }

 private:
  static constexpr int kLongestInTimeouts = 16;
  static constexpr std::uint8_t kManyRequests = 16;
  static constexpr Duration kLongestSilence = Duration::from_ms(100);

  Duration timeout_;
  Duration patience_;            ///< silence before the next request
  std::uint8_t unanswered_ = 0;  ///< requests since anything came or left
  Instant waits_since_;          ///< the last packet or credit, or the first data after a rest
  Instant last_sign_;            ///< the same, or the last request
  Instant last_request_;
};

}  // namespace uet::cc
