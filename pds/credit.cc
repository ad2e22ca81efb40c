// Credit in both roles: demand that arrives is handed to the pacer, grants leave on a PDC of the
// source. [PDS 15, CC 5]

#include "pds/engine.h"

namespace uet::pds {

/// A data packet says how much its CCC wants to send. Trimmed ones too: their copies need a chance.
void Engine::note_demand(Instant now, const Arrival& in, std::uint8_t ccc_id,
                         std::uint32_t target) {
  pacer_->on_data_seen(in.meta.ecn, in.trimmed, in.last_hop);
  // Only peers that have a PDC here may occupy the pacer.
  Pdc* pdc =
      in.syn ? table_.find_target(in.source, in.spdcid, in.start()) : table_.by_id(in.dpdcid);
  if (pdc == nullptr || pdc->peer != in.source || pdc->peer_id != in.spdcid) return;
  // Nobody has checked a trimmed header: only one that fits the window is believed. [PDS 13.6]
  if (in.trimmed && classify(*pdc, in.psn) != PsnClass::kNew) return;
  const CreditSource* source = join_credit(*pdc, ccc_id);
  // What an unproven PDC says of a source that has proved itself on another one may be forged.
  if (source == nullptr || (pdc->is_unproven() && source->voice != pdc->ref())) return;
  if (in.trimmed) pacer_->on_trimmed(now, source->key);
  pacer_->on_demand(now, source->key, target);
}

void Engine::on_credit_request(Instant now, Pdc& pdc, std::uint32_t payload) {
  if (!pacer_) return;
  const CreditSource* source = join_credit(pdc, static_cast<std::uint8_t>(payload >> 24));
  if (source != nullptr) pacer_->on_request(now, source->key, payload & 0xff'ffff);
}

namespace {
std::size_t hash_of(const net::FabricAddress& peer, std::uint8_t ccc_id) {
  return mix(peer.hash() ^ ccc_id);
}
}  // namespace

/// The source that this PDC belongs to: a CCC of its peer, told apart by the whole address. Null when the table is full.
Engine::CreditSource* Engine::join_credit(Pdc& pdc, std::uint8_t ccc_id) {
  if (pdc.rx.credit_source != kNoIndex) {
    CreditSource& own = credit_sources_.at(pdc.rx.credit_source);
    if (own.key.ccc_id == ccc_id) {
      take_voice(own, pdc);
      return &own;
    }
    leave_credit(pdc);  // the peer moved this PDC to another CCC
  }
  const std::size_t hash = hash_of(pdc.peer, ccc_id);
  CreditSource* source = credit_index_.find(
      hash, [&](const CreditSource& s) { return s.key.ccc_id == ccc_id && s.peer == pdc.peer; });
  if (source == nullptr) {
    source = credit_sources_.acquire();
    if (source == nullptr) return nullptr;
    source->peer = pdc.peer;
    source->key = {credit_sources_.index_of(source), ccc_id};
    credit_index_.insert(hash, *source);
  }
  ++source->pdcs;
  take_voice(*source, pdc);
  pdc.rx.credit_source = credit_sources_.index_of(source);
  return source;
}

/// Grants go where the source was heard last, but never from a PDC that hears us to one that may be forged.
void Engine::take_voice(CreditSource& source, const Pdc& pdc) {
  const Pdc* before = table_.by_ref(source.voice);
  if (pdc.is_unproven() && before != nullptr && !before->is_unproven()) return;
  source.voice = pdc.ref();
}

/// The peer has proved itself: it gets what was granted meanwhile, and its turns.
void Engine::resume_credit(Instant now, Pdc& pdc) {
  if (!pacer_ || pdc.rx.credit_source == kNoIndex) return;
  CreditSource& source = credit_sources_.at(pdc.rx.credit_source);
  take_voice(source, pdc);
  pacer_->resume(now, source.key);
  pdc.rx.credit = pacer_->credit_units(source.key);  // the counter is cumulative
  want_control(pdc, kSendCredit);
}

void Engine::leave_credit(Pdc& pdc) {
  if (pdc.rx.credit_source == kNoIndex) return;
  CreditSource& source = credit_sources_.at(pdc.rx.credit_source);
  pdc.rx.credit_source = kNoIndex;
  if (--source.pdcs > 0) return;
  pacer_->forget(source.key);
  credit_index_.erase(hash_of(source.peer, source.key.ccc_id), source);
  credit_sources_.release(&source);
}

void Engine::run_pacer(Instant now) {
  if (!pacer_) return;
  while (const auto grant = pacer_->poll_grant(now)) {
    // A source lives as long as the pacer knows it, and its place is its name.
    const CreditSource& source = credit_sources_.at(static_cast<std::uint32_t>(grant->key.source));
    Pdc* pdc = table_.by_ref(source.voice);
    if (pdc == nullptr) {  // until it is heard on another one; the counter is cumulative
      pacer_->rest(grant->key);
      continue;
    }
    pdc->rx.credit = grant->credit_units;
    want_control(*pdc, kSendCredit);
    trace_.emit(now, EventId::kCreditGranted, pdc->id, {},
                static_cast<std::uint64_t>(grant->bytes));
    if (!may_tell_credit(*pdc)) pacer_->rest(grant->key);
  }
}

/// Turns of the pacer are worth something only to a source that hears of them; one that has proved nothing hears of few.
bool Engine::may_tell_credit(const Pdc& pdc) {
  return !pdc.is_unproven() ||
         (!is_waiting_for_proof(pdc) && pdc.unasked < UnprovenPdcs::unasked_for(pdc.rx.rcvd_bytes));
}

std::uint32_t Engine::credit_for(const Pdc& pdc) {
  if (!pacer_ || pdc.rx.credit_source == kNoIndex) return 0;
  return pacer_->credit_units(credit_sources_.at(pdc.rx.credit_source).key);
}

/// A grant for us as a source.
void Engine::on_credit(Instant now, Pdc& pdc, std::uint32_t credit_units) {
  Congestion* congestion = pdc.tx.cc.if_any();
  if (congestion == nullptr) return trace_.drop(now, DropReason::kRoleMismatch, 0, pdc.id);
  congestion->ccc->on_credit(now, credit_units);
  after_congestion_event(now, *congestion);
}

}  // namespace uet::pds
