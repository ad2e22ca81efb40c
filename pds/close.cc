// How PDCs end: gracefully by the initiator, on request of the target, or in error. [PDS 16]

#include "lib/base/planted.h"
#include "pds/engine.h"

namespace uet::pds {

using base::planted;
using base::PlantedBug;

/// Any trigger of a graceful close. [PDS 16.1]
void Engine::begin_close(Instant now, Pdc& pdc) {
  if (!pdc.is_initiator) {
    // A peer that has proved nothing is asked for nothing: it may be somebody else, whose address was forged.
    if (pdc.state != PdcState::kEstablished || pdc.is_unproven()) return;
    change_state(now, pdc, PdcInput::kCloseWanted);
    want_control(pdc, kSendClose);
    return set_timer(pdc, PdcTimer::kClose, now + close_grace());
  }
  if (pdc.state == PdcState::kCreating) {
    if (pdc.tx.next == pdc.start && pdc.tx.queue.empty()) {
      change_state(now, pdc, PdcInput::kCloseDone);
      return free_pdc(now, pdc);
    }
    if (!pdc.is_close_wanted) ++close_wanted_;
    pdc.is_close_wanted = true;  // once the target is known
    return;
  }
  if (pdc.state != PdcState::kEstablished) return;
  change_state(now, pdc, PdcInput::kCloseWanted);
  try_close(now, pdc);
}

/// Goes as far towards the Close Command as the PDC allows now. [PDS 16.2]
void Engine::try_close(Instant now, Pdc& pdc) {
  if (!pdc.is_initiator) return;
  if (pdc.state == PdcState::kQuiesce && pdc.tx.queue.empty() &&
      (pdc.locks == 0 || planted(PlantedBug::kLockIgnored)))
    change_state(now, pdc, PdcInput::kDrained);
  if (pdc.state != PdcState::kAckWait || pdc.tx.unacked > 0) return;
  const RxHalf& rx = pdc.rx;
  const bool owes_answers = !rx.acks.is_empty() || rx.kept > rx.stored || rx.wants_update;
  Instant earliest = owes_answers ? now + config_.rto_init_time : now;
  // A return packet whose ACK was lost comes again: give it the time. [PDS 20.23]
  if (rx.has_accepted) earliest = std::max(earliest, rx.last_request + config_.rto_init_time);
  // A stray copy of a SYN packet must meet a target that still knows the PDC. [PDS 6.7]
  if (pdc.was_syn_resent)
    earliest = std::max(earliest, pdc.last_syn_sent + config_.syn_retx_safety_time);
  if (earliest > now) return set_timer(pdc, PdcTimer::kClose, earliest);
  want_control(pdc, kSendClose);
}

// The specification's Close_REQ_Time suits hardware. A peer in software that is not polled cannot
// answer in milliseconds, and closing its PDC would cost it messages; see
// docs/decisions/0043-closing-a-sleeping-peer.md.
Duration Engine::close_grace() const {
  constexpr std::uint8_t kNoLimit = 15;
  return config_.max_rto_retx_cnt >= kNoLimit
             ? std::max(config_.close_req_time, config_.peer_timeout)
             : config_.close_req_time;
}

void Engine::on_close_timer(Instant now, Pdc& pdc) {
  if (pdc.is_initiator) return try_close(now, pdc);
  if (pdc.state == PdcState::kPending) return reap_half_open(now, pdc);
  if (pdc.state != PdcState::kCloseReq) return;
  // A PDC on which something still happens is not an error. [PDS 16.1]
  if (now - pdc.heard_at < close_grace())
    return set_timer(pdc, PdcTimer::kClose, pdc.heard_at + close_grace());
  // The initiator knows, and may have to wait itself (a lock, a read that we owe it): that it
  // answers is enough. [PDS 16.1]
  if (pdc.tx.unacked == 0 && pdc.tx.probe_sent_at <= pdc.heard_at) {
    want_control(pdc, kSendProbe);
    return set_timer(pdc, PdcTimer::kClose, now + close_grace());
  }
  nack_close_error(now, pdc, pdc.rx.edge + 1, pdc.rx.last_meta, NackCode::kClosingInErr);
  fail(now, pdc, PdsError::kPeerFailed);
}

void Engine::nack_close_error(Instant now, Pdc& pdc, Psn psn, const RxMeta& meta, NackCode code) {
  wire::PdsNack header;
  header.nack_code = code;
  header.nack_psn = psn;
  header.retx = meta.retx;
  header.m = meta.ecn;
  header.spdcid = pdc.id;
  header.dpdcid = pdc.peer_id;
  nack(now, pdc.peer, meta, header, true);
}

/// A SYN with another start arrived for this target PDC: its initiator may have started anew. A running one answers each Close
/// Request, and names our PDCID; so a PDC is given up only when it does not answer the fifth, or, behind a guard, has proved
/// nothing and is silent. A forged SYN changes neither, and ends nothing: the initiator must prove the new PDC first. See
/// docs/decisions/0102.
bool Engine::is_given_up(Instant now, const Pdc& pdc) const {
  constexpr std::uint8_t kUnanswered = 5;
  if (pdc.is_unproven()) return now - pdc.heard_at >= Duration::from_seconds(1);
  if (pdc.state != PdcState::kCloseReq || pdc.tx.unacked == 0) return false;
  const TxRecord& oldest = tx_blocks_.at(pdc.tx.ring, pdc.tx.left);
  return oldest.message == nullptr && oldest.rto_cnt >= kUnanswered;
}

/// Initiator: the Close Command was acknowledged, or its target is gone already.
void Engine::on_close_acknowledged(Instant now, Pdc& pdc) {
  change_state(now, pdc, PdcInput::kCloseDone);
  trace_.emit(now, EventId::kPdcClosed, pdc.id, pdc.start, 0);
  const PdcRef ref = pdc.ref();
  const net::FabricAddress peer = pdc.peer;
  free_pdc(now, pdc);
  upper_.on_pdc_closed(now, ref, peer);
}

/// Target. The PSN is new and inside the window. [PDS 16.3]
void Engine::on_close_command(Instant now, Pdc& pdc, const Arrival& in) {
  RxHalf& rx = pdc.rx;
  if (in.psn != rx.edge + 1) {  // a correct initiator waits until everything is acknowledged
    nack_close_error(now, pdc, in.psn, in.meta, NackCode::kUnexpEvent);
    return fail(now, pdc, PdsError::kPeerLost);
  }
  if (has_unacked_data(pdc)) {
    nack_close_error(now, pdc, in.psn, in.meta, NackCode::kClosingInErr);
    return fail(now, pdc, PdsError::kPeerClosing);
  }
  pdc.has_close_psn = true;
  pdc.close_psn = in.psn;
  pdc.close_meta = in.meta;
  rx.has_accepted = true;
  rx.max_rcvd = serial_max(rx.max_rcvd, in.psn);
  if (rx.kept > rx.stored) {  // SES still owes answers; their ACKs go first
    mark_received(pdc, in.psn);
    change_state(now, pdc, PdcInput::kCloseArrived);
    return;
  }
  finish_target_close(now, pdc);
}

bool Engine::has_unacked_data(Pdc& pdc) {
  TxHalf& tx = pdc.tx;
  if (!tx.queue.empty()) return true;
  if (tx.unacked == 0) return false;
  for (Psn psn = tx.left; psn.is_before(tx.next); ++psn) {
    const TxRecord& record = tx_blocks_.at(tx.ring, psn);
    if (!record.acked && record.message != nullptr) return true;
  }
  return false;
}

void Engine::try_finish_target_close(Instant now, Pdc& pdc) {
  if (pdc.state == PdcState::kClosing && pdc.rx.kept == pdc.rx.stored)
    finish_target_close(now, pdc);
}

// The Close Command clears everything forward. Its ACK is built now, since the PDC will be gone; if
// there is no buffer for it, the next copy of the command is answered INV_DPDCID, which means the
// same. [PDS 16.2, 16.3]
void Engine::finish_target_close(Instant now, Pdc& pdc) {
  // Owed ACKs of the last requests need not be lost: CACK covers them.
  release_receive_state(pdc);
  RxHalf& rx = pdc.rx;
  rx.edge = rx.cack = rx.answered = rx.cleared = rx.max_rcvd = rx.last_control = pdc.close_psn;
  rx.above_edge = 0;
  AckShape shape;
  shape.ack_psn = pdc.close_psn;
  shape.meta = pdc.close_meta;
  shape.sack_near = pdc.close_psn;
  if (guard_ != nullptr) shape.expected_psn = guard_->on_target_closed(pdc.peer, pdc.start);
  change_state(now, pdc, PdcInput::kCloseDone);
  net::TxPacket out;
  if (!built_.is_full() && emit_ack(now, pdc, shape, out) == Built::kPacket)
    built_.push(std::move(out));
  trace_.emit(now, EventId::kPdcClosed, pdc.id, pdc.start, 0);
  const PdcRef ref = pdc.ref();
  const net::FabricAddress peer = pdc.peer;
  free_pdc(now, pdc);
  upper_.on_pdc_closed(now, ref, peer);
}

/// Without a look at any clock, since this process or its peer may have been stopped for any time: a packet did not arrive when
/// each of its transmissions was refused. So it is with the one that the NACK names, and with those that first left after it,
/// because what does not know a PDC will not know it later. See docs/decisions/0051.
bool Engine::is_known_undelivered(Psn psn, const TxRecord& record, PdsError error,
                                  const std::optional<Refusal>& refusal) {
  if (record.in_doubt || record.arrived || record.acked) return false;
  if (error == PdsError::kNoPdc) return record.needs_rtx || record.paused;
  if (!refusal) return false;
  if (psn == refusal->psn) return true;
  return refusal->was_sent_once && record.cc.resent == 0 && psn.is_after(refusal->psn);
}

/// Ends a PDC in error: every message on it fails exactly once. [PDS 16.5]
void Engine::fail(Instant now, Pdc& pdc, PdsError error, const std::optional<Refusal>& refusal) {
  trace_.emit(now, EventId::kPdcClosed, pdc.id, pdc.start, 1, static_cast<std::uint64_t>(error));
  const PdcRef ref = pdc.ref();
  const net::FabricAddress peer = pdc.peer;
  TxHalf& tx = pdc.tx;
  change_state(now, pdc, PdcInput::kFailed);

  // Messages in the order in which they were submitted: those with packets out first, then those
  // that wait.
  MessageQueue mine;
  for (Psn psn = tx.left; psn.is_before(tx.next); ++psn) {
    TxRecord& record = tx_blocks_.at(tx.ring, psn);
    if (record.acked || record.message == nullptr) continue;
    if (!is_known_undelivered(psn, record, error, refusal)) record.message->may_be_delivered = true;
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
  failed_.splice(failed_.end(), mine);
  free_pdc(now, pdc);

  report_failed(now, error);
  upper_.on_pdc_gone(now, ref, peer, error);
}

// SES may submit or abort from within these calls; failed_ stays consistent because each message
// leaves it first.
void Engine::report_failed(Instant now, PdsError error) {
  while (!failed_.empty()) {
    Message& message = failed_.front();
    failed_.pop_front();
    const MessageToken token = message.request.token;
    const bool silent = message.is_silent;
    const bool in_doubt = message.may_be_delivered && was_not_delivered(error);
    forget(message);
    if (!silent) upper_.on_message_error(now, token, in_doubt ? PdsError::kInDoubt : error);
  }
}

/// The table is full for one role: the PDC that has had nothing to do for longest gives its place up. When all are busy and
/// none is on its way out, the oldest one has to drain, so that a peer with endless work does not keep others out for ever.
/// Strangers who ask again and again do not empty the table: only so many PDCs are on their way out for them at a time.
/// [PDS 5.2]
void Engine::make_room(Instant now, bool for_initiator) {
  constexpr int kLookAt = 256;  // the list is roughly in order of idleness
  if (!for_initiator && closing_pdcs_ >= std::max<std::uint32_t>(2, table_.capacity() / 4)) return;
  const bool any_role = table_.has_share_left(for_initiator);
  if (for_initiator && any_role && evict_unproven(now, unproven_.to_evict(now))) return;
  int looked = 0;
  Pdc* idlest = nullptr;
  Pdc* oldest = nullptr;
  const auto last_sign = [](const Pdc& p) { return std::max(p.heard_at, p.active_at); };
  for (Pdc& pdc : table_.in_order()) {
    if (++looked > kLookAt) break;
    if (pdc.state != PdcState::kEstablished || pdc.is_unproven() ||
        (!any_role && pdc.is_initiator != for_initiator))
      continue;
    if (pdc.has_tx_work() || pdc.locks > 0 || pdc.rx.kept > 0) {
      // A target whose SES owes answers hears nothing and would take that for a peer that does not react.
      if (oldest == nullptr && pdc.locks == 0 && pdc.rx.kept == pdc.rx.stored) oldest = &pdc;
      continue;
    }
    if (idlest == nullptr || last_sign(pdc) < last_sign(*idlest)) idlest = &pdc;
  }
  if (idlest != nullptr) return begin_close(now, *idlest);
  if (oldest != nullptr && closing_pdcs_ == 0 && close_wanted_ == 0) begin_close(now, *oldest);
}

void Engine::close_all(Instant now) {
  PdcOrderList& all = table_.in_order();
  for (auto at = all.begin(); at != all.end();) {
    Pdc& pdc = *at++;  // begin_close may free it
    begin_close(now, pdc);
  }
}

bool Engine::is_idle() const {
  return messages_.size() == 0 && tx_blocks_.in_use() == 0 && control_.empty() &&
         nacks_.is_empty() && built_.is_empty() && rudi_.outstanding() == 0 && closing_pdcs_ == 0 &&
         close_wanted_ == 0;
}

}  // namespace uet::pds
