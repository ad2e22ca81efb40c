#include "pds/receiver.h"

#include "lib/base/planted.h"

namespace uet::pds {

using base::planted;
using base::PlantedBug;

void Receiver::accept(Instant now, Pdc& pdc, const Arrival& in, const Answer& answer) {
  RxHalf& rx = pdc.rx;
  rx.has_delivered = true;
  trace_.emit(now, EventId::kRequestDelivered, pdc.id, in.psn, in.body.size());
  rx.rcvd_bytes += static_cast<std::uint64_t>(env_.nominal_bytes(in.header_bytes + in.body.size()));
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
    if (!asks_for_ack(rx, meta, answer.response)) [[likely]]
      return;
    RxRecord* const record =
        answer.response.data.empty() ? take_over_waiting_ack(pdc, in.psn, meta) : nullptr;
    return acknowledge(now, pdc, in.psn, meta, answer.response, false, record);
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
    kept_.count(pdc, 1);
    rx.ce_seen = rx.ce_seen || meta.ecn;
  } else {
    on_answer(now, pdc, in.psn, meta, answer.response, guaranteed, nullptr);
  }
}

bool Receiver::accept_control(Instant now, Pdc& pdc, const Arrival& in) {
  RxHalf& rx = pdc.rx;
  rx.last_control = in.psn;
  if (rx.tracker == nullptr && in.psn == rx.cack + 1) {
    rx.edge = rx.cack = rx.answered = in.psn;
    note_received(now, pdc, in);
    note_distance(pdc);
  } else {
    if (rx.tracker == nullptr) rx.tracker = trackers_.acquire();
    if (rx.tracker == nullptr) return false;
    mark_received(pdc, in.psn);
    note_received(now, pdc, in);
  }
  on_answer(now, pdc, in.psn, in.meta, SesResponse{}, false, nullptr);
  return true;
}

bool Receiver::respond(Instant now, Pdc& pdc, Psn psn, const SesResponse& response,
                       bool guaranteed) {
  RxRecord* record = responses_.find(table_.slot_of(pdc), psn);
  if (record == nullptr || record->state != RxRecord::State::kPending) return false;
  const RxMeta meta = record->meta;
  on_answer(now, pdc, psn, meta, response, guaranteed, record);
  if (!pdc.rx.acks.is_empty()) scheduler_.list_control(pdc);
  return true;
}

// Facts that every accepted packet leaves behind.
void Receiver::note_received(Instant now, Pdc& pdc, const Arrival& in) {
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

// Sets the bit and moves rcv_edge over everything that is now without a gap.
void Receiver::mark_received(Pdc& pdc, Psn psn) {
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

// SES has answered `psn`. `pending` is its record when the answer came later.
void Receiver::on_answer(Instant now, Pdc& pdc, Psn psn, const RxMeta& meta,
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
      kept_.count(pdc, 1);
    } else {
      responses_.change_state(*record, RxRecord::State::kStored);
    }
    ++rx.stored;
    if (kept_.share_of(pdc).is_short()) [[unlikely]]
      kept_.ask_for_clear(now, pdc);
  } else if (record != nullptr) {
    responses_.change_state(*record, RxRecord::State::kAckOnly);
    kept_.count(pdc, -1);
    if (responses_.has_too_many_acks()) {  // then CACK and SACK must do
      responses_.remove(*record);
      record = nullptr;
    }
  }

  const bool now_needed =
      asks_for_ack(rx, meta, response) || guaranteed || (above_cack && rx.tells_by_name);
  if (now_needed) {
    if (record == nullptr && !above_cack && !guaranteed && response.data.empty())
      record = take_over_waiting_ack(pdc, psn, meta);
    acknowledge(now, pdc, psn, meta, response, store, record);
  } else if (record != nullptr) {
    responses_.remove(*record);
  }
  if (rx.tracker != nullptr) advance_cack(pdc);
  // CACK stays below an answer that is kept until it is cleared, and the source cannot clear it while it does not know the answers
  // before it. Where that has begun they are told by name: else each kept answer would take a round trip.
  if (!now_needed && psn.is_after(rx.cack))
    rx.untold = serial_max(rx.untold, psn);
  else if (store && rx.untold.is_after(rx.cack))
    rx.tells_by_name = true;
}

