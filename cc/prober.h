/// When a CCC sends a Probe: once to sample the base RTT, and when the window is full and no ACK is due. [CC 4.9]
#pragma once

#include <optional>

#include "cc/cc_config.h"
#include "lib/base/units.h"

namespace uet::cc {

using base::ByteCount;
using base::Duration;
using base::Instant;

/// Knows which questions are out (packets and probes that asked for an ACK), not why the CCC waits.
class Prober {
 public:
  /// A base RTT that is cached, has a floor at config_base_rtt, or is only a few packets long is not probed. (docs/notes/windows-of-a-few-packets.md)
  Prober(const CcConfig& config, Duration cached_base_rtt);

  /// A packet left that asks for an ACK.
  void on_asked(Instant now) { asked_at_ = now; }
  /// A packet sent then is no longer open: what was asked up to then is answered, or lost.
  void on_settled(Instant sent_at) {
    if (sent_at >= asked_at_) asked_at_ = Instant();
  }
  /// A packet of the CCC is no longer open: asking has helped, or is not what is needed.
  void on_closed() { vain_ = 0; }
  /// Any feedback of a flow that goes on: the destination knows it, so a Probe would be answered.
  void on_feedback();
  /// The answer to a Probe that left then, `rtt` earlier unless that is not known. The base RTT that follows, if it was sent for that.
  std::optional<Duration> on_answer(Instant sent_at, std::optional<Duration> rtt);

  /// `is_stuck`: the window is full of packets that the destination need not acknowledge unasked. Then a Probe is due a base RTT after
  /// the last one, unless an answer is; twice as long after each that changed nothing. (docs/decisions/0038)
  /// What feedback gave reason for is due at once and not told here: the owner polls after each event.
  Instant due(bool is_stuck) const;
  /// True when a Probe shall leave now; at most once for each reason.
  bool poll(Instant now, bool is_stuck, Duration base_rtt);

 private:
  Duration shortfall(Duration probe_rtt) const;

  const CcConfig& config_;
  bool may_measure_base_;
  bool is_wanted_ = false;
  bool measures_base_ = false;
  Instant asked_at_;  ///< when the youngest question left; zero when no answer is due
  Instant ask_again_at_;
  std::uint8_t vain_ = 0;  ///< Probes since a packet was closed
};

}  // namespace uet::cc
