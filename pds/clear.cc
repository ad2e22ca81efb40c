#include "pds/clear.h"

#include "pds/backoff.h"

namespace uet::pds {

void ClearSender::owe(Instant now, Pdc& pdc) {
  TxHalf& tx = pdc.tx;
  if (config_.pds_clear_time <= Duration{}) {
    scheduler_.want_control(pdc, kSendClear);
    return;
  }
  if (tx.clear_owed) return;
  tx.clear_owed = true;
  scheduler_.set_timer(pdc, PdcTimer::kClear, now + config_.pds_clear_time);
}

void ClearSender::hasten(Pdc& pdc, Psn named) {
  const TxHalf& tx = pdc.tx;
  // Answers leave in their order: with one beyond the left edge here, that of the left edge is not on its way.
  if (!named.is_after(tx.left_edge)) return;
  if (!pdc.is_rod() && !window_.at(pdc, tx.left_edge).has_arrived()) return;
  if (!serial_max(tx.cack, tx.commanded).is_before(tx.clear_psn())) return;
  if (tx.rtx_count > 0 || (!tx.queue.empty() && window_.allows(pdc, tx.next))) return;
  owe_now(pdc);
}

void ClearSender::on_request(Instant now, Pdc& pdc, Psn wanted) {
  TxHalf& tx = pdc.tx;
  if (!wanted.is_before(tx.next)) return trace_.drop(now, DropReason::kBadClear, 0, pdc.id, wanted);
  if (tx.clear_psn().is_before(wanted)) {
    // Not all of those responses are here yet: as soon as they are. [PDS 15]
    tx.has_clear_when = true;
    tx.clear_when = wanted;
  }
  owe(now, pdc);
}

// The window excludes the oldest PSN that is not acknowledged, or the next one where all are: every response below it came, but
// CACK stands behind uncleared ones, and the Clear Command that would move it may be lost. Clear and Probe,
// again and again, until CACK moves. [PDS 11.3]
void ClearSender::start_stall(Instant now, Pdc& pdc) {
  if (!pdc.deadline(PdcTimer::kStall).is_never() || pdc.peer_id == 0) return;
  if (window_.allows(pdc, pdc.tx.left_edge)) return;
  scheduler_.want_control(pdc, kSendClear);
  scheduler_.set_timer(pdc, PdcTimer::kStall,
                       now + std::max(config_.pds_clear_time, Duration::from_us(100)));
}

void ClearSender::on_stall_timer(Instant now, Pdc& pdc) {
  TxHalf& tx = pdc.tx;
  if (window_.allows(pdc, tx.left_edge)) return;
  scheduler_.want_control(pdc, kSendClear | kSendProbe);
  if (tx.stall_backoff < 32) ++tx.stall_backoff;
  scheduler_.set_timer(
      pdc, PdcTimer::kStall,
      now + longer_each_time(std::max(config_.pds_clear_time, Duration::from_us(100)),
                             tx.stall_backoff, 0, kLongestRto));
}

}  // namespace uet::pds
