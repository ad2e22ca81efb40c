/// May a packet leave? What the algorithms of one CCC say together: the window of NSCC, the credit of RCCC, both or neither. [CC 3.2]
///
/// Knows bytes, not transmissions or paths. Each algorithm is an object of its own; the one that does not decide still hears what it
/// needs to count.
#pragma once

#include "cc/nscc.h"
#include "cc/rccc_source.h"
#include "cc/signals.h"

namespace uet::cc {

/// The CCCs of one endpoint that could send now: they share its link. Belongs to the creator of
/// the CCCs.
struct ContendingContexts {
  std::uint32_t ready = 0;
};

class Allowance {
 public:
  /// `config` must be complete; without `contending` the CCC has the link for itself.
  Allowance(const CcConfig& config, Duration cached_base_rtt, Instant now,
            ContendingContexts* contending);
  ~Allowance() {
    if (is_contending_) --contending_->ready;
  }
  Allowance(const Allowance&) = delete;
  Allowance& operator=(const Allowance&) = delete;

  bool has_window() const { return window_decides_; }
  bool has_credit() const { return credit_decides_; }
  bool allows(ByteCount bytes) const {
    return (!window_decides_ || nscc_.may_send(bytes)) && (!credit_decides_ || rccc_.may_send());
  }
  /// Not even one packet more fits.
  bool is_window_full() const { return window_decides_ && !nscc_.may_send(config_.mtu_bytes); }
  bool lacks_credit() const { return credit_decides_ && !rccc_.may_send(); }
  /// The packet that is about to leave shall be acknowledged at once.
  bool wants_ack(ByteCount bytes) const {
    return (window_decides_ && nscc_.wants_ack(bytes)) ||
           (credit_decides_ && rccc_.spends_last(bytes));
  }
  /// For a packet of `leaving` bytes, 0 for a Credit Request; `waiting` is what waits once it has left.
  std::uint32_t credit_target(Demand waiting, ByteCount leaving) const;

  ByteCount window() const { return nscc_.window(); }
  /// Meaningful with has_credit().
  ByteCount credit() const { return rccc_.credit(); }
  ByteCount inflight() const { return nscc_.inflight(); }
  Duration base_rtt() const { return nscc_.base_rtt(); }

  /// New data after a rest.
  void on_data_after_rest(Instant now) { rccc_.timer().data_came(now, !lacks_credit()); }
  void on_send(Instant now, ByteCount bytes) {
    nscc_.on_send(bytes);
    if (credit_decides_) rccc_.on_send(now, bytes);
  }
  void on_feedback() { rccc_.on_first_feedback(); }
  void on_ack(Instant now, ByteCount newly_received, const AckSignal& ack,
              std::optional<Duration> rtt);
  void on_nack(Instant now, ByteCount bytes, NackCause cause, std::optional<Duration> rtt);
  void on_loss(ByteCount bytes, bool is_congestion);
  void on_credit(Instant now, std::uint32_t units) {
    if (credit_decides_) rccc_.on_credit(now, units);
  }
  void on_timeout_without_pdc() { rccc_.on_timeout_without_pdc(); }
  void on_base_rtt_sample(Duration rtt) { nscc_.on_base_rtt_sample(rtt); }
  void on_idle() { nscc_.on_idle(); }
  /// The bytes count as in flight no longer, or again, without a reaction to congestion.
  void remove_inflight(ByteCount bytes) { nscc_.remove_inflight(bytes); }
  void restore_inflight(ByteCount bytes) { nscc_.on_send(bytes); }
  /// The destination frees the credit state of a source that has no PDC left: both start again from zero.
  void reset_credit(Instant now) { rccc_.reset(now); }

  /// While credit is lacking.
  Instant credit_request_due() const { return rccc_.timer().due(nscc_.base_rtt()); }
  Instant credit_requested_in_vain_since() const { return rccc_.timer().in_vain_since(); }
  void on_credit_requested(Instant now) { rccc_.timer().request_sent(now); }

  /// After each event: whether this CCC is one of those that share the link. Only credit is asked for by share.
  void note_readiness(bool has_data) {
    if (credit_decides_ && contending_ != nullptr) [[unlikely]]
      count_readiness(has_data);
  }

 private:
  void count_readiness(bool has_data);

  const CcConfig& config_;
  const bool window_decides_, credit_decides_;  ///< by the algorithm
  Nscc nscc_;
  RcccSource rccc_;
  ContendingContexts* contending_;
  bool is_contending_ = false;  ///< counted in `contending_`
};

}  // namespace uet::cc
