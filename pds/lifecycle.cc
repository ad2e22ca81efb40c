// PDCs come and go: opening, the CCC they use, learning the peer, freeing. [PDS 5, 6, 16]

#include "lib/base/planted.h"
#include "pds/engine.h"

namespace uet::pds {

using base::planted;
using base::PlantedBug;

namespace {

/// When the system had no memory for a CCC, it is asked again after this.
constexpr base::Duration kMemoryRetry = base::Duration::from_ms(1);

}  // namespace

void Engine::init_halves(Instant now, Pdc& pdc, Psn start) {
  pdc.start = start;
  pdc.heard_at = pdc.active_at = pdc.busy_since = now;
  TxHalf& tx = pdc.tx;
  tx.next = tx.left = tx.rtx_from = start;
  tx.cack = start - 1;
  tx.mp_range = config_.default_mpr * 128u;
  RxHalf& rx = pdc.rx;
  rx.edge = rx.cack = rx.cleared = rx.max_rcvd = rx.max_ar = rx.answered = start - 1;
  rx.granted = limits_.window;
  rx.last_control = start - 1;
}

Pdc* Engine::open_initiator(Instant now, const TxMessage& request) {
  if (table_.is_full_for(true)) return nullptr;
  if (!congestions_.can_attach(request.destination, request.traffic_class,
                               request.mode == Mode::kRud, ccc_reserved_))
    return nullptr;
  Pdc* pdc = table_.allocate(now);
  if (pdc == nullptr) return nullptr;
  pdc->peer = request.destination;
  pdc->mode = request.mode;
  pdc->traffic_class = request.traffic_class;
  pdc->rod_context = request.mode == Mode::kRod ? request.rod_context : 0;
  pdc->is_initiator = true;
  pdc->share = kept_.peers().join(pdc->peer, false);
  init_halves(now, *pdc,
              table_.choose_start(
                  *pdc, env_.guard != nullptr ? env_.guard->expected_by(pdc->peer) : std::nullopt));
  Congestion* congestion =
      congestions_.attach(now, pdc->peer, pdc->traffic_class, pdc->mode == Mode::kRud);
  if (congestion == nullptr) {
    table_.release(now, *pdc, pdc->start);
    next_id_at_ = now + kMemoryRetry;  // as if it waited for an identifier
    return nullptr;
  }
  pdc->tx.cc.attach(*congestion);
  table_.index_initiator(*pdc);
  states_.change(now, *pdc, PdcInput::kFirstSend);
  trace_.emit(now, EventId::kPdcOpened, pdc->id, pdc->start, 0,
              static_cast<std::uint64_t>(pdc->mode));
  return pdc;
}

/// The first valid packet of the target says who it is; a second one with another identifier never
/// gets here. [PDS 6.3]
void Engine::learn_peer(Instant now, Pdc& pdc, std::uint16_t peer_id) {
  pdc.peer_id = peer_id;
  Congestion* congestion = pdc.tx.cc.if_any();
  if (congestion != nullptr && congestion->voice == nullptr) congestion->voice = &pdc;
  states_.change(now, pdc, PdcInput::kPeerLearnt);
  trace_.emit(now, EventId::kPdcEstablished, pdc.id, pdc.start, peer_id);
  if (pdc.pending_control != 0) scheduler_.list_control(pdc);
  // A control packet that opens a PDC brings no credit and no word for the CCC, which therefore cannot ask: when nothing else
  // is under way, one packet leaves without. [CC 5.3]
  if (pdc.tx.rtx_count > 0 && pdc.tx.rtx_count == pdc.tx.unacked) pdc.tx.has_free_pass = true;
  scheduler_.wake(pdc);
  if (congestion != nullptr) {
    congestion->ccc->on_pdc_opened();
    if (env_.sends_credit_state) scheduler_.on_congestion_timer(now, *congestion);
  }
  if (pdc.is_close_wanted) begin_close(now, pdc);
}

/// A target needs a CCC only when it sends return data; its place was reserved when it was opened.
bool Engine::attach_congestion(Instant now, Pdc& pdc) {
  if (pdc.tx.cc.if_any() != nullptr) return true;
  Congestion* congestion =
      congestions_.attach(now, pdc.peer, pdc.traffic_class, pdc.mode == Mode::kRud);
  if (congestion == nullptr) return false;
  pdc.tx.cc.attach(*congestion);
  --ccc_reserved_;
  // Nothing is asked of an unproven peer, so it cannot carry the questions of others either.
  if (congestion->voice == nullptr && !pdc.is_unproven()) congestion->voice = &pdc;
  return true;
}

void Engine::detach_congestion(Pdc& pdc) {
  Congestion* congestion = pdc.tx.cc.if_any();
  if (congestion == nullptr) {
    if (!pdc.is_initiator) --ccc_reserved_;
    return;
  }
  if (pdc.ready_hook.is_linked()) congestion->ready.erase(congestion->ready.iterator_to(pdc));
  if (congestion->voice == &pdc) congestion->voice = nullptr;
  congestion->ccc->on_pdc_closed(pdc.tx.share);
  pdc.tx.cc.detach();
  if (congestion->users == 1) {
    scheduler_.forget(*congestion);
  } else {
    scheduler_.wake(
        *congestion);  // what this PDC had in the network no longer stands in the way of the others
  }
  congestions_.detach(*congestion);
}

/// The PDC ends here. Its messages have been dealt with before.
void Engine::free_pdc(Instant now, Pdc& pdc) {
  UET_CHECK(pdc.state == PdcState::kClosed);
  TxHalf& tx = pdc.tx;
  UET_CHECK(tx.queue.empty());
  receiver_.release(pdc);
  reorder_.release(pdc);
  window_.release(tx);
  detach_congestion(pdc);
  credit_.leave(pdc);
  scheduler_.forget(pdc);
  if (pdc.is_initiator) {
    table_.unindex_initiator(pdc);
  } else {
    table_.unindex_target(pdc);
    if (pdc.rx.has_accepted && env_.guard != nullptr)
      (void)env_.guard->on_target_closed(pdc.peer, pdc.start);
    if (!planted(PlantedBug::kNoTombstone)) openings_.remember(now, pdc);
    if (pdc.unproven_hook.is_linked()) openings_.unproven().remove(pdc);
  }
  if (pdc.is_close_wanted) --close_wanted_;
  kept_.peers().leave(pdc.share, !pdc.is_initiator);
  table_.release(now, pdc, serial_max(tx.next - 1, pdc.rx.max_rcvd));
  room_.on_room();
}

/// A target PDC that was created by a packet which then was refused: leave nothing behind.
/// [PDS 6.4]
void Engine::drop_unaccepted(Instant now, Pdc& pdc) {
  if (pdc.is_initiator || pdc.rx.has_accepted || pdc.rx.held > 0) return;
  trace_.emit(now, EventId::kPdcClosed, pdc.id, pdc.start, 0);
  states_.change(now, pdc, PdcInput::kFailed);
  free_pdc(now, pdc);
}

}  // namespace uet::pds
