// What a peer may cost before it has proved that it hears us. See docs/decisions/0100.

#include "pds/engine.h"

namespace uet::pds {

/// The peer has named our PDCID: it has heard us, knows the PDC, and sends no more SYN packets.
void Engine::prove(Instant now, Pdc& pdc) {
  if (!pdc.is_unproven()) return;
  kept_.on_proven(pdc);
  pdc.is_proven = true;
  openings_.unproven().remove(pdc);
  Scheduler::stop_timer(pdc, PdcTimer::kProof);
  receiver_.release_withheld(pdc);
  // Grants that did not leave: the counter is cumulative.
  if (pdc.rx.credit_source != kNoIndex) {
    pdc.rx.credit = credit_.units_for(pdc);
    scheduler_.want_control(pdc, kSendCredit);
  }
  if (Congestion* congestion = pdc.tx.cc.if_any()) {
    if (congestion->voice == nullptr) congestion->voice = &pdc;
    scheduler_.after_congestion_event(now, *congestion);
  }
  scheduler_.wake(pdc);
  on_liveness(now, pdc);
}

/// Makes a place by ending the oldest unproven PDC whose peer had its chance. Nothing is sent: there may be nobody who wants to
/// hear it. What it delivered is remembered for as long as its SYN packets may come again.
bool Engine::evict_unproven(Instant now) {
  Pdc* pdc = openings_.unproven().to_evict(now);
  if (pdc == nullptr) return false;
  if (pdc->rx.has_delivered && !openings_.ended_early().has_room_for(now, 1)) return false;
  ++unproven_evicted_;
  retire_unproven(now, *pdc);
  return true;
}

void Engine::retire_unproven(Instant now, Pdc& pdc) {
  if (pdc.state == PdcState::kPending) return reap_half_open(now, pdc);
  fail(now, pdc, PdsError::kPeerSilent);
}

/// True when the place is there.
bool Engine::make_place_for_stranger(Instant now) {
  const bool is_full = table_.is_full_for(false);
  if (openings_.unproven().has_share_left() && !is_full) return true;
  if (evict_unproven(now)) return true;
  if (is_full) make_room(now, false);
  return false;
}

/// SES may answer `psn` with something to keep: true when there is room for it.
bool Engine::has_room_for_answer(Instant now, Pdc& pdc, Psn psn) {
  // Unproven peers push out each other: a newcomer needs an answer for a round trip only.
  if (pdc.is_unproven() && kept_.is_share_of_unproven_used(pdc))
    evict_answers_of_unproven(now, pdc);
  return kept_.has_room(pdc, psn);
}

void Engine::evict_answers_of_unproven(Instant now, const Pdc& except) {
  Pdc* pdc = openings_.unproven().to_evict_with_answers(now, except);
  if (pdc == nullptr || !openings_.ended_early().has_room_for(now, 1)) return;
  ++unproven_evicted_;
  retire_unproven(now, *pdc);
}

}  // namespace uet::pds
