#include "pds/loss_evidence.h"

namespace uet::pds {

namespace {

/// When the Nth youngest arrival of each path was sent, in a walk from the youngest packet down. A
/// table of fixed size: paths beyond it give no evidence, and the RTO finds their losses.
class PathEvidence {
 public:
  explicit PathEvidence(unsigned threshold) : threshold_(threshold) {}

  void arrived(std::uint16_t entropy, Instant sent_at) {
    Path* path = find(entropy);
    if (path == nullptr || path->arrivals == threshold_) return;
    path->entropy = entropy;
    path->sent_at = sent_at;
    ++path->arrivals;
  }
  /// True when `threshold` packets of this path that left after `sent_at` have arrived.
  bool is_against(std::uint16_t entropy, Instant sent_at, bool was_resent) {
    const Path* path = find(entropy);
    if (path == nullptr || path->arrivals < threshold_) return false;
    return was_resent ? path->sent_at > sent_at : path->sent_at >= sent_at;
  }

 private:
  static constexpr std::size_t kPaths = 256;
  struct Path {
    Instant sent_at;
    std::uint16_t entropy = 0;
    std::uint16_t arrivals = 0;  ///< 0: free
  };
  Path* find(std::uint16_t entropy) {
    constexpr std::size_t kProbes = 8;
    for (std::size_t i = 0; i < kProbes; ++i) {
      Path& path = paths_[(entropy * 40503u + i) % kPaths];
      if (path.arrivals == 0 || path.entropy == entropy) return &path;
    }
    return nullptr;
  }
  unsigned threshold_;
  std::array<Path, kPaths> paths_{};
};

}  // namespace

// Packets sent later on the same path that arrived are evidence, since paths keep the order. A bit
// that is not set in a SACK is none. One walk over what is out, youngest first. [PDS 13.4]
void LossEvidence::infer_losses(Instant now, Pdc& pdc) {
  TxHalf& tx = pdc.tx;
  if (config_.sack_loss_thresh == 0 || pdc.is_rod() || tx.cc.if_any() == nullptr) return;
  PathEvidence evidence(config_.sack_loss_thresh);
  for (Psn psn = tx.next - 1; psn.is_at_or_after(tx.left_edge); psn = psn - 1) {
    TxRecord& record = tx_blocks_.at(tx.ring, psn);
    if (record.message == nullptr || record.waits_for_resend()) continue;
    if (record.is_acked() || record.has_arrived()) {
      if (record.cc.resent == 0) evidence.arrived(record.cc.entropy, record.cc.sent_at);
    } else if (evidence.is_against(record.cc.entropy, record.cc.sent_at, record.cc.resent > 0)) {
      loss_.mark_lost(now, pdc, psn, record, false);
    }
  }
}

// Evidence over all paths: packets that left after this one have arrived. [PDS 13.4]
void LossEvidence::suspect_overtaken(Instant now, Pdc& pdc, Psn from, Psn newest) {
  if (pdc.is_rod()) return;
  const cc::Transmission& last = tx_blocks_.at(pdc.tx.ring, newest).cc;
  if (last.resent == 0) suspect_sent_before(now, pdc, from, newest, last.sent_at);
}

// What left before something that has arrived, and is not known to have arrived itself. Paths differ, so it gets the time of
// a reordering window before it counts as lost. On ROD the oldest one speaks for all.
void LossEvidence::suspect_sent_before(Instant now, Pdc& pdc, Psn from, Psn end,
                                       Instant sent_before) {
  TxHalf& tx = pdc.tx;
  const Congestion* congestion = tx.cc.if_any();
  if (config_.reorder_window <= Duration{} || congestion == nullptr) return;
  const Duration rtt = congestion->ccc->smoothed_rtt();
  const Duration window = std::max(config_.reorder_window, rtt / 2);
  Instant earliest = Instant::never();
  // Where the left edge waits for answers, most of a window has arrived and is not looked at with every ACK.
  for (Psn psn = serial_max(tx.in_flight_from, from); psn.is_before(end) && psn.is_before(tx.next);
       ++psn) {
    TxRecord& record = tx_blocks_.at(tx.ring, psn);
    if (record.state() == TxState::kInFlight && record.message != nullptr &&
        record.cc.sent_at <= sent_before) {
      const Instant verdict = std::max(now, record.cc.sent_at + rtt) + window;
      if (verdict < record.deadline) {
        record.deadline = verdict;
        SendWindow::move(tx, record, TxEvent::kOvertaken);
        earliest = std::min(earliest, verdict);
        if (pdc.is_rod()) break;
      }
    }
    const bool may_be_passed = record.state() != TxState::kInFlight || record.message == nullptr;
    if (may_be_passed && psn == tx.in_flight_from) ++tx.in_flight_from;
  }
  if (earliest < pdc.deadline(PdcTimer::kRetransmit))
    scheduler_.set_timer(pdc, PdcTimer::kRetransmit, earliest);
}

}  // namespace uet::pds
