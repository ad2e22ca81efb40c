#include "pds/admission.h"

namespace uet::pds {

bool Admission::make_place_under(Instant now, const net::FabricAddress& peer) {
  const PeerShares::Use* use = kept_.peers().find(peer);
  if (use == nullptr || use->targets < openings_.unproven().share()) return true;
  return evict_unproven(now, openings_.unproven().to_evict_of(now, peer));
}

bool Admission::make_place(Instant now) {
  ask_for_proofs(now);
  const bool is_full = table_.is_full_for(Role::kTarget);
  if (openings_.unproven().has_share_left() && !is_full) return true;
  if (evict_unproven(now, openings_.unproven().to_evict(now))) return true;
  if (is_full) make_room(now, Role::kTarget);
  return false;
}

// Two for each that comes, so that all that are old enough have been asked before one may be pushed out.
void Admission::ask_for_proofs(Instant now) {
  for (int i = 0; i < 2; ++i) {
    Pdc* const pdc = openings_.unproven().take_next_to_ask(now);
    if (pdc != nullptr && pdc->state == PdcState::kEstablished) proofs_.ask(now, *pdc);
  }
}

namespace {

constexpr int kLookAt = 256;  // the list of PDCs is roughly in order of idleness

}  // namespace

// A peer that is gone leaves nothing but a Close Command to wait for, for as long as peer_timeout. No message is lost with such a PDC.
bool Admission::drop_unanswered_close(Instant now) {
  int looked = 0;
  for (Pdc& pdc : table_.in_order()) {
    if (++looked > kLookAt) break;
    if (closing_.end_if_unanswered(now, pdc)) return true;
  }
  return false;
}

// The table is full for one role: the PDC that has had nothing to do for longest gives its place up. When all are busy and
// none is on its way out, the oldest one has to drain, so that a peer with endless work does not keep others out for ever; if need be
// one that is locked, whose SES lets go of what it only waits for.
// Strangers who ask again and again do not empty the table: only so many PDCs are on their way out for them at a time.
// [PDS 5.2]
void Admission::make_room(Instant now, Role role) {
  const bool is_ours = role == Role::kInitiator;
  if (!is_ours && states_.closing() >= std::max<std::uint32_t>(2, table_.capacity() / 4)) return;
  // Not for strangers, who would make us look through the list with every packet.
  if (is_ours && drop_unanswered_close(now)) return;
  const bool any_role = table_.has_share_left(role);
  if (is_ours && any_role && evict_unproven(now, openings_.unproven().to_evict(now))) return;
  int looked = 0;
  Pdc* idlest = nullptr;
  Pdc* oldest = nullptr;
  Pdc* locked = nullptr;
  const auto last_sign = [](const Pdc& p) { return std::max(p.heard_at, p.active_at); };
  for (Pdc& pdc : table_.in_order()) {
    if (++looked > kLookAt) break;
    if (pdc.state != PdcState::kEstablished || pdc.is_unproven() ||
        (!any_role && pdc.role() != role))
      continue;
    if (pdc.has_tx_work() || pdc.locks > 0 || pdc.rx.kept > 0) {
      // A target whose SES owes answers hears nothing and would take that for a peer that does not react.
      Pdc*& first = pdc.locks == 0 ? oldest : locked;
      if (first == nullptr && pdc.rx.kept == pdc.rx.stored) first = &pdc;
      continue;
    }
    if (idlest == nullptr || last_sign(pdc) < last_sign(*idlest)) idlest = &pdc;
  }
  if (idlest != nullptr) return closing_.begin(now, *idlest);
  if (oldest == nullptr) oldest = locked;
  if (oldest != nullptr && states_.closing() == 0 && states_.close_wanted() == 0)
    closing_.begin(now, *oldest);
}

// Makes a place by ending an unproven PDC whose peer had its chance. Nothing is sent: the peer may not be
// there. What it delivered is remembered for as long as its SYN packets may come again.
bool Admission::evict_unproven(Instant now, Pdc* pdc) {
  if (pdc == nullptr) return false;
  if (pdc->rx.has_delivered && !openings_.ended_early().has_room_for(now, 1)) return false;
  ++evicted_;
  retire(now, *pdc);
  return true;
}

void Admission::retire(Instant now, Pdc& pdc) {
  if (pdc.state == PdcState::kPending) return closing_.reap_half_open(now, pdc);
  closing_.fail(now, pdc, PdsError::kPeerSilent);
}

bool Admission::has_room_for_answer(Instant now, Pdc& pdc, Psn psn) {
  // Unproven peers push out each other: a newcomer needs an answer for a round trip only.
  if (pdc.is_unproven() && kept_.is_share_of_unproven_used(pdc))
    evict_answers_of_unproven(now, pdc);
  return kept_.has_room(pdc, psn);
}

void Admission::evict_answers_of_unproven(Instant now, const Pdc& except) {
  Pdc* pdc = openings_.unproven().to_evict_among(now, kept_.unproven_keepers(), except);
  if (pdc == nullptr || !openings_.ended_early().has_room_for(now, 1)) return;
  ++evicted_;
  retire(now, *pdc);
}

}  // namespace uet::pds
