// Hands a new packet to SES, takes the answer, and decides when it is acknowledged.
// [PDS 7.3, 9.4, 10.2]

#include "lib/base/planted.h"
#include "pds/engine.h"

namespace uet::pds {

using base::planted;
using base::PlantedBug;

void Engine::deliver(Instant now, Pdc& pdc, const Arrival& in) {
  RxHalf& rx = pdc.rx;
  if (in.is_control) return on_sequenced_control(now, pdc, in);

  const auto refuse = [&](NackCode code) {
    trace_.drop(now, DropReason::kNoResource, in.body.size(), pdc.id, in.psn);
    nack_for(now, in, &pdc, code);
    drop_unaccepted(now, pdc);
  };
  // SES may answer with something to keep: there must be room before it is asked. [PDS 9.4]
  if (!has_room_for_answer(now, pdc, in.psn)) [[unlikely]] {
    ask_for_clear(now, pdc);
    return refuse(NackCode::kNoGtdDelAvail);
  }
  if (rx.tracker == nullptr && trackers_.is_empty()) [[unlikely]]
    return refuse(NackCode::kNoResource);

  const PdcRef ref = pdc.ref();
  RxRequest request;
  request.handle = RxHandle{ref, in.psn, pdc.is_initiator};
  request.mode = in.mode;
  request.next_hdr = static_cast<std::uint8_t>(in.next_hdr);
  request.source = in.source;
  request.bytes = in.body;
  const Answer answer = upper_.on_request(now, request);
  if (!table_.is_alive(ref)) return;  // SES aborted something on this PDC
  if (answer.kind == Answer::Kind::kRefuse) [[unlikely]]
    return refuse(static_cast<NackCode>(answer.nack_code));
  if (answer.resource != 0) [[unlikely]] {
    rx.resource = answer.resource;
    has_slowed_ = true;
  }

  rx.has_delivered = true;
  trace_.emit(now, EventId::kRequestDelivered, pdc.id, in.psn, in.body.size());
  rx.rcvd_bytes += static_cast<std::uint64_t>(nominal_bytes(in.header_bytes + in.body.size()));
  rx.last_request = now;
  RxMeta meta = in.meta;
  if (static_cast<std::uint32_t>(in.psn.distance_from(rx.cack)) == rx.granted) meta.ack_now = true;

  const bool answered = answer.kind != Answer::Kind::kLater;
  const bool guaranteed = answered && answer.guaranteed;
  if (rx.tracker == nullptr && in.psn == rx.cack + 1 && answered && !guaranteed) [[likely]] {
    // In order, answered, nothing to keep: CACK says it all.
    rx.edge = rx.cack = rx.answered = in.psn;
    note_received(now, pdc, in);
    note_distance(pdc);
    return on_answer(now, pdc, in.psn, meta, answer.response, false, nullptr);
  }
  if (rx.tracker == nullptr) {
    rx.tracker = trackers_.acquire();
    UET_CHECK(rx.tracker != nullptr);
  }
  mark_received(pdc, in.psn);
  note_received(now, pdc, in);
  if (!answered) {
    RxRecord* record = responses_.add(table_.slot_of(pdc), in.psn, RxRecord::State::kPending, meta);
    UET_CHECK(record != nullptr);
    count_kept(pdc, 1);
    rx.ce_seen = rx.ce_seen || meta.ecn;
  } else {
    on_answer(now, pdc, in.psn, meta, answer.response, guaranteed, nullptr);
  }
}

/// Facts that every accepted packet leaves behind.
void Engine::note_received(Instant now, Pdc& pdc, const Arrival& in) {
  RxHalf& rx = pdc.rx;
  rx.has_accepted = true;
  rx.max_rcvd = serial_max(rx.max_rcvd, in.psn);
  if (in.ar) rx.max_ar = serial_max(rx.max_ar, in.psn);
  rx.ooo_nack_armed = true;
  rx.ce_seen = rx.ce_seen || in.meta.ecn;
  rx.last_meta = in.meta;
  // [PDS 11.2] In a Request, CLEAR is below its PSN.
  if (in.has_clear && in.clear_offset < 0) accept_clear(now, pdc, in.psn + in.clear_offset);
}

/// Sets the bit and moves rcv_edge over everything that is now without a gap.
void Engine::mark_received(Pdc& pdc, Psn psn) {
  RxHalf& rx = pdc.rx;
  rx.tracker->set(RxTracker::kReceived, psn);
  if (psn != rx.edge + 1) {
    ++rx.above_edge;
    return;
  }
  rx.edge = psn;
  while (rx.above_edge > 0 && rx.tracker->test(RxTracker::kReceived, rx.edge + 1)) {
    ++rx.edge;
    --rx.above_edge;
  }
}

/// SES has answered `psn`. `pending` is its record when the answer came later.
void Engine::on_answer(Instant now, Pdc& pdc, Psn psn, const RxMeta& meta,
                       const SesResponse& response, bool guaranteed, RxRecord* pending) {
  RxHalf& rx = pdc.rx;
  const bool above_cack = psn.is_after(rx.cack);
  // What the source has cleared beforehand need not be kept: it says that it does not want it.
  const bool store = guaranteed && above_cack && psn.is_after(rx.cleared);
  if (above_cack) {
    rx.tracker->set(RxTracker::kAnswered, psn);
    if (store) rx.tracker->set(RxTracker::kStored, psn);
  }
  RxRecord* record = pending;
  if (store) {
    if (record == nullptr) {
      record = responses_.add(table_.slot_of(pdc), psn, RxRecord::State::kStored, meta);
      UET_CHECK(record != nullptr);
      count_kept(pdc, 1);
    } else {
      responses_.change_state(*record, RxRecord::State::kStored);
    }
    ++rx.stored;
    if (share_of(pdc).is_short()) [[unlikely]]
      ask_for_clear(now, pdc);
  } else if (record != nullptr) {
    responses_.change_state(*record, RxRecord::State::kOwed);
    count_kept(pdc, -1);
    if (responses_.has_too_many_owed()) {  // then CACK and SACK must do
      responses_.remove(*record);
      record = nullptr;
    }
  }

  // [PDS 10.2] Now, or together with others?
  rx.ack_gen_count += std::max(meta.bytes, config_.ack_gen_min_pkt_add);
  const bool now_needed = meta.ack_now || guaranteed || !response.data.empty() ||
                          rx.ack_gen_count >= config_.ack_gen_trigger || rx.max_ar == rx.max_rcvd;
  if (now_needed) {
    if (record == nullptr)
      record = responses_.add(table_.slot_of(pdc), psn, RxRecord::State::kOwed, meta);
    if (record != nullptr) {
      responses_.set_response(*record, response);
      const bool must_wait =
          pdc.is_unproven() && response.data.size() > UnprovenPdcs::kAnswerBytes && store;
      rx.withholds_answers = rx.withholds_answers || must_wait;
      if (must_wait)
        ask_for_proof(now, pdc);
      else if (!record->queued)
        queue_ack(pdc, *record);
    } else {
      queue_update(pdc, meta);  // no room for one more: CACK and SACK tell the same
    }
    rx.ack_gen_count = 0;
  } else if (record != nullptr) {
    responses_.remove(*record);
  }
  if (rx.tracker != nullptr) advance_cack(pdc);
}

void Engine::respond(Instant now, RxHandle handle, const SesResponse& response, bool guaranteed) {
  Pdc* pdc = table_.by_ref(handle.pdc);
  if (pdc == nullptr) return trace_.drop(now, DropReason::kStaleAnswer);
  RxRecord* record = responses_.find(table_.slot_of(*pdc), handle.psn);
  if (record == nullptr || record->state != RxRecord::State::kPending)
    return trace_.drop(now, DropReason::kStaleAnswer, 0, pdc->id, handle.psn);
  const RxMeta meta = record->meta;
  on_answer(now, *pdc, handle.psn, meta, response, guaranteed, record);
  if (!pdc->rx.acks.is_empty()) list_control(*pdc);
  if (pdc->state == PdcState::kClosing) try_finish_target_close(now, *pdc);
}

// CACK passes what was received, answered, and is not kept for the source to clear. [PDS 7.3]
void Engine::advance_cack(Pdc& pdc) {
  RxHalf& rx = pdc.rx;
  RxTracker& tracker = *rx.tracker;
  if (pdc.is_rod()) {
    rx.answered = serial_max(rx.answered, rx.cack);
    while (tracker.test(RxTracker::kAnswered, rx.answered + 1) && rx.answered.is_before(rx.edge))
      ++rx.answered;
  }
  Psn next = rx.cack + 1;
  while (next.is_at_or_before(rx.edge) && tracker.test(RxTracker::kAnswered, next) &&
         (!tracker.test(RxTracker::kStored, next) || planted(PlantedBug::kCackPastStored))) {
    tracker.clear_all(next);
    rx.cack = next;
    ++next;
  }
  note_distance(pdc);
  rx.answered = serial_max(rx.answered, rx.cack);
  if (rx.cack == rx.max_rcvd) release_tracker(pdc);
}

void Engine::release_tracker(Pdc& pdc) {
  trackers_.release(pdc.rx.tracker);
  pdc.rx.tracker = nullptr;
}

void Engine::queue_ack(Pdc& pdc, RxRecord& record) {
  // ROD acknowledges in PSN order; what the source asked for does not wait behind an answer that is missing. [PDS 17.1]
  AckQueue& acks = pdc.rx.acks;
  if (!pdc.is_rod())
    responses_.push(acks, record);
  else if (record.urgent)
    responses_.push_front(acks, record);
  else
    responses_.push_ordered(acks, record);
  list_control(pdc);
}

/// One ACK with the default response for a PSN that is finished. A control packet has none. [PDS 10.1]
void Engine::queue_finished_ack(Pdc& pdc, Psn psn, const RxMeta& meta, bool is_control) {
  RxRecord* record = responses_.add(table_.slot_of(pdc), psn, RxRecord::State::kOwed, meta);
  if (record == nullptr) return queue_update(pdc, meta);
  if (!is_control) responses_.set_response(*record, upper_.default_response());
  record->urgent = true;
  queue_ack(pdc, *record);
}

/// An ACK that only reports CACK and SACK.
void Engine::queue_update(Pdc& pdc, const RxMeta& meta) {
  pdc.rx.wants_update = true;
  pdc.rx.last_meta = meta;
  list_control(pdc);
}

}  // namespace uet::pds