/// [PDS 10.2] Counts an answer. True: its ACK does not wait for others.
bool Receiver::asks_for_ack(RxHalf& rx, const RxMeta& meta, const SesResponse& response) const {
  rx.ack_gen_count += std::max(meta.bytes, config_.ack_gen_min_pkt_add);
  return meta.ack_now || !response.data.empty() || rx.ack_gen_count >= config_.ack_gen_trigger ||
         rx.max_ar == rx.max_rcvd;
}

/// Tells the answer to `psn` with the next ACK. `record`: of the answer, where there is one.
void Receiver::acknowledge(Instant now, Pdc& pdc, Psn psn, const RxMeta& meta,
                           const SesResponse& response, bool is_stored, RxRecord* record) {
  RxHalf& rx = pdc.rx;
  if (record == nullptr)
    record = responses_.add(table_.slot_of(pdc), psn, RxRecord::State::kAckOnly, meta);
  if (record != nullptr) {
    responses_.set_response(*record, response);
    const bool must_wait =
        pdc.is_unproven() && response.data.size() > UnprovenPdcs::kAnswerBytes && is_stored;
    rx.withholds_answers = rx.withholds_answers || must_wait;
    if (must_wait)
      proofs_.ask(now, pdc);
    else if (!record->queued)
      queue_ack(pdc, *record);
  } else {
    queue_update(pdc, meta);  // no room for one more: CACK and SACK tell the same
  }
  rx.ack_gen_count = 0;
}

// Of packets that came by one path at one reading of the clock the last one's ACK says all: CACK is beyond them, and what SES answered need not
// be told. A mark or a retransmission is told by name. [PDS 10.2]
RxRecord* Receiver::take_over_waiting_ack(Pdc& pdc, Psn psn, const RxMeta& meta) {
  RxRecord* const last = responses_.back(pdc.rx.acks);
  if (last == nullptr || last->state != RxRecord::State::kAckOnly || last->urgent ||
      last->data_bytes != 0 || !last->psn.is_before(psn))
    return nullptr;
  const RxMeta& earlier = last->meta;
  const bool is_plain = !meta.ecn && !meta.retx && !earlier.ecn && !earlier.retx;
  if (!is_plain || earlier.arrived != meta.arrived || earlier.entropy != meta.entropy ||
      earlier.plane != meta.plane)
    return nullptr;
  last->psn = psn;
  last->meta = meta;
  return last;
}

