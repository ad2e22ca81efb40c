// Openings that must be confirmed first, and the renumbering that this costs the initiator. [PDS 6.5]

#include "pds/engine.h"

namespace uet::pds {

namespace {

OpeningGuard::Opening opening_of(const Arrival& in) {
  return {in.source, in.spdcid, in.start()};
}

}  // namespace

/// Target: the first SYN does not open. What it carries is not delivered; it comes again.
void Engine::challenge(Instant now, const Arrival& in, Psn announced) {
  if (!guard_->may_wait(in.source)) {
    trace_.drop(now, DropReason::kNoPdc, in.body.size(), 0, in.psn);
    return nack_for(now, in, nullptr, NackCode::kNoPdcAvail);
  }
  Pdc& pdc = add_target(now, in, announced, PdcInput::kSynUnconfirmed);
  if (config_.new_pdc_time > Duration{})
    set_timer(pdc, PdcTimer::kClose, now + config_.new_pdc_time);
  trace_.drop(now, DropReason::kStaleSyn, in.body.size(), pdc.id, in.psn);
  nack_for(now, in, nullptr, NackCode::kNewStartPsn, announced.value());
}

/// Target: a SYN for a pending PDC. Null unless it starts where it was told to.
Pdc* Engine::confirm_opening(Instant now, Pdc& pdc, const Arrival& in) {
  const auto refuse = [&](DropReason reason, NackCode code, Psn payload) -> Pdc* {
    trace_.drop(now, reason, in.body.size(), pdc.id, in.psn);
    nack_for(now, in, nullptr, code, payload.value());
    return nullptr;
  };
  if (!guard_->is_confirmed(opening_of(in), pdc.start))
    return refuse(DropReason::kStaleSyn, NackCode::kNewStartPsn, pdc.start);
  if (in.psn_offset >= limits_.window)
    return refuse(DropReason::kPsnBeyondWindow, NackCode::kPsnOorWindow, Psn(0));
  if (pdc.is_rod() && in.psn_offset != 0)
    return refuse(DropReason::kRodOutOfOrder, NackCode::kRodOoo, in.start());
  guard_->on_wait_over(pdc.peer);
  init_halves(now, pdc, in.start());
  stop_timer(pdc, PdcTimer::kClose);
  change_state(now, pdc, PdcInput::kSynConfirmed);
  prove(now, pdc);  // it starts as we told it to
  trace_.emit(now, EventId::kPdcOpened, pdc.id, pdc.start, 1, static_cast<std::uint64_t>(pdc.mode));
  on_liveness(now, pdc);
  return &pdc;
}

/// Target: a SYN with another start for a PDC that is given up. Secured, it may be a recorded one, so it has to come from a start
/// that it is told first; until then the PDC stays. See docs/decisions/0102.
bool Engine::may_replace(Instant now, Pdc& pdc, const Arrival& in) {
  if (guard_ == nullptr || in.start() == pdc.successor) return true;
  if (!pdc.successor) pdc.successor = Psn(rng_.next_u32());
  trace_.drop(now, DropReason::kStaleSyn, in.body.size(), pdc.id, in.psn);
  nack_for(now, in, nullptr, NackCode::kNewStartPsn, pdc.successor->value());
  return false;
}

/// Target: the header of a trimmed packet in a secure domain, which is not authentic. It can only ask for one packet to be
/// sent again, on a PDC of its sender and where that packet is missing; it changes nothing else, not even credit. [TSS 9.4]
void Engine::on_trim_hint(Instant now, const Arrival& in) {
  constexpr Duration kRound = Duration::from_us(100);
  constexpr std::uint8_t kAnswersInRound = 32;
  trace_.drop(now, DropReason::kTrimmed, in.body.size(), in.syn ? 0 : in.dpdcid, in.psn);
  Pdc* const pdc = in.syn ? nullptr : table_.by_id(in.dpdcid);
  if (pdc == nullptr || pdc->state != PdcState::kEstablished || pdc->peer != in.source ||
      pdc->peer_id != in.spdcid || pdc->mode != in.mode || classify(*pdc, in.psn) != PsnClass::kNew)
    return;
  RxHalf& rx = pdc->rx;
  if (now - rx.hints_since >= kRound) {
    rx.hints_since = now;
    rx.hints = 0;
  }
  if (rx.hints == kAnswersInRound) return;
  ++rx.hints;
  nack_for(now, in, pdc, in.last_hop ? NackCode::kTrimmedLasthop : NackCode::kTrimmed);
}

/// Target: nobody took up the challenge.
void Engine::reap_half_open(Instant now, Pdc& pdc) {
  trace_.emit(now, EventId::kPdcClosed, pdc.id, pdc.start, 1,
              static_cast<std::uint64_t>(PdsError::kPeerSilent));
  guard_->on_wait_over(pdc.peer);
  change_state(now, pdc, PdcInput::kFailed);
  free_pdc(now, pdc);
  ++half_open_reaped_;
  if (half_open_reaped_ % std::max<std::uint32_t>(config_.new_pdc_timeout_thresh, 1) == 0)
    guard_->on_half_open_limit();
}

/// Initiator: everything that is out moves to the start that the target wants, and leaves again.
void Engine::on_new_start_psn(Instant now, Pdc& pdc, Psn start) {
  constexpr std::uint8_t kNoLimit = 31;
  if (guard_ == nullptr || pdc.state != PdcState::kCreating)
    return trace_.drop(now, DropReason::kReservedNack, 0, pdc.id, start);
  const auto shift = static_cast<std::uint32_t>(start.distance_from(pdc.start));
  if (shift == 0) return trace_.drop(now, DropReason::kStaleNack, 0, pdc.id, start);
  if (pdc.start_changes < kNoLimit) ++pdc.start_changes;
  if (config_.max_nack_retx_cnt < kNoLimit && pdc.start_changes > config_.max_nack_retx_cnt)
    return fail(now, pdc, PdsError::kNackExhausted);

  TxHalf& tx = pdc.tx;
  RxHalf& rx = pdc.rx;
  for (Psn* psn : {&pdc.start, &tx.next, &tx.cack, &tx.left, &tx.rtx_from, &rx.edge, &rx.cack,
                   &rx.cleared, &rx.max_rcvd, &rx.max_ar, &rx.answered})
    *psn = *psn + shift;
  tx.ring.origin = tx.ring.origin + shift;  // the records stay where they are
  tx.has_gone_back = false;
  // The same state at another start: observers of the events need to know.
  const auto state = static_cast<std::uint64_t>(pdc.state);
  trace_.emit(now, EventId::kPdcStateChanged, pdc.id, pdc.start, state, state);

  cc::NackSignal refused;
  refused.arrived_at = now;
  refused.retx_echo = true;
  refused.pdc_exists = false;
  for (Psn psn = tx.left; psn.is_before(tx.next); ++psn) {
    TxRecord& record = tx_blocks_.at(tx.ring, psn);
    record.rto_cnt = record.nack_cnt = 0;
    record.suspected = false;
    record.was_refused = true;  // a target that wants another start has accepted nothing
    if (record.message != nullptr && !record.needs_rtx && !record.paused)
      tx.cc.of(*record.message).ccc->on_nack(now, record.cc, tx.share, refused);
    queue_resend(pdc, psn, record);
  }
  tx.rtx_from = tx.left;
  // The target waits for one packet from the new start, for New_PDC_Time. Credit that it gives now names a PDC which this side does
  // not know yet, and an RTO may be longer than it waits: without this packet every round could end in another challenge.
  tx.has_free_pass = true;
  stop_timer(pdc, PdcTimer::kRetransmit);
  wake(pdc);
}

}  // namespace uet::pds
