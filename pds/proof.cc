// What a peer may cost before it has proved that it hears us. See docs/decisions/0100.

#include "pds/engine.h"

namespace uet::pds {

/// How long the opening of an unproven peer must be remembered, as a PDC or as a stone: its initiator may still be in CREATING
/// and send SYN packets again until its own peer_timeout, and their copies live for tombstone_time.
Duration Engine::opening_memory() const {
  constexpr Duration kUsualPatience = Duration::from_seconds(60);  // where the setting is "never"
  const Duration patience =
      config_.peer_timeout > Duration{} ? config_.peer_timeout : kUsualPatience;
  return patience + config_.tombstone_time;
}

/// The peer has named our PDCID: it has heard us, knows the PDC, and sends no more SYN packets.
void Engine::prove(Instant now, Pdc& pdc) {
  if (!pdc.is_unproven()) return;
  kept_by_unproven_ -= pdc.rx.kept;
  Pdc* before = table_.find_proven_target(pdc.peer, pdc.peer_id);
  table_.unindex_target(pdc);
  pdc.is_proven = true;
  table_.index_target(pdc);
  unproven_.remove(pdc);
  stop_timer(pdc, PdcTimer::kProof);
  release_withheld_answers(pdc);
  resume_credit(now, pdc);
  if (Congestion* congestion = pdc.tx.cc.if_any()) {
    if (congestion->voice == nullptr) congestion->voice = &pdc;
    after_congestion_event(now, *congestion);
  }
  wake(pdc);
  on_liveness(now, pdc);
  // Its initiator has started anew: the PDC of its former life will not be heard of again. See docs/decisions/0102.
  if (before != nullptr && before != &pdc && is_given_up(now, *before))
    fail(now, *before, PdsError::kPeerSilent);
}

/// Something longer than a stranger may get waits: ask whether it is there.
void Engine::ask_for_proof(Instant now, Pdc& pdc) {
  if (!pdc.is_unproven() || !pdc.deadline(PdcTimer::kProof).is_never()) return;
  want_control(pdc, kSendProbe);
  set_timer(pdc, PdcTimer::kProof, now + rto(pdc, 0));
}

void Engine::on_proof_timer(Pdc& pdc) {
  if (pdc.is_unproven() && pdc.unasked < UnprovenPdcs::kUnasked) want_control(pdc, kSendProbe);
}

/// Answers with much read data that were kept back.
void Engine::release_withheld_answers(Pdc& pdc) {
  RxHalf& rx = pdc.rx;
  if (!rx.withholds_answers) return;
  rx.withholds_answers = false;
  for (Psn psn = rx.cack + 1; psn.is_at_or_before(rx.max_rcvd); ++psn) {
    RxRecord* record = responses_.find(table_.slot_of(pdc), psn);
    if (record != nullptr && record->state == RxRecord::State::kStored && !record->queued)
      queue_ack(pdc, *record);
  }
}

/// Makes a place by ending an unproven PDC whose peer had its chance. Nothing is sent: there may be nobody who wants to
/// hear it. What it delivered is remembered for as long as its SYN packets may come again.
bool Engine::evict_unproven(Instant now, Pdc* pdc) {
  if (pdc == nullptr) return false;
  if (pdc->rx.has_delivered && !openings_.has_room_for(now, 1)) return false;
  ++unproven_evicted_;
  retire_unproven(now, *pdc);
  return true;
}

void Engine::retire_unproven(Instant now, Pdc& pdc) {
  if (pdc.state == PdcState::kPending) return reap_half_open(now, pdc);
  fail(now, pdc, PdsError::kPeerSilent);
}

/// No address holds more than half of the places, whatever it has proved. Of those that it did not prove the oldest goes first:
/// they may be forged, and must not keep it out.
bool Engine::make_place_under(Instant now, const net::FabricAddress& peer) {
  const PeerShares::Use* use = shares_.find(peer);
  if (use == nullptr || use->targets < unproven_.share()) return true;
  return evict_unproven(now, unproven_.to_evict_of(now, peer));
}

/// True when the place is there.
bool Engine::make_place_for_stranger(Instant now) {
  const bool is_full = table_.is_full_for(false);
  if (unproven_.has_share_left() && !is_full) return true;
  if (evict_unproven(now, unproven_.to_evict(now))) return true;
  if (is_full) make_room(now, false);
  return false;
}

/// Leaves behind what a late SYN packet of this PDC must meet.
void Engine::remember_opening(Instant now, const Pdc& pdc) {
  if (!pdc.rx.has_accepted) return;
  const bool is_over = pdc.is_proven || now - pdc.heard_at >= opening_memory();
  if (is_over)
    tombstones_.add(now, pdc.peer, pdc.peer_id, pdc.start);
  else if (pdc.rx.has_delivered)
    openings_.add(now, pdc.peer, pdc.peer_id, pdc.start);
}

}  // namespace uet::pds
