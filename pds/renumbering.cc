#include "pds/renumbering.h"

namespace uet::pds {

namespace {

/// PSNs that have left, from the start on.
std::int32_t used(const Pdc& pdc) {
  return pdc.tx.next.distance_from(pdc.start);
}

}  // namespace

bool Renumbering::on_new_start(Instant now, Pdc& pdc, Psn start) {
  if (env_.guard == nullptr || pdc.state != PdcState::kCreating)
    return trace_.drop(now, DropReason::kReservedNack, 0, pdc.id, start), true;
  // What a target expects grows: a little less is what it said before, and its answers to PSNs from there would pass for answers
  // to ours.
  const std::int32_t back = pdc.start.distance_from(start);
  if (back >= 0 && back < std::max(used(pdc), 1))
    return trace_.drop(now, DropReason::kStaleNack, 0, pdc.id, start), true;
  return move(now, pdc, start);
}

// The target has opened where this PDC started before, and the word that moved it away was an old one. Unless the PSN was used there
// too: then it may be the earlier start that was refused. [decision 166]
bool Renumbering::on_invalid_syn(Instant now, Pdc& pdc, Psn psn) {
  const auto stale = [&] { return trace_.drop(now, DropReason::kStaleNack, 0, pdc.id, psn), true; };
  if (pdc.state != PdcState::kCreating || !pdc.other_start) return stale();
  const std::int32_t ahead = psn.distance_from(*pdc.other_start);
  if (ahead >= 0 && ahead < used(pdc)) return stale();
  return move(now, pdc, *pdc.other_start);
}

bool Renumbering::move(Instant now, Pdc& pdc, Psn start) {
  const auto shift = static_cast<std::uint32_t>(start.distance_from(pdc.start));
  if (pdc.start_changes < PdsConfig::kNoNackLimit) ++pdc.start_changes;
  if (config_.is_above_nack_limit(pdc.start_changes)) return false;

  pdc.other_start = pdc.start;
  pdc.is_unanswered = false;
  TxHalf& tx = pdc.tx;
  RxHalf& rx = pdc.rx;
  for (Psn* psn : {&pdc.start, &tx.next, &tx.cack, &tx.commanded, &tx.left_edge, &tx.rtx_from,
                   &tx.in_flight_from, &tx.ask_from, &tx.ask_end, &rx.edge, &rx.cack, &rx.cleared,
                   &rx.max_rcvd, &rx.max_ar, &rx.answered, &rx.untold})
    *psn = *psn + shift;
  tx.ring.origin = tx.ring.origin + shift;  // the records stay where they are
  // The same state at another start: observers of the events need to know.
  const auto state = static_cast<std::uint64_t>(pdc.state);
  trace_.emit(now, EventId::kPdcStateChanged, pdc.id, pdc.start, state, state);

  cc::NackSignal refused;
  refused.arrived_at = now;
  refused.retx_echo = true;
  refused.pdc_exists = false;
  for (Psn psn = tx.left_edge; psn.is_before(tx.next); ++psn) {
    TxRecord& record = tx_blocks_.at(tx.ring, psn);
    record.rto_cnt = record.nack_cnt = 0;
    // A target that wants another start has accepted nothing.
    if (record.message != nullptr && !record.waits_for_resend())
      tx.cc.of(*record.message).ccc->on_nack(now, record.cc, tx.share, refused);
    loss_.queue_resend(pdc, psn, record, TxEvent::kRefused);
  }
  tx.rtx_from = tx.left_edge;
  // The target waits for one packet from the new start, for New_PDC_Time. Credit that it gives now names a PDC which this side does
  // not know yet, and an RTO may be longer than it waits: without this packet every round could end in another challenge.
  tx.has_credit_exemption = true;
  Scheduler::stop_timer(pdc, PdcTimer::kRetransmit);
  scheduler_.wake(pdc);
  return true;
}

}  // namespace uet::pds
