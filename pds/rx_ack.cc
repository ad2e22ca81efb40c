#include "pds/rx_ack.h"

#include <bit>

#include "lib/base/planted.h"

namespace uet::pds {

using base::planted;
using base::PlantedBug;

void AckIntake::on_packet(Instant now, const net::RxPacket& rx) {
  if (env_.is_trimmed(rx))
    return trace_.drop(now, DropReason::kTrimmed, rx.packet.size());  // RTO recovers [PDS 13.6]
  AckIn in;
  if (!parse_ack(now, rx, trace_, in)) return;
  const wire::PdsAck& c = in.common;
  const auto drop = [&](DropReason reason) {
    trace_.drop(now, reason, rx.packet.size(), c.dpdcid, c.cack_psn);
  };
  Pdc* pdc = table_.by_id(c.dpdcid);
  if (pdc == nullptr) return drop(DropReason::kUnknownPdc);
  // A host that guesses our PDCID must not move CACK. [PDS 19 R5]
  if (pdc->peer != rx.source || c.spdcid == 0 || (pdc->peer_id != 0 && pdc->peer_id != c.spdcid))
    return drop(DropReason::kPeerMismatch);
  if (!speaks_of_what_was_sent(*pdc, in)) return drop(DropReason::kAckNeverSent);
  if (pdc->peer_id == 0) {
    // A host that names a packet that is out has seen it: nothing less says who the target is. [PDS 6.3]
    if (!shows_an_arrival(*pdc, in) && !planted(PlantedBug::kAckBelowStart))
      return drop(DropReason::kAckNeverSent);
    liveness_.learn_peer(now, *pdc, c.spdcid);
  }
  Liveness::heard(now, *pdc);
  // Nothing has been sent to an unproven peer but a Probe.
  if (pdc->tx.probe.is_answered_by(c)) liveness_.prove(now, *pdc);
  on_ack(now, *pdc, in);
}

/// Hands the response of one PSN to SES: the one in the ACK, or the default one. False when the PDC went away meanwhile.
bool AckIntake::acknowledge(Instant now, Pdc& pdc, TxRecord& record, const AckIn* with_response) {
  TxHalf& tx = pdc.tx;
  SendWindow::move(tx, record, TxEvent::kAcknowledged);
  record.deadline = Instant::never();
  --tx.unacked;
  if (record.message == nullptr) return true;  // sequenced control packet
  Message& message = *record.message;
  tx.cc.of(message).ccc->on_first_ack(record.cc, tx.share);
  const MessageToken token = message.request.token;
  const std::uint32_t segment = record.segment;
  message.may_be_delivered = true;
  if (--message.unanswered == 0 && message.is_fully_sent()) messages_.forget(message);
  const PdcRef ref = pdc.ref();
  if (with_response == nullptr) {
    upper_.on_response(now, token, segment, 0, {});
  } else {
    const auto next_hdr = static_cast<std::uint8_t>(with_response->common.next_hdr);
    upper_.on_response(now, token, segment, next_hdr, with_response->body);
  }
  return table_.is_alive(ref);
}

/// For a PSN that was answered before, whose record may be gone: SES knows whether it waits for more. False when the PDC went
/// away meanwhile. See docs/decisions/0109.
bool AckIntake::pass_further_response(Instant now, const Pdc& pdc, const AckIn& in) {
  if (!in.ack_names_psn() || in.body.empty()) return true;
  const PdcRef ref = pdc.ref();
  upper_.on_further_response(now, ref, static_cast<std::uint8_t>(in.common.next_hdr), in.body);
  return table_.is_alive(ref);
}

void AckIntake::on_ack(Instant now, Pdc& pdc, AckIn& in) {
  TxHalf& tx = pdc.tx;
  const Psn cack = in.common.cack_psn;
  const std::uint32_t unacked_before = tx.unacked;
  const bool closes =
      pdc.state == PdcState::kCloseAckWait &&
      (cack.is_at_or_after(pdc.close_psn) || (in.ack_names_psn() && in.ack_psn() == pdc.close_psn));

  // What it carries comes before what it says by default: CACK may cover the same PSN.
  if (!take_response(now, pdc, in) || !take_cack(now, pdc, in)) return;
  if (in.has_sack && !pdc.is_rod()) apply_sack(now, pdc, in);
  trace_.emit(now, EventId::kAckReceived, pdc.id, in.ack_names_psn() ? in.ack_psn() : cack,
              cack.value(), unacked_before - tx.unacked);
  Congestion* congestion = tx.cc.if_any();
  if (congestion != nullptr) {
    if (tx.probe.is_answered_by(in.common)) {
      in.signal.is_probe_answer = true;
      in.signal.probe_sent_at = tx.probe.sent_at;
      tx.probe.is_open = false;
    }
    congestion->ccc->on_ack(now, tx.share, in.signal);
    if (congestion->carrier == nullptr && !pdc.is_unproven())  // the one before has gone
      congestion->carrier = &pdc;
  }
  if (tx.unacked != unacked_before) tx.ses_busy_since = Instant::never();
  advance_left_edge(pdc);
  if (tx.left_edge != tx.cack + 1 && tx.left_edge != tx.next) clear_.start_stall(now, pdc);
  // They have a PSN, or need one: the window may have excluded it until now.
  if ((pdc.pending_control & (kSendNoop | kSendClose | kResendControl)) != 0)
    scheduler_.list_control(pdc);
  look_for_losses(now, pdc, in);
  if (tx.unacked == 0 && pdc.locks > 0)
    liveness_.look(now, pdc);  // from here on only the read data is waited for
  if (closes) {
    if (env_.guard != nullptr && in.expected_psn)
      env_.guard->on_expected_psn(pdc.peer, *in.expected_psn);
    return closing_.on_acknowledged(now, pdc);
  }
  obey_requests(now, pdc, in);
  if (congestion == nullptr) return;
  scheduler_.wake(pdc);
  scheduler_.after_congestion_event(now, *congestion);
}

/// The one response that an ACK carries. False when the PDC went away meanwhile.
bool AckIntake::take_response(Instant now, Pdc& pdc, AckIn& in) {
  TxHalf& tx = pdc.tx;
  const bool is_first = in.ack_names_psn() && tx.is_outstanding(in.ack_psn()) &&
                        !tx_blocks_.at(tx.ring, in.ack_psn()).is_acked();
  if (!is_first) return pass_further_response(now, pdc, in);
  TxRecord& record = tx_blocks_.at(tx.ring, in.ack_psn());
  if (record.message != nullptr && !record.was_asked_about()) in.signal.trigger = &record.cc;
  return acknowledge(now, pdc, record, &in);
}

/// Everything up to CACK is done, with the default response, and the window is the one that the peer states. An older ACK says
/// nothing about either. False when the PDC went away meanwhile.
bool AckIntake::take_cack(Instant now, Pdc& pdc, const AckIn& in) {
  TxHalf& tx = pdc.tx;
  const Psn cack = in.common.cack_psn;
  if (!cack.is_at_or_after(tx.cack)) return true;
  for (Psn psn = tx.left_edge; psn.is_at_or_before(cack); ++psn) {
    TxRecord& record = tx_blocks_.at(tx.ring, psn);
    if (record.is_acked()) continue;
    if (!acknowledge(now, pdc, record)) return false;
  }
  if (in.has_sack) {
    const std::uint32_t zero_means =
        config_.override_mpr_zero_value != 0 ? config_.override_mpr_zero_value : 128;
    tx.mp_range = in.mpr != 0 ? in.mpr * 128u : zero_means;
  }
  if (cack != tx.cack) {
    tx.cack = cack;
    tx.stall_backoff = 0;
    Scheduler::stop_timer(pdc, PdcTimer::kStall);
  }
  return true;
}

/// What was overtaken may be lost; without a gap behind the left edge there is nothing to look at.
void AckIntake::look_for_losses(Instant now, Pdc& pdc, const AckIn& in) {
  if (config_.sack_loss_thresh > 0 && is_gap_open(pdc, in)) evidence_.infer_losses(now, pdc);
  // A question is asked after a silence, in which ACKs may have been lost. So its answer says nothing of the PSNs below its bitmap;
  // and a bit that is not set is a word about its PSN only where the bitmap begins right behind CACK, as it was asked for: a
  // peer may have put there no more than it knows, or nothing. [PDS 10.3]
  const bool is_answer = in.signal.is_probe_answer && in.has_sack;
  const Psn from = is_answer ? in.sack_base : pdc.tx.in_flight_from;
  Psn newest;
  if (config_.reorder_window > Duration{} && find_newest_arrival(pdc, in, newest))
    evidence_.suspect_overtaken(now, pdc, from, newest);
  if (is_answer && from == in.common.cack_psn + 1)
    evidence_.suspect_sent_before(now, pdc, from, from + 64, in.signal.probe_sent_at);
  if (pdc.tx.unacked > 0) loss_.watch_tail(now, pdc);
}

/// The peer asks for a CLEAR or for the close of the PDC, or what was asked of us before can go on.
void AckIntake::obey_requests(Instant now, Pdc& pdc, const AckIn& in) {
  if (in.common.req == wire::AckReq::kClear) clear_.owe(now, pdc);
  if (pdc.tx.clear_owed && in.ack_names_psn()) clear_.hasten(pdc, in.ack_psn());
  if (in.common.req == wire::AckReq::kClose && pdc.is_initiator) closing_.begin(now, pdc);
  if (pdc.is_closing()) closing_.proceed(now, pdc);
}

/// Received, but the response is missing: no reason to send the data again.
void AckIntake::apply_sack(Instant now, Pdc& pdc, const AckIn& in) {
  TxHalf& tx = pdc.tx;
  for (std::uint64_t bits = in.sack_bitmap; bits != 0; bits &= bits - 1) {
    const Psn psn = in.sack_base + std::countr_zero(bits);
    if (!pdc.tx.is_outstanding(psn)) continue;  // below the left edge, or never sent
    TxRecord& record = tx_blocks_.at(tx.ring, psn);
    if (record.is_acked() || record.has_arrived() || record.message == nullptr) continue;
    if (planted(PlantedBug::kSackIsAck)) {
      if (!acknowledge(now, pdc, record)) return;
      continue;
    }
    tx.cc.of(*record.message).ccc->on_arrived(record.cc);
    loss_.note_arrival(now, pdc, record, TxEvent::kArrived);
  }
}

void AckIntake::advance_left_edge(Pdc& pdc) {
  TxHalf& tx = pdc.tx;
  const Psn before = tx.left_edge;
  while (tx.left_edge != tx.next && tx_blocks_.at(tx.ring, tx.left_edge).is_acked()) {
    tx_blocks_.remove(tx.ring, tx.left_edge);
    ++tx.left_edge;
  }
  if (tx.left_edge == before) return;
  tx.repeats = 0;
  tx.rtx_from = serial_max(tx.rtx_from, tx.left_edge);
  tx.in_flight_from = serial_max(tx.in_flight_from, tx.left_edge);
  if (tx.paused_count > 0 && tx.left_edge != tx.next && !pdc.is_rod()) [[unlikely]] {
    // What was answered below it may be cleared now, which makes the place that it waits for. See docs/decisions/0042.
    TxRecord& first = tx_blocks_.at(tx.ring, tx.left_edge);
    if (first.state() == TxState::kPlaceWanted)
      loss_.queue_resend(pdc, tx.left_edge, first, TxEvent::kResumed);
  }
  if (tx.has_clear_when && tx.clear_psn().is_at_or_after(tx.clear_when)) {
    tx.has_clear_when = false;
    tx.clear_owed = true;
    scheduler_.want_control(pdc, kSendClear);
  }
}

}  // namespace uet::pds
