// A sequenced packet on its PDC: new, duplicate or out of bounds. [PDS 7.5, 9.2, 9.3]

#include "lib/base/planted.h"
#include "pds/engine.h"

namespace uet::pds {

using base::planted;
using base::PlantedBug;

void Engine::on_sequenced(Instant now, const Arrival& in) {
  Pdc* const found = find_for(now, in);
  if (found == nullptr) return;
  Pdc& pdc = *found;
  if (in.is_control) {
    const bool right_role = in.control == ControlType::kCloseCommand   ? !pdc.is_initiator
                            : in.control == ControlType::kCloseRequest ? pdc.is_initiator
                                                                       : true;
    if (!right_role) return trace_.drop(now, DropReason::kRoleMismatch, 0, pdc.id, in.psn);
  }
  const auto drop = [&](DropReason reason) {
    trace_.drop(now, reason, in.body.size(), pdc.id, in.psn);
    drop_unaccepted(now, pdc);
  };
  const PsnClass kind = classify(pdc, in.psn);
  if (kind == PsnClass::kBelowStart || kind == PsnClass::kTooOld) [[unlikely]]
    return drop(kind == PsnClass::kTooOld ? DropReason::kPsnTooOld : DropReason::kPsnBelowStart);
  // What lies beyond the window may be a guess: it neither says who the target is nor that the peer lives.
  if (kind == PsnClass::kBeyond) [[unlikely]] {
    nacks_.add_for(now, in, &pdc, NackCode::kPsnOorWindow);
    return drop(DropReason::kPsnBeyondWindow);
  }
  // A packet that belongs here: it also tells an initiator who its target is. [PDS 6.3]
  if (pdc.peer_id == 0) learn_peer(now, pdc, in.spdcid);
  heard(now, pdc);
  if (!in.syn) prove(now, pdc);
  const bool is_after_close =
      pdc.has_close_psn && !pdc.is_initiator && in.psn.is_after(pdc.close_psn);
  if (is_after_close || (pdc.state == PdcState::kCloseAckWait && kind == PsnClass::kNew))
      [[unlikely]] {
    // A Close Request that crosses our Close Command has what it wants.
    if (!in.is_control || in.control != ControlType::kCloseRequest)
      nacks_.add_for(now, in, &pdc, NackCode::kClosing);
    return drop(DropReason::kClosing);
  }
  const bool is_duplicate = kind == PsnClass::kFinished || kind == PsnClass::kKnown;
  if (is_duplicate && !(kind == PsnClass::kFinished && planted(PlantedBug::kDuplicateDelivered)))
    return on_duplicate(now, pdc, in, kind == PsnClass::kFinished);
  if (pdc.is_rod() && in.psn != pdc.rx.edge + 1 && !planted(PlantedBug::kRodOrderIgnored))
      [[unlikely]]
    return on_rod_gap(now, pdc, in);
  const PdcRef ref = pdc.ref();
  deliver(now, pdc, in);
  if (config_.rod_reorder && table_.is_alive(ref)) deliver_held(now, pdc);
}

// ROD takes only the next PSN. One NACK per gap: it is armed again when the edge moves, when a
// retransmission is still out of order, or after a while. [PDS 17.1]
void Engine::on_rod_gap(Instant now, Pdc& pdc, const Arrival& in) {
  if (config_.rod_reorder && reorder_.hold(now, pdc, in)) return;
  RxHalf& rx = pdc.rx;
  trace_.drop(now, DropReason::kRodOutOfOrder, in.body.size(), pdc.id, in.psn);
  if (!rx.ooo_nack_armed && !in.retx && now - rx.last_ooo_nack < round_trip(pdc, config_)) return;
  rx.ooo_nack_armed = false;
  rx.last_ooo_nack = now;
  nacks_.add_for(now, in, &pdc, NackCode::kRodOoo, (rx.edge + 1).value());
}

// Never delivered, never counted as received; its CLEAR and its CE mark still mean something.
// [PDS 9.3]
void Engine::on_duplicate(Instant now, Pdc& pdc, const Arrival& in, bool finished) {
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
  if (finished || in.psn.is_at_or_before(pdc.rx.cack))
    return receiver_.queue_finished_ack(pdc, in.psn, in.meta, in.is_control);
  receiver_.answer_known(now, pdc, in.psn, in.meta, in.is_control);
}

}  // namespace uet::pds
