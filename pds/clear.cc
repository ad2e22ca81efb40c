// Guaranteed responses: when the destination may forget them, and how the source says so. [PDS 11]

#include "pds/engine.h"

namespace uet::pds {

// --- Destination

/// Cumulative and monotonic: the highest CLEAR seen counts, in whatever order they arrive.
/// [PDS 11.2]
void Engine::accept_clear(Instant now, Pdc& pdc, Psn clear) {
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
    count_kept(pdc, -1);
  }
  trace_.emit(now, EventId::kClearMoved, pdc.id, clear, clear.value());
  advance_cack(pdc);
}

Psn Engine::highest_stored(const Pdc& pdc) const {
  const RxHalf& rx = pdc.rx;
  if (rx.tracker != nullptr)
    for (Psn psn = rx.edge; psn.is_after(rx.cack); psn = psn - 1)
      if (rx.tracker->test(RxTracker::kStored, psn)) return psn;
  return rx.cleared;
}

// --- Source

/// The peer waits for a CLEAR. The next Request carries it; without one, a Clear Command after
/// PDS_Clear_Time.
void Engine::owe_clear(Instant now, Pdc& pdc) {
  TxHalf& tx = pdc.tx;
  if (config_.pds_clear_time <= Duration{}) {
    scheduler_.want_control(pdc, kSendClear);
    return;
  }
  if (tx.clear_owed) return;
  tx.clear_owed = true;
  scheduler_.set_timer(pdc, PdcTimer::kClear, now + config_.pds_clear_time);
}

void Engine::owe_clear_now(Pdc& pdc) {
  scheduler_.want_control(pdc, kSendClear);
}

void Engine::on_clear_timer(Instant now, Pdc& pdc) {
  (void)now;
  if (pdc.tx.clear_owed) scheduler_.want_control(pdc, kSendClear);
}

void Engine::on_clear_request(Instant now, Pdc& pdc, Psn wanted) {
  TxHalf& tx = pdc.tx;
  if (!wanted.is_before(tx.next)) return trace_.drop(now, DropReason::kBadClear, 0, pdc.id, wanted);
  if (tx.clear_psn().is_before(wanted)) {
    // Not all of those responses are here yet: as soon as they are. [PDS 15]
    tx.has_clear_when = true;
    tx.clear_when = wanted;
  }
  owe_clear(now, pdc);
}

// The window is closed although nothing is unacknowledged: every response came, but CACK stands
// behind uncleared ones, and the Clear Command that would move it may be lost. Clear and Probe,
// again and again, until CACK moves. [PDS 11.3]
void Engine::start_stall(Instant now, Pdc& pdc) {
  if (!pdc.deadline(PdcTimer::kStall).is_never() || pdc.peer_id == 0) return;
  if (window_allows(pdc, pdc.tx.next)) return;  // blocked by memory, not by the peer
  scheduler_.want_control(pdc, kSendClear);
  scheduler_.set_timer(pdc, PdcTimer::kStall,
                       now + std::max(config_.pds_clear_time, Duration::from_us(100)));
}

void Engine::on_stall_timer(Instant now, Pdc& pdc) {
  TxHalf& tx = pdc.tx;
  if (window_allows(pdc, tx.next) || tx.unacked > 0) return;
  scheduler_.want_control(pdc, kSendClear | kSendProbe);
  Duration wait = std::max(config_.pds_clear_time, Duration::from_us(100));
  if (tx.stall_backoff < 32) ++tx.stall_backoff;
  for (unsigned i = 0; i < tx.stall_backoff && wait < Duration::from_seconds(8); ++i)
    wait = wait * 2;
  scheduler_.set_timer(pdc, PdcTimer::kStall, now + std::min(wait, Duration::from_seconds(8)));
}

}  // namespace uet::pds
