#include "pds/loss.h"

namespace uet::pds {

void LossRecovery::arm_retransmit(Instant now, Pdc& pdc, TxRecord& record) {
  record.deadline = now + window_.rto(pdc, record.rto_cnt);
  watch_sent(now, pdc, record.deadline);
}

void LossRecovery::watch_sent(Instant now, Pdc& pdc, Instant deadline) {
  if (deadline < pdc.deadline(PdcTimer::kRetransmit))
    scheduler_.set_timer(pdc, PdcTimer::kRetransmit, deadline);
  watch_tail(now, pdc);
}

void LossRecovery::note_repeat(Instant now, Pdc& pdc, Psn psn) {
  TxHalf& tx = pdc.tx;
  if (psn != tx.left_edge) return;
  if (tx.repeats == 0) tx.repeated_since = now;
  if (tx.repeats < 255) ++tx.repeats;
}

void LossRecovery::queue_resend(Pdc& pdc, Psn psn, TxRecord& record, TxEvent why) {
  TxHalf& tx = pdc.tx;
  const TxState before = record.state();
  SendWindow::move(tx, record, why);
  record.deadline = Instant::never();
  if (before == TxState::kQueued) return;
  if (record.message == nullptr) return scheduler_.want_control(pdc, kResendControl);
  if (tx.rtx_count == 1 || psn.is_before(tx.rtx_from)) tx.rtx_from = psn;
  scheduler_.wake(pdc);
}

void LossRecovery::note_loss(Instant now, Congestion& congestion) {
  constexpr Duration kCareful = Duration::from_ms(1);
  congestion.losing_until = now + std::max(kCareful, congestion.ccc->smoothed_rtt() * 16);
}

void LossRecovery::mark_lost(Instant now, Pdc& pdc, Psn psn, TxRecord& record, bool timeout) {
  if (record.message != nullptr) {
    Congestion& congestion = pdc.tx.cc.of(*record.message);
    note_loss(now, congestion);
    congestion.ccc->on_inferred_loss(now, record.cc, pdc.tx.share, timeout,
                                     pdc.state != PdcState::kCreating);
    trace_.emit(now, EventId::kInferredLoss, pdc.id, psn, timeout ? 1 : 0, record.cc.entropy);
  }
  queue_resend(pdc, psn, record, TxEvent::kLost);
}

// Counted as in flight until the window opens, it could fill the window of congestion control, and the packets that would open the
// peer's window could not leave.
void LossRecovery::set_back(Instant now, Pdc& pdc, Psn psn, TxRecord& record) {
  pdc.tx.cc.of(*record.message).ccc->on_excluded(now, record.cc, pdc.tx.share);
  queue_resend(pdc, psn, record, TxEvent::kWindowShrank);
}

void LossRecovery::note_arrival(Instant now, Pdc& pdc, TxRecord& record, TxEvent how) {
  const bool has_timeout = record.state() == TxState::kInFlight || record.has_arrived();
  SendWindow::move(pdc.tx, record, how);
  if (&record == &tx_blocks_.at(pdc.tx.ring, pdc.tx.left_edge)) pdc.tx.repeats = 0;
  if (!has_timeout || how == TxEvent::kBusy) arm_retransmit(now, pdc, record);
}

bool LossRecovery::on_retransmit_timer(Instant now, Pdc& pdc) {
  TxHalf& tx = pdc.tx;
  const Asking asking = tx.asking;
  Instant next = Instant::never();
  for (Psn psn = tx.left_edge; psn.is_before(tx.next); ++psn) {
    TxRecord& record = tx_blocks_.at(tx.ring, psn);
    if (record.is_acked() || record.deadline.is_never()) continue;
    if (record.deadline > now) {
      next = std::min(next, record.deadline);
      continue;
    }
    if (record.is_paused()) {  // the pause after a resource NACK is over
      pdc.busy_since = now;    // the peer had no reason to say anything meanwhile
      if (pdc.is_rod()) {
        go_back(now, pdc, psn, false);
        break;
      }
      queue_resend(pdc, psn, record, TxEvent::kResumed);
      continue;
    }
    if (!window_.allows(pdc, psn)) {  // the peer's window shrank: not an error [PDS 7.2]
      if (record.message != nullptr && is_out(record.state())) {
        set_back(now, pdc, psn, record);
        continue;
      }
      arm_retransmit(now, pdc, record);
      next = std::min(next, record.deadline);
      continue;
    }
    if (record.state() == TxState::kInFlight && asking.is_unasked(psn)) {
      ask_for_unasked(now, pdc);
      arm_retransmit(now, pdc, record);
      next = std::min(next, record.deadline);
      continue;
    }
    if (record.state() == TxState::kSuspected) {
      if (pdc.is_rod() && !tx.peer_holds) {
        go_back(now, pdc, psn, false);
        break;
      }
      mark_lost(now, pdc, psn, record, false);
      continue;
    }
    const bool whole_window = pdc.is_rod();
    if (!on_timeout(now, pdc, psn, record)) return false;
    if (whole_window) break;  // the rest has been marked with it
    next = std::min(next, record.deadline);
  }
  // After go-back the deadlines behind were reset; look again over what still runs.
  if (pdc.is_rod()) {
    next = Instant::never();
    for (Psn psn = tx.left_edge; psn.is_before(tx.next); ++psn) {
      const TxRecord& record = tx_blocks_.at(tx.ring, psn);
      if (!record.is_acked()) next = std::min(next, record.deadline);
    }
  }
  if (next.is_never() && tx.rtx_count > 0 && pdc.state == PdcState::kCreating) {
    tx.has_credit_exemption = true;
    scheduler_.wake(pdc);
  }
  if (Congestion* congestion = tx.cc.if_any()) scheduler_.after_congestion_event(now, *congestion);
  if (next < pdc.deadline(PdcTimer::kRetransmit))
    scheduler_.set_timer(pdc, PdcTimer::kRetransmit, next);
  return true;
}

// False when the limit is reached.
bool LossRecovery::on_timeout(Instant now, Pdc& pdc, Psn psn, TxRecord& record) {
  trace_.emit(now, EventId::kTimeout, pdc.id, psn, record.rto_cnt,
              static_cast<std::uint64_t>(window_.rto(pdc, record.rto_cnt).ns()));
  if (config_.is_timeout_limit(record.rto_cnt)) return false;
  if (record.rto_cnt < 63) ++record.rto_cnt;
  if (pdc.state == PdcState::kCreating) pdc.is_unanswered = true;
  if (record.has_arrived()) {
    ask_about(pdc, psn, record);
    arm_retransmit(now, pdc, record);
  } else if (pdc.is_rod() && record.message != nullptr) {
    go_back(now, pdc, psn, true);
  } else {
    mark_lost(now, pdc, psn, record, true);
  }
  return true;
}

// No message came that would have asked for these, and the peer had no reason to say anything. Its time begins now; a Probe that cannot
// be sent, or is lost, leaves them to the timeout.
void LossRecovery::ask_for_unasked(Instant now, Pdc& pdc) {
  pdc.tx.asking.lose_patience();
  pdc.tx.asking.cover(pdc.tx.next - 1);
  pdc.busy_since = now;
  scheduler_.want_control(pdc, kSendProbe);
}

// The peer has it and the answer is missing: ask for the answer instead of sending the data again.
// [PDS 13.1]
void LossRecovery::ask_about(Pdc& pdc, Psn psn, TxRecord& record) {
  TxHalf& tx = pdc.tx;
  SendWindow::move(tx, record, TxEvent::kAnswerMissing);
  const bool is_only_one = !tx.ask_from.is_before(tx.ask_end);
  if (is_only_one || psn.is_before(tx.ask_from)) tx.ask_from = psn;
  if (is_only_one || psn.is_at_or_after(tx.ask_end)) tx.ask_end = psn + 1;
  scheduler_.want_control(pdc, kSendAckRequests);
}

void LossRecovery::hold_back(Pdc& pdc, Psn psn, TxRecord& record, Instant until, TxEvent why) {
  const auto hold = [&](TxRecord& r, TxEvent event) {
    if (r.state() != TxState::kQueued) return;
    SendWindow::move(pdc.tx, r, event);
    r.deadline = until;
  };
  hold(record, why);
  if (pdc.is_rod()) {
    // What follows would be dropped while this one is missing, so it waits too; the end of the
    // pause goes back. [PDS 17.1]
    for (Psn p = psn + 1; p.is_before(pdc.tx.next); ++p) {
      hold(tx_blocks_.at(pdc.tx.ring, p), TxEvent::kPaused);
    }
  }
  scheduler_.set_timer(pdc, PdcTimer::kRetransmit,
                       std::min(pdc.deadline(PdcTimer::kRetransmit), until));
}

void LossRecovery::go_back(Instant now, Pdc& pdc, Psn from, bool timeout) {
  TxHalf& tx = pdc.tx;
  for (Psn psn = serial_max(from, tx.left_edge); psn.is_before(tx.next); ++psn) {
    TxRecord& record = tx_blocks_.at(tx.ring, psn);
    if (record.is_acked() || record.state() == TxState::kQueued) continue;
    if (record.is_paused())
      queue_resend(pdc, psn, record, TxEvent::kResumed);
    else
      mark_lost(now, pdc, psn, record, timeout && psn == from);
  }
}

void LossRecovery::watch_tail(Instant now, Pdc& pdc) {
  if (config_.tail_loss_time <= Duration{} || pdc.tx.cc.if_any() == nullptr) return;
  if (!config_.tail_loss_asks)
    scheduler_.set_timer(pdc, PdcTimer::kTailLoss, now + config_.tail_loss_time);
  else if (const Instant due = now + tail_silence(now, pdc);
           due < pdc.deadline(PdcTimer::kTailLoss))
    scheduler_.set_timer(pdc, PdcTimer::kTailLoss, due);
}

// For some time after a loss the next one is likely. Then every packet asks for its ACK, so that what is known does not hang on
// one packet of a window, and silence is asked about sooner. See docs/decisions/0049.
bool LossRecovery::is_losing(Instant now, const Pdc& pdc) {
  const Congestion* congestion = pdc.tx.cc.if_any();
  return congestion != nullptr && now < congestion->losing_until;
}

Duration LossRecovery::tail_silence(Instant now, const Pdc& pdc) const {
  const bool is_short = config_.reorder_window > Duration{} && is_losing(now, pdc);
  const Duration least =
      is_short ? std::min(config_.reorder_window, config_.tail_loss_time) : config_.tail_loss_time;
  return std::max(least, smoothed_rtt(pdc) * 4) * (1 << pdc.tx.tail_probes);
}

// Asks what has arrived, once the youngest packet that nothing is known about has been out for long enough. The timer was
// not moved with each packet, so it may come early.
void LossRecovery::ask_about_tail(Instant now, Pdc& pdc) {
  TxHalf& tx = pdc.tx;
  if (pdc.peer_id == 0) return;  // a Probe opens nothing; the RTO does its work
  for (Psn psn = tx.next - 1; psn.is_at_or_after(tx.left_edge); psn = psn - 1) {
    const TxRecord& record = tx_blocks_.at(tx.ring, psn);
    if (record.state() != TxState::kInFlight || record.message == nullptr) continue;
    const Instant due = std::max(record.cc.sent_at, tx.probe.sent_at) + tail_silence(now, pdc);
    if (due > now) return scheduler_.set_timer(pdc, PdcTimer::kTailLoss, due);
    ++tx.tail_probes;
    if (tx.asking.is_unasked(psn))
      ask_for_unasked(now, pdc);
    else
      scheduler_.want_control(pdc, kSendProbe);
    return scheduler_.set_timer(pdc, PdcTimer::kTailLoss, now + tail_silence(now, pdc));
  }
}

// Silence after the last packet: send the highest one again before its timeout. [PDS 13.5]
void LossRecovery::on_tail_loss(Instant now, Pdc& pdc) {
  TxHalf& tx = pdc.tx;
  if (tx.unacked == 0 || tx.tail_probes >= config_.max_tail_loss_retx) return;
  if (config_.tail_loss_asks) return ask_about_tail(now, pdc);
  for (Psn psn = tx.next - 1; psn.is_at_or_after(tx.left_edge); psn = psn - 1) {
    TxRecord& record = tx_blocks_.at(tx.ring, psn);
    if (record.is_acked()) continue;
    if (record.waits_for_resend() || record.message == nullptr) return;
    ++tx.tail_probes;
    if (record.has_arrived()) {
      ask_about(pdc, psn, record);
      scheduler_.set_timer(pdc, PdcTimer::kTailLoss, now + config_.tail_loss_time);
    } else if (pdc.is_rod()) {
      go_back(now, pdc, tx.left_edge, false);
    } else {
      mark_lost(now, pdc, psn, record, false);
    }
    scheduler_.after_congestion_event(now, tx.cc.of(*record.message));
    return;
  }
}

}  // namespace uet::pds
