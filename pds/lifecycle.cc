#include "pds/lifecycle.h"

#include "lib/base/planted.h"

namespace uet::pds {

using base::planted;
using base::PlantedBug;

namespace {

/// When the system had no memory for a CCC, it is asked again after this.
constexpr Duration kMemoryRetry = Duration::from_ms(1);

}  // namespace

Lifecycle::Lifecycle(Shared& shared, SendWindow& window, ReceivingHalf& receiving)
    : Part(shared.env),
      table_(shared.pdcs),
      congestions_(shared.congestions),
      room_(shared.room),
      scheduler_(shared.scheduler),
      states_(shared.states),
      window_(window),
      openings_(receiving.openings),
      kept_(receiving.kept),
      receiver_(receiving.receiver),
      reorder_(receiving.reorder),
      credit_(receiving.credit) {}

void Lifecycle::begin_at(Instant now, Pdc& pdc, Psn start) {
  pdc.start = start;
  pdc.heard_at = pdc.active_at = pdc.busy_since = now;
  TxHalf& tx = pdc.tx;
  tx.next = tx.left_edge = tx.rtx_from = tx.in_flight_from = tx.ask_from = tx.ask_end = start;
  tx.cack = tx.commanded = start - 1;
  tx.mp_range = config_.default_mpr * 128u;
  RxHalf& rx = pdc.rx;
  rx.edge = rx.cack = rx.cleared = rx.max_rcvd = rx.max_ar = rx.answered = rx.untold = start - 1;
  rx.gap_heard_at = now;
  rx.granted = limits_.window;
  rx.last_control = start - 1;
}

bool Lifecycle::lacks_place(const TxMessage& request) {
  return table_.is_full_for(Role::kInitiator) ||
         !congestions_.can_attach(request.destination, request.traffic_class,
                                  request.mode == Mode::kRud, ccc_reserved_);
}

Pdc* Lifecycle::open_initiator(Instant now, const TxMessage& request) {
  if (lacks_place(request)) return nullptr;
  Pdc* pdc = table_.allocate(now);
  if (pdc == nullptr) return nullptr;
  pdc->peer = request.destination;
  pdc->mode = request.mode;
  pdc->traffic_class = request.traffic_class;
  pdc->rod_context = request.mode == Mode::kRod ? request.rod_context : 0;
  pdc->is_initiator = true;
  begin_at(now, *pdc,
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
  join_peer(*pdc);
  table_.index_initiator(*pdc);
  states_.change(now, *pdc, PdcInput::kFirstSend);
  trace_.emit(now, EventId::kPdcOpened, pdc->id, pdc->start, 0,
              static_cast<std::uint64_t>(pdc->mode));
  return pdc;
}

void Lifecycle::join_peer(Pdc& pdc) {
  pdc.share = kept_.peers().join(pdc.peer, pdc.role());
  pdc.tx.ring.further_of_peer = &kept_.peers().at(pdc.share).records;
}

bool Lifecycle::can_open_target(const Arrival& in) {
  return congestions_.can_attach(in.source, 0, in.mode != Mode::kRod, ccc_reserved_);
}

Pdc& Lifecycle::open_target(Instant now, const Arrival& in, Psn start, PdcInput how) {
  Pdc* pdc = table_.allocate(now);
  UET_CHECK(pdc != nullptr);
  pdc->peer = in.source;
  pdc->peer_id = in.spdcid;
  pdc->mode = in.mode;
  pdc->is_initiator = false;
  pdc->opened_at = now;
  openings_.unproven().add(*pdc);
  join_peer(*pdc);
  begin_at(now, *pdc, start);
  table_.index_target(*pdc);
  states_.change(now, *pdc, how);
  ++ccc_reserved_;
  return *pdc;
}

bool Lifecycle::attach_congestion(Instant now, Pdc& pdc) {
  if (pdc.tx.cc.if_any() != nullptr) return true;
  Congestion* congestion =
      congestions_.attach(now, pdc.peer, pdc.traffic_class, pdc.mode == Mode::kRud);
  if (congestion == nullptr) {
    next_id_at_ = now + kMemoryRetry;
    return false;
  }
  pdc.tx.cc.attach(*congestion);
  --ccc_reserved_;
  // Nothing is asked of an unproven peer, so it cannot carry the questions of others either.
  if (congestion->carrier == nullptr && !pdc.is_unproven()) congestion->carrier = &pdc;
  return true;
}

void Lifecycle::detach_congestion(Pdc& pdc) {
  Congestion* congestion = pdc.tx.cc.if_any();
  if (congestion == nullptr) {
    if (!pdc.is_initiator) --ccc_reserved_;
    return;
  }
  if (pdc.ready_hook.is_linked()) congestion->ready.erase(congestion->ready.iterator_to(pdc));
  if (congestion->carrier == &pdc) congestion->carrier = nullptr;
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

// What any end of a PDC takes off all lists and gives back.
void Lifecycle::detach(Pdc& pdc) {
  receiver_.release(pdc);
  reorder_.release(pdc);
  window_.release(pdc.tx);
  detach_congestion(pdc);
  credit_.leave(pdc);
  scheduler_.forget(pdc);
}

void Lifecycle::release(Instant now, Pdc& pdc) {
  UET_CHECK(pdc.state == PdcState::kClosed);
  UET_CHECK(pdc.tx.queue.empty());
  detach(pdc);
  if (pdc.is_initiator) {
    table_.unindex_initiator(pdc);
  } else {
    table_.unindex_target(pdc);
    if (pdc.rx.has_accepted && env_.guard != nullptr)
      (void)env_.guard->on_target_closed(pdc.peer, pdc.start);
    if (!planted(PlantedBug::kNoTombstone)) openings_.remember(now, pdc);
    if (pdc.unproven_hook.is_linked()) openings_.unproven().remove(pdc);
  }
  states_.forget(pdc);
  kept_.peers().leave(pdc.share, pdc.role());
  table_.release(now, pdc, serial_max(pdc.tx.next - 1, pdc.rx.max_rcvd));
  room_.on_room();
}

void Lifecycle::drop_unaccepted(Instant now, Pdc& pdc) {
  if (pdc.is_initiator || pdc.rx.has_accepted || pdc.rx.held > 0) return;
  trace_.emit(now, EventId::kPdcClosed, pdc.id, pdc.start, 0);
  states_.change(now, pdc, PdcInput::kFailed);
  release(now, pdc);
}

// Packets and CCCs must go back before their pools do.
Lifecycle::~Lifecycle() {
  PdcOrderList& all = table_.in_order();
  while (!all.empty()) {
    Pdc& pdc = all.front();
    pdc.tx.queue.clear();
    detach(pdc);
    if (pdc.is_initiator)
      table_.unindex_initiator(pdc);
    else
      table_.unindex_target(pdc);
    if (pdc.unproven_hook.is_linked()) openings_.unproven().remove(pdc);
    kept_.peers().leave(pdc.share, pdc.role());
    table_.release(Instant{}, pdc, Psn{});
  }
}

void Lifecycle::on_deadline(Instant now) {
  if (next_id_at_ > now) return;
  next_id_at_ = Instant::never();
  room_.on_room();
}

}  // namespace uet::pds
