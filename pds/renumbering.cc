#include "pds/renumbering.h"

namespace uet::pds {

bool Renumbering::on_new_start(Instant now, Pdc& pdc, Psn start) {
  constexpr std::uint8_t kNoLimit = 31;
  if (env_.guard == nullptr || pdc.state != PdcState::kCreating)
    return trace_.drop(now, DropReason::kReservedNack, 0, pdc.id, start), true;
  const auto shift = static_cast<std::uint32_t>(start.distance_from(pdc.start));
  if (shift == 0) return trace_.drop(now, DropReason::kStaleNack, 0, pdc.id, start), true;
  if (pdc.start_changes < kNoLimit) ++pdc.start_changes;
  if (config_.max_nack_retx_cnt < kNoLimit && pdc.start_changes > config_.max_nack_retx_cnt)
    return false;

  TxHalf& tx = pdc.tx;
  RxHalf& rx = pdc.rx;
  for (Psn* psn : {&pdc.start, &tx.next, &tx.cack, &tx.left, &tx.rtx_from, &rx.edge, &rx.cack,
                   &rx.cleared, &rx.max_rcvd, &rx.max_ar, &rx.answered})
    *psn = *psn + shift;
  tx.ring.origin = tx.ring.origin + shift;  // the records stay where they are
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
    // A target that wants another start has accepted nothing.
    if (record.message != nullptr && !record.waits_for_resend())
      tx.cc.of(*record.message).ccc->on_nack(now, record.cc, tx.share, refused);
    loss_.queue_resend(pdc, psn, record, TxEvent::kRefused);
  }
  tx.rtx_from = tx.left;
  // The target waits for one packet from the new start, for New_PDC_Time. Credit that it gives now names a PDC which this side does
  // not know yet, and an RTO may be longer than it waits: without this packet every round could end in another challenge.
  tx.has_credit_exemption = true;
  Scheduler::stop_timer(pdc, PdcTimer::kRetransmit);
  scheduler_.wake(pdc);
  return true;
}

}  // namespace uet::pds