// CACK passes what was received, answered, and is not kept for the source to clear. [PDS 7.3]
void Receiver::advance_cack(Pdc& pdc) {
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

void Receiver::release_tracker(Pdc& pdc) {
  trackers_.release(pdc.rx.tracker);
  pdc.rx.tracker = nullptr;
}

void Receiver::queue_ack(Pdc& pdc, RxRecord& record) {
  // ROD acknowledges in PSN order; what the source asked for does not wait behind an answer that is missing. [PDS 17.1]
  AckQueue& acks = pdc.rx.acks;
  if (!pdc.is_rod())
    responses_.push(acks, record);
  else if (record.urgent)
    responses_.push_front(acks, record);
  else
    responses_.push_ordered(acks, record);
  scheduler_.list_control(pdc);
}

void Receiver::queue_finished_ack(Pdc& pdc, Psn psn, const RxMeta& meta, bool is_control) {
  RxRecord* record = responses_.add(table_.slot_of(pdc), psn, RxRecord::State::kAckOnly, meta);
  if (record == nullptr) return queue_update(pdc, meta);
  if (!is_control) responses_.set_response(*record, upper_.default_response());
  record->urgent = true;
  queue_ack(pdc, *record);
}

void Receiver::queue_update(Pdc& pdc, const RxMeta& meta) {
  pdc.rx.wants_update = true;
  pdc.rx.last_meta = meta;
  scheduler_.list_control(pdc);
}

void Receiver::answer_known(Instant now, Pdc& pdc, Psn psn, const RxMeta& meta, bool is_control) {
  RxHalf& rx = pdc.rx;
  RxRecord* record = responses_.find(table_.slot_of(pdc), psn);
  if (!rx.tracker->test(RxTracker::kAnswered, psn)) {
    if (record != nullptr) record->meta.ack_now = true;  // at once when SES answers
    return nacks_.notify(now, pdc, psn, Notice::kSesBusy, meta);
  }
  if (!rx.tracker->test(RxTracker::kStored, psn))
    return queue_finished_ack(pdc, psn, meta, is_control);
  if (record == nullptr) return nacks_.notify(now, pdc, psn, Notice::kResponseGone, meta);
  // The stored answer with the facts of this copy; everything else of the ACK is of the moment.
  const std::uint32_t bytes = record->meta.bytes;
  record->meta = meta;
  record->meta.bytes = bytes;
  if (record->queued && (record->urgent || !pdc.is_rod())) return;
  if (record->queued) responses_.unqueue(rx.acks, *record);
  record->urgent = true;
  queue_ack(pdc, *record);
}

void Receiver::accept_clear(Instant now, Pdc& pdc, Psn clear) {
  RxHalf& rx = pdc.rx;
  if (clear.is_at_or_before(rx.cleared)) return;
  if (clear.is_after(rx.edge)) {
    trace_.drop(now, DropReason::kBadClear, 0, pdc.id, clear);
    return;
  }
  const Psn from = serial_max(rx.cleared, rx.cack) + 1;
  rx.cleared = clear;
  rx.clear_rounds = rx.clear_asks = 0;
  if (rx.stored == 0) return;
  for (Psn psn = from; psn.is_at_or_before(clear) && rx.stored > 0; ++psn) {
    if (!rx.tracker->test(RxTracker::kStored, psn)) continue;
    rx.tracker->clear(RxTracker::kStored, psn);
    --rx.stored;
    RxRecord* record = responses_.find(table_.slot_of(pdc), psn);
    if (record == nullptr) continue;
    if (record->queued) responses_.unqueue(rx.acks, *record);
    responses_.remove(*record);
    kept_.count(pdc, -1);
  }
  trace_.emit(now, EventId::kClearMoved, pdc.id, clear, clear.value());
  if (rx.stored == 0) rx.tells_by_name = false;
  const Psn before = rx.cack;
  advance_cack(pdc);
  // CACK has passed answers that nothing else has told: an ACK is due.
  if (rx.cack != before && rx.untold.is_after(before)) rx.ack_gen_count = config_.ack_gen_trigger;
}

Psn Receiver::highest_stored(const Pdc& pdc) const {
  const RxHalf& rx = pdc.rx;
  if (rx.tracker != nullptr)
    for (Psn psn = rx.edge; psn.is_after(rx.cack); psn = psn - 1)
      if (rx.tracker->test(RxTracker::kStored, psn)) return psn;
  return rx.cleared;
}

void Receiver::release_withheld(Pdc& pdc) {
  RxHalf& rx = pdc.rx;
  if (!rx.withholds_answers) return;
  rx.withholds_answers = false;
  for (Psn psn = rx.cack + 1; psn.is_at_or_before(rx.max_rcvd); ++psn) {
    RxRecord* record = responses_.find(table_.slot_of(pdc), psn);
    if (record != nullptr && record->state == RxRecord::State::kStored && !record->queued)
      queue_ack(pdc, *record);
  }
}

void Receiver::release(Pdc& pdc) {
  RxHalf& rx = pdc.rx;
  while (RxRecord* record = responses_.pop(rx.acks))
    if (record->state == RxRecord::State::kAckOnly) responses_.remove(*record);
  if (rx.kept > 0) {
    for (Psn psn = rx.cack + 1; psn.is_at_or_before(rx.max_rcvd) && rx.kept > 0; ++psn) {
      RxRecord* record = responses_.find(table_.slot_of(pdc), psn);
      if (record == nullptr) continue;
      responses_.remove(*record);
      kept_.count(pdc, -1);
    }
  }
  rx.stored = 0;
  rx.tells_by_name = false;
  if (rx.tracker != nullptr) release_tracker(pdc);
}

}  // namespace uet::pds
