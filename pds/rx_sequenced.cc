#include "pds/rx_sequenced.h"

namespace uet::pds {

void SequencedIntake::on_packet(Instant now, const Arrival& in) {
  Pdc* const found = opening_.find_for(now, in);
  if (found == nullptr) return;
  Pdc& pdc = *found;
  const Verdict verdict = judge(pdc, in);
  if (verdict.shows_peer) [[likely]] {
    if (pdc.peer_id == 0) liveness_.learn_peer(now, pdc, in.spdcid);
    Liveness::heard(now, pdc);
    if (!in.syn) liveness_.prove(now, pdc);
  }
  switch (verdict.action) {
    case Verdict::Action::kDeliver: {
      if (pdc.rx.held == 0) [[likely]]
        return deliver(now, pdc, in);
      const PdcRef ref = pdc.ref();
      deliver(now, pdc, in);
      if (table_.is_alive(ref)) deliver_held(now, pdc);
      return;
    }
    case Verdict::Action::kRepeatFinished:
      return on_duplicate(now, pdc, in, true);
    case Verdict::Action::kRepeatKnown:
      return on_duplicate(now, pdc, in, false);
    case Verdict::Action::kGap:
      return on_gap(now, pdc, in);
    case Verdict::Action::kRefuse:
      nacks_.refuse(now, in, &pdc, verdict.refusal);
      if (verdict.refusal != Refusal::kWrongRole) lifecycle_.drop_unaccepted(now, pdc);
      return;
  }
}

void SequencedIntake::refuse(Instant now, Pdc& pdc, const Arrival& in, Refusal refusal) {
  nacks_.refuse(now, in, &pdc, refusal);
  lifecycle_.drop_unaccepted(now, pdc);
}

// ROD takes only the next PSN. One NACK per gap: it is armed again when the edge moves, when a
// retransmission is still out of order, or after a while. [PDS 17.1]
void SequencedIntake::on_gap(Instant now, Pdc& pdc, const Arrival& in) {
  if (config_.rod_reorder && reorder_.hold(now, pdc, in)) return;
  RxHalf& rx = pdc.rx;
  trace_.drop(now, rule_of(Refusal::kOutOfOrder).reason, in.body.size(), pdc.id, in.psn);
  if (!rx.ooo_nack_armed && !in.retx && now - rx.last_ooo_nack < round_trip(pdc, config_)) return;
  rx.ooo_nack_armed = false;
  rx.last_ooo_nack = now;
  nacks_.tell(now, in, &pdc, Refusal::kOutOfOrder, (rx.edge + 1).value());
}

// Never delivered, never counted as received; its CLEAR and its CE mark still mean something.
// [PDS 9.3]
void SequencedIntake::on_duplicate(Instant now, Pdc& pdc, const Arrival& in, bool is_finished) {
  const bool wants_answer = in.retx || in.ar || in.syn;
  trace_.emit(now, EventId::kDuplicateReceived, pdc.id, in.psn, wants_answer ? 1 : 0);
  if (!in.trimmed) {
    if (in.has_clear && in.clear_offset < 0)
      receiver_.accept_clear(now, pdc, in.psn + in.clear_offset);
    pdc.rx.ce_seen = pdc.rx.ce_seen || in.meta.ecn;
  }
  if (!wants_answer)
    return trace_.drop(now, DropReason::kDuplicate, in.body.size(), pdc.id, in.psn);
  // The CLEAR above may have finished it.
  if (is_finished || in.psn.is_at_or_before(pdc.rx.cack))
    return receiver_.queue_finished_ack(pdc, in.psn, in.meta, in.is_control);
  receiver_.answer_known(now, pdc, in.psn, in.meta, in.is_control);
}

void SequencedIntake::deliver(Instant now, Pdc& pdc, const Arrival& in) {
  pdc.rx.note_arrival(now, in.psn);
  if (in.is_control) return on_control(now, pdc, in);
  // SES may answer with something to keep: there must be room before it is asked. [PDS 9.4]
  if (!kept_.is_plenty(pdc) && !admission_.has_room_for_answer(now, pdc, in.psn) &&
      !makes_room(now, pdc, in)) [[unlikely]] {
    kept_.ask_for_clear(now, pdc);
    return refuse(now, pdc, in, Refusal::kNoRoomForAnswer);
  }
  if (!receiver_.can_track(pdc)) [[unlikely]]
    return refuse(now, pdc, in, Refusal::kNoRecord);

  const PdcRef ref = pdc.ref();
  RxRequest request;
  request.handle.pdc = ref;
  request.handle.psn = in.psn;
  request.handle.return_direction = pdc.is_initiator;
  request.mode = in.mode;
  request.next_hdr = static_cast<std::uint8_t>(in.next_hdr);
  request.source = in.source;
  request.is_proven = !pdc.is_unproven();
  request.bytes = in.body;
  const Answer answer = upper_.on_request(now, request);
  if (!table_.is_alive(ref)) return;  // SES aborted something on this PDC
  if (answer.kind == Answer::Kind::kRefuse) [[unlikely]]
    return refuse(now, pdc, in, Refusal::kNoRoomInSes);
  if (answer.resource != 0) [[unlikely]] {
    acks_.on_resource(pdc, answer.resource);
  }

  receiver_.accept(now, pdc, in, answer);
}

/// A packet says what its source has heard, also when it cannot be taken: that may free the place it needs. [PDS 11.2]
bool SequencedIntake::makes_room(Instant now, Pdc& pdc, const Arrival& in) {
  if (!in.has_clear || in.clear_offset >= 0) return false;
  receiver_.accept_clear(now, pdc, in.psn + in.clear_offset);
  return kept_.has_room(pdc, in.psn);  // no other PDC has to make place a second time
}

/// ROD: delivers what the reorder buffer held and has become in order.
void SequencedIntake::deliver_held(Instant now, Pdc& pdc) {
  const PdcRef ref = pdc.ref();
  while (const auto held = reorder_.take_next(pdc)) {
    deliver(now, pdc, held->arrival);
    if (!table_.is_alive(ref) || pdc.rx.edge != held->arrival.psn)
      return;  // gone, or refused: the source sends it again
  }
}

/// A sequenced control packet that is new and in place. No SES has to answer: PDS does, at once.
void SequencedIntake::on_control(Instant now, Pdc& pdc, const Arrival& in) {
  if (in.control == ControlType::kCloseCommand) return closing_.on_command(now, pdc, in);
  if (!receiver_.accept_control(now, pdc, in)) return refuse(now, pdc, in, Refusal::kNoRecord);
  // Features are never negotiated away from the default: unknown ones stay off. [PDS 6.7]
  if (in.control == ControlType::kCloseRequest) closing_.begin(now, pdc);
}

void SequencedIntake::respond(Instant now, RxHandle handle, const SesResponse& response,
                              bool guaranteed) {
  Pdc* pdc = table_.by_ref(handle.pdc);
  if (pdc == nullptr) return trace_.drop(now, DropReason::kStaleAnswer);
  if (!receiver_.respond(now, *pdc, handle.psn, response, guaranteed))
    return trace_.drop(now, DropReason::kStaleAnswer, 0, pdc->id, handle.psn);
  if (pdc->state == PdcState::kClosing) closing_.finish_if_answered(now, *pdc);
}

void SequencedIntake::on_trimmed(Instant now, const Arrival& in) {
  trace_.drop(now, DropReason::kTrimmed, in.body.size(), in.syn ? 0 : in.dpdcid, in.psn);
  Pdc* pdc = nullptr;
  if (!in.syn) {
    pdc = opening_.find_for(now, in);
    if (pdc == nullptr) return;
  } else if (!find_trimmed_opening(now, in, pdc)) {
    return;
  }
  const Verdict verdict = judge_trimmed(pdc, in);
  if (verdict.action == Verdict::Action::kRefuse) {
    if (pdc != nullptr) pdc->rx.note_arrival(now, in.psn);
    return nacks_.tell(now, in, pdc, verdict.refusal);
  }
  on_duplicate(now, *pdc, in, verdict.action == Verdict::Action::kRepeatFinished);
}

/// The PDC that a trimmed SYN is for, if it is open. False when nothing is to be said of the packet.
bool SequencedIntake::find_trimmed_opening(Instant now, const Arrival& in, Pdc*& pdc) {
  if (in.spdcid == 0) return false;
  pdc = table_.find_target(in.source, in.spdcid, in.start());
  if (pdc != nullptr && pdc->state == PdcState::kPending) pdc = nullptr;
  if (pdc != nullptr) return pdc->mode == in.mode;
  return !openings_.tombstones().contains(now, in.source, in.spdcid, in.start());
}

namespace {

/// The peer is known, and has not said that nothing more will come.
bool takes_new_data(const Pdc& pdc) {
  return pdc.state == PdcState::kEstablished || pdc.state == PdcState::kQuiesce ||
         pdc.state == PdcState::kAckWait || pdc.state == PdcState::kCloseReq;
}

}  // namespace

void SequencedIntake::on_trim_hint(Instant now, const Arrival& in) {
  constexpr Duration kRound = Duration::from_us(100);
  constexpr std::uint8_t kAnswersInRound = 32;
  trace_.drop(now, DropReason::kTrimmed, in.body.size(), in.syn ? 0 : in.dpdcid, in.psn);
  Pdc* const pdc = in.syn ? nullptr : table_.by_id(in.dpdcid);
  if (pdc == nullptr || !takes_new_data(*pdc) || misfit(pdc, in) ||
      classify(*pdc, in.psn) != PsnClass::kNew)
    return;
  RxHalf& rx = pdc->rx;
  if (now - rx.hints_since >= kRound) {
    rx.hints_since = now;
    rx.hints = 0;
  }
  if (rx.hints == kAnswersInRound) return;
  ++rx.hints;
  nacks_.tell(now, in, pdc, trimmed_refusal(in.last_hop));
}

}  // namespace uet::pds
