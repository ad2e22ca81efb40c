/// NSCC: one window at the source for all paths of a CCC, driven by ECN echo and measured queueing
/// delay. [CC 4]
///
/// Knows: window, base RTT, average delay. Does not know packets, credit or paths; keeping count of
/// what is in the network
/// (`inflight`) is shared with the other algorithms, which is why its part also runs when the
/// window is not asked.
#pragma once

#include <optional>

#include "cc/cc_config.h"
#include "lib/base/units.h"

namespace uet::cc {

using base::ByteCount;
using base::Duration;
using base::Instant;

class Nscc {
 public:
  /// What the window rules learn from one ACK.
  struct Ack {
    ByteCount newly_received = 0;
    bool ecn = false;
    std::optional<Duration> rtt;  ///< empty when it is not certain which transmission was answered
    std::uint8_t penalty = 0;
    bool restore_window = false;
  };
  enum class Trim : std::uint8_t { kNone, kInFabric, kLastHop };

  /// Names as in the specification's text, see the table at the head of its section.
  struct State {
    ByteCount window = 0;
    ByteCount window_max = 0;
    ByteCount inflight = 0;  ///< signed: receive counters are rounded up
    Duration base_rtt;
    double inc_bytes = 0;
    ByteCount received_bytes = 0;
    ByteCount achieved_bytes = 0;
    Instant qa_end;  ///< zero: no period started
    bool trigger_qa = false;
    bool fast_increase = false;
    ByteCount bytes_to_ignore = 0;
    ByteCount bytes_ignored = 0;
    ByteCount fi_count = 0;
    Instant last_adjust;
    Instant last_decrease;
    Instant last_sample;
    ByteCount saved_window = 0;
    double average_delay_ns = 0;
  };

  /// `config` must be complete and outlive this. `cached_base_rtt` is zero when unknown.
  Nscc(const CcConfig& config, Duration cached_base_rtt, Instant now);

  void on_send(ByteCount bytes) { state_.inflight += bytes; }
  /// Asking for room for a full packet keeps small packets of one PDC from starving big ones of another.
  bool may_send(ByteCount bytes) const {
    return state_.inflight + (config_.htsim_compat ? bytes : mtu()) <= state_.window;
  }
  /// Evaluated for the packet that is about to leave. [CC 4.5]
  bool wants_ack(ByteCount bytes_about_to_leave) const {
    const auto inflight = state_.inflight + bytes_about_to_leave;
    if (config_.htsim_compat) return inflight >= state_.window;
    return state_.window - inflight < mtu() || state_.window < config_.ack_gen_trigger;
  }

  void on_ack(Instant now, const Ack& ack);
  /// `credit_owns_last_hop`: RCCC runs too and answers for trims at the last hop.
  void on_nack(Instant now, ByteCount bytes, Trim trim, std::optional<Duration> rtt,
               bool credit_owns_last_hop);
  void on_inferred_loss(ByteCount bytes);

  /// The bytes have left the network; no reaction to congestion. Makes room in the window.
  void remove_inflight(ByteCount bytes) { state_.inflight -= bytes; }
  void on_base_rtt_sample(Duration rtt);
  void on_idle() { state_.saved_window = 0; }

  ByteCount window() const { return state_.window; }
  ByteCount inflight() const { return state_.inflight; }
  Duration base_rtt() const { return state_.base_rtt; }
  const State& state() const { return state_; }
  State& state_for_test() { return state_; }

 private:
  void apply_penalty(const Ack& ack);
  void apply_window_rules(Instant now, const Ack& ack, Duration queueing);
  void average(Instant now, Duration queueing, bool ecn);
  void fair_increase(ByteCount bytes);
  void proportional_increase(ByteCount bytes, Duration queueing);
  void multiplicative_decrease(Instant now);
  bool quick_adapt(Instant now, bool loss, bool ecn, Duration queueing);
  void settle_if_due(Instant now);
  void shrink_by(ByteCount bytes);
  ByteCount mtu() const { return config_.mtu_bytes; }

  const CcConfig& config_;
  State state_;
};

}  // namespace uet::cc
