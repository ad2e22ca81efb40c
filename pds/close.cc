#include "pds/close.h"

#include "lib/base/planted.h"

namespace uet::pds {

using base::planted;
using base::PlantedBug;

Closing::Closing(Shared& shared, SendWindow& window, ReceivingHalf& receiving, AckBuilder& acks,
                 Lifecycle& lifecycle)
    : Part(shared.env),
      table_(shared.pdcs),
      scheduler_(shared.scheduler),
      states_(shared.states),
      window_(window),
      tx_blocks_(window.records()),
      nacks_(shared.nacks),
      receiver_(receiving.receiver),
      reorder_(receiving.reorder),
      acks_(acks),
      failed_(shared.failed),
      room_(shared.room),
      built_(shared.built),
      lifecycle_(lifecycle) {}

void Closing::begin(Instant now, Pdc& pdc) {
  if (!pdc.is_initiator) {
    // A peer that has proved nothing is asked for nothing: its address may be forged.
    if (!pdc.is_unproven()) request(now, pdc);
    return;
  }
  if (pdc.state == PdcState::kCreating) {
    if (pdc.tx.next == pdc.start && pdc.tx.queue.empty()) {
      states_.change(now, pdc, PdcInput::kCloseDone);
      return lifecycle_.release(now, pdc);
    }
    return states_.want_close(pdc);  // once the target is known
  }
  if (pdc.state != PdcState::kEstablished) return;
  states_.change(now, pdc, PdcInput::kCloseWanted);
  scheduler_.hurry(pdc);
  proceed(now, pdc);
}

void Closing::request(Instant now, Pdc& pdc) {
  if (pdc.state != PdcState::kEstablished) return;
  states_.change(now, pdc, PdcInput::kCloseWanted);
  scheduler_.want_control(pdc, kSendClose);
  // A peer that has proved nothing is not told either that it did not answer.
  if (!pdc.is_unproven()) scheduler_.set_timer(pdc, PdcTimer::kClose, now + grace());
}

void Closing::proceed(Instant now, Pdc& pdc) {
  if (!pdc.is_initiator) return;
  if (pdc.state == PdcState::kQuiesce && pdc.tx.queue.empty() && pdc.tx.unacked == 0 &&
      pdc.locks > 0)
    pdc.locks -= std::min(pdc.locks, upper_.yield_locks(now, pdc.ref()));
  if (pdc.state == PdcState::kQuiesce && pdc.tx.queue.empty() &&
      (pdc.locks == 0 || planted(PlantedBug::kLockIgnored)))
    states_.change(now, pdc, PdcInput::kDrained);
  if (pdc.state != PdcState::kAckWait || pdc.tx.unacked > 0) return;
  Instant earliest = now;
  // A target that sent data must have its answers first, and a packet whose ACK was lost comes again: give it the time. [PDS 20.23]
  // One that only asked for the close does not need to know that it was heard.
  if (const RxHalf& rx = pdc.rx; rx.has_delivered) {
    const bool owes_answers = !rx.acks.is_empty() || rx.kept > rx.stored || rx.wants_update;
    earliest = std::max(earliest, (owes_answers ? now : rx.last_request) + config_.rto_init_time);
  }
  // A stray copy of a SYN packet must meet a target that still knows the PDC. [PDS 6.7]
  if (pdc.was_syn_resent)
    earliest = std::max(earliest, pdc.last_syn_sent + config_.syn_retx_safety_time);
  if (earliest > now) return scheduler_.set_timer(pdc, PdcTimer::kClose, earliest);
  scheduler_.want_control(pdc, kSendClose);
}

// The specification's Close_REQ_Time suits hardware. A peer in software that is not polled cannot
// answer in milliseconds, and closing its PDC would cost it messages; see
// docs/decisions/0043-closing-a-sleeping-peer.md.
Duration Closing::grace() const {
  if (config_.limits_timeouts()) return config_.close_req_time;
  return std::max(config_.close_req_time, config_.longest_silence());
}

void Closing::on_timer(Instant now, Pdc& pdc) {
  if (pdc.is_initiator) return proceed(now, pdc);
  if (pdc.state == PdcState::kPending) return reap_half_open(now, pdc);
  if (pdc.state != PdcState::kCloseReq) return;
  // A PDC on which something still happens is not an error. [PDS 16.1]
  const Instant end = env_.standstills.end_of(pdc.heard_at, grace(), now);
  if (end > now) return scheduler_.set_timer(pdc, PdcTimer::kClose, end);
  // The initiator knows, and may have to wait itself (a lock, a read that we owe it): that it
  // answers is enough. [PDS 16.1]
  if (pdc.tx.unacked == 0 && pdc.tx.probe.sent_at <= pdc.heard_at) {
    scheduler_.want_control(pdc, kSendProbe);
    return scheduler_.set_timer(pdc, PdcTimer::kClose, now + grace());
  }
  nacks_.notify(now, pdc, pdc.rx.edge + 1, Notice::kEndedInError, pdc.rx.last_meta);
  fail(now, pdc, PdsError::kPeerFailed);
}

/// A SYN with another start arrived for this target PDC: its initiator may have started anew. A running one answers each Close
/// Request, and names our PDCID; so a PDC is given up only when it does not answer the fifth, or, behind a guard, has proved
/// nothing and is silent. A forged SYN changes neither, and ends nothing: the initiator must prove the new PDC first. See
/// docs/decisions/0102.
bool Closing::is_given_up(Instant now, const Pdc& pdc) const {
  if (pdc.is_unproven()) return now - pdc.heard_at >= Duration::from_seconds(1);
  return pdc.state == PdcState::kCloseReq && has_unanswered_question(pdc);
}

bool Closing::has_unanswered_question(const Pdc& pdc) const {
  constexpr std::uint8_t kUnanswered = 5;
  if (pdc.tx.unacked == 0) return false;
  const TxRecord& oldest = tx_blocks_.at(pdc.tx.ring, pdc.tx.left_edge);
  return oldest.message == nullptr && oldest.rto_cnt >= kUnanswered;
}

bool Closing::end_if_unanswered(Instant now, Pdc& pdc) {
  if (pdc.state != PdcState::kCloseAckWait || !has_unanswered_question(pdc)) return false;
  on_acknowledged(now, pdc);
  return true;
}

void Closing::on_timeout(const Pdc& pdc) {
  if (pdc.state == PdcState::kCloseAckWait && has_unanswered_question(pdc)) room_.on_room();
}

void Closing::on_acknowledged(Instant now, Pdc& pdc) {
  states_.change(now, pdc, PdcInput::kCloseDone);
  trace_.emit(now, EventId::kPdcClosed, pdc.id, pdc.start, 0);
  const PdcRef ref = pdc.ref();
  const net::FabricAddress peer = pdc.peer;
  lifecycle_.release(now, pdc);
  upper_.on_pdc_closed(now, ref, peer);
}

void Closing::on_never_cleared(Instant now, Pdc& pdc) {
  ++clear_breaks_;
  nacks_.notify(now, pdc, pdc.rx.edge + 1, Notice::kEndedInError, pdc.rx.last_meta);
  fail(now, pdc, PdsError::kPeerFailed);
}

void Closing::on_never_proven(Instant now, Pdc& pdc) {
  nacks_.notify(now, pdc, pdc.rx.edge + 1, Notice::kEndedInError, pdc.rx.last_meta);
  fail(now, pdc, PdsError::kPeerSilent);
}

void Closing::on_timeouts_exhausted(Instant now, Pdc& pdc) {
  // Nothing but the Close Command was outstanding: no message fails. [PDS 16.2]
  if (pdc.state == PdcState::kCloseAckWait) return on_acknowledged(now, pdc);
  fail(now, pdc, PdsError::kRtoExhausted);
}

void Closing::reap_half_open(Instant now, Pdc& pdc) {
  trace_.emit(now, EventId::kPdcClosed, pdc.id, pdc.start, 1,
              static_cast<std::uint64_t>(PdsError::kPeerSilent));
  env_.guard->on_wait_over(pdc.peer);
  states_.change(now, pdc, PdcInput::kFailed);
  lifecycle_.release(now, pdc);
  ++half_open_reaped_;
  if (half_open_reaped_ % std::max<std::uint32_t>(config_.new_pdc_timeout_thresh, 1) == 0)
    env_.guard->on_half_open_limit();
}

void Closing::on_command(Instant now, Pdc& pdc, const Arrival& in) {
  RxHalf& rx = pdc.rx;
  if (in.psn != rx.edge + 1) {  // a correct initiator waits until everything is acknowledged
    nacks_.notify(now, pdc, in.psn, Notice::kUnexpectedClose, in.meta);
    return fail(now, pdc, PdsError::kPeerLost);
  }
  if (window_.has_unacked_data(pdc)) {
    nacks_.notify(now, pdc, in.psn, Notice::kEndedInError, in.meta);
    return fail(now, pdc, PdsError::kPeerClosing);
  }
  pdc.has_close_psn = true;
  pdc.close_psn = in.psn;
  pdc.close_meta = in.meta;
  rx.has_accepted = true;
  rx.max_rcvd = serial_max(rx.max_rcvd, in.psn);
  if (rx.kept > rx.stored) {  // SES still owes answers; their ACKs go first
    receiver_.mark_received(pdc, in.psn);
    states_.change(now, pdc, PdcInput::kCloseArrived);
    return;
  }
  finish_target(now, pdc);
}

void Closing::finish_if_answered(Instant now, Pdc& pdc) {
  if (pdc.state == PdcState::kClosing && pdc.rx.kept == pdc.rx.stored) finish_target(now, pdc);
}

// The Close Command clears everything forward. Its ACK is built now, since the PDC will be gone; if
// there is no buffer for it, the next copy of the command is answered INV_DPDCID, which means the
// same. [PDS 16.2, 16.3]
void Closing::finish_target(Instant now, Pdc& pdc) {
  // Owed ACKs of the last requests need not be lost: CACK covers them.
  receiver_.release(pdc);
  reorder_.release(pdc);
  RxHalf& rx = pdc.rx;
  rx.edge = rx.cack = rx.answered = rx.cleared = rx.max_rcvd = rx.last_control = pdc.close_psn;
  rx.above_edge = 0;
  std::optional<Psn> expected;
  if (env_.guard != nullptr) expected = env_.guard->on_target_closed(pdc.peer, pdc.start);
  states_.change(now, pdc, PdcInput::kCloseDone);
  net::TxPacket out;
  if (!built_.is_full() && acks_.build_last(now, pdc, expected, out) == Built::kPacket)
    built_.push(std::move(out));
  trace_.emit(now, EventId::kPdcClosed, pdc.id, pdc.start, 0);
  const PdcRef ref = pdc.ref();
  const net::FabricAddress peer = pdc.peer;
  lifecycle_.release(now, pdc);
  upper_.on_pdc_closed(now, ref, peer);
}

/// Without a look at any clock, since this process or its peer may have been stopped for any time: a packet did not arrive when
/// each of its transmissions was refused. So it is with the one that the NACK names, and with those that first left after it,
/// because what does not know a PDC will not know it later. See docs/decisions/0051.
bool Closing::is_known_undelivered(Psn psn, const TxRecord& record, PdsError error,
                                   const std::optional<Refused>& refused) {
  if (record.is_in_doubt() || record.has_arrived() || record.is_acked()) return false;
  if (error == PdsError::kNoPdc) return record.waits_for_resend();
  if (!refused) return false;
  if (psn == refused->psn) return true;
  return refused->was_sent_once && record.cc.resent == 0 && psn.is_after(refused->psn);
}

void Closing::fail(Instant now, Pdc& pdc, PdsError error, const std::optional<Refused>& refused) {
  trace_.emit(now, EventId::kPdcClosed, pdc.id, pdc.start, 1, static_cast<std::uint64_t>(error));
  const PdcRef ref = pdc.ref();
  const net::FabricAddress peer = pdc.peer;
  TxHalf& tx = pdc.tx;
  states_.change(now, pdc, PdcInput::kFailed);

  // Messages in the order in which they were submitted: those with packets out first, then those
  // that wait.
  MessageQueue mine;
  for (Psn psn = tx.left_edge; psn.is_before(tx.next); ++psn) {
    TxRecord& record = tx_blocks_.at(tx.ring, psn);
    if (record.is_acked() || record.message == nullptr) continue;
    if (!is_known_undelivered(psn, record, error, refused)) record.message->may_be_delivered = true;
    tx.cc.of(*record.message).ccc->on_abandon(record.cc, tx.share);
    Message& message = *record.message;
    record.message = nullptr;
    if (--message.unanswered == 0 && message.is_fully_sent()) mine.push_back(message);
  }
  if (Congestion* congestion = tx.cc.if_any(); tx.backlog != 0 && congestion != nullptr)
    congestion->ccc->on_new_data(now, -tx.backlog);
  tx.backlog = 0;
  mine.splice(mine.end(), tx.queue);
  for (Message& message : mine) message.pdc = nullptr;
  failed_.add(mine);
  lifecycle_.release(now, pdc);

  failed_.report(now, error);
  upper_.on_pdc_gone(now, ref, peer, error);
}

// Unproven peers are asked too, with what they may be sent anyway [decision 100]: one that answered a single message would use its PDC for
// the next process at this address, which refuses it. A message that is repeated meanwhile fails then, since none can tell where
// its first copy went.
void Closing::close_all(Instant now) {
  PdcOrderList& all = table_.in_order();
  for (auto at = all.begin(); at != all.end();) {
    Pdc& pdc = *at++;  // begin() may free it
    if (pdc.is_initiator)
      begin(now, pdc);
    else
      request(now, pdc);
  }
}

}  // namespace uet::pds
