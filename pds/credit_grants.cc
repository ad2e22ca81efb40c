#include "pds/credit_grants.h"

#include <new>

#include "pds/proof_requests.h"
#include "pds/psn_class.h"

namespace uet::pds {

CreditGrants::CreditGrants(Environment& env, PdcTable& pdcs, Scheduler& scheduler,
                           const cc::CcConfig& cc_config)
    : Part(env),
      cc_config_(cc_config),
      table_(pdcs),
      scheduler_(scheduler),
      sources_(limits_.max_ccc),
      index_(sources_, limits_.max_ccc) {
  if (env.sends_credit_state) ensure_pacer();
}

/// False: there is no memory for one. Credit is asked for again.
bool CreditGrants::ensure_pacer() {
  if (pacer_) return true;
  try {
    pacer_.emplace(cc_config_, limits_.max_ccc, env_.rng);
  } catch (const std::bad_alloc&) {
    return false;
  }
  return true;
}

// A data packet says how much its CCC wants to send. Trimmed ones too: their copies need a chance.
void CreditGrants::note_demand(Instant now, const Arrival& in, std::uint8_t ccc_id,
                               std::uint32_t target) {
  if (pacer_) pacer_->on_data_seen(in.meta.ecn, in.trimmed, in.last_hop);
  // Only peers that have a PDC here may occupy the pacer.
  Pdc* pdc =
      in.syn ? table_.find_target(in.source, in.spdcid, in.start()) : table_.by_id(in.dpdcid);
  if (pdc == nullptr || pdc->peer != in.source || pdc->peer_id != in.spdcid) return;
  // No checksum covers a trimmed header: only one that fits the window is believed. [PDS 13.6]
  if (in.trimmed && classify(*pdc, in.psn) != PsnClass::kNew) return;
  if (!ensure_pacer()) return;
  const CreditSource* source = join(*pdc, ccc_id);
  // What an unproven PDC says of a source that has proved itself on another one may be forged.
  if (source == nullptr || (pdc->is_unproven() && source->carrier != pdc->ref())) return;
  if (in.trimmed) pacer_->on_trimmed(now, source->key);
  pacer_->on_demand(now, source->key, target);
}

void CreditGrants::on_request(Instant now, Pdc& pdc, std::uint32_t payload) {
  if (!ensure_pacer()) return;
  const CreditSource* source = join(pdc, static_cast<std::uint8_t>(payload >> 24));
  if (source != nullptr) pacer_->on_request(now, source->key, payload & 0xff'ffff);
}

namespace {
std::size_t hash_of(const base::HashKey& key, const net::FabricAddress& peer, std::uint8_t ccc_id) {
  return peer.hash(key, ccc_id);
}
}  // namespace

// The source that this PDC belongs to: a CCC of its peer, told apart by the whole address. Null when the table is full.
CreditGrants::CreditSource* CreditGrants::join(Pdc& pdc, std::uint8_t ccc_id) {
  if (pdc.rx.credit_source != base::kNoIndex) {
    CreditSource& own = sources_.at(pdc.rx.credit_source);
    if (own.key.ccc_id == ccc_id) {
      take_carrier(own, pdc);
      return &own;
    }
    leave(pdc);  // the peer moved this PDC to another CCC
  }
  const std::size_t hash = hash_of(env_.hash_key, pdc.peer, ccc_id);
  CreditSource* source = index_.find(
      hash, [&](const CreditSource& s) { return s.key.ccc_id == ccc_id && s.peer == pdc.peer; });
  if (source == nullptr) {
    source = sources_.acquire();
    if (source == nullptr) return nullptr;
    source->peer = pdc.peer;
    source->key = {sources_.index_of(source), ccc_id};
    index_.insert(hash, *source);
  }
  ++source->pdcs;
  take_carrier(*source, pdc);
  pdc.rx.credit_source = sources_.index_of(source);
  return source;
}

// Grants go where the source was heard last, but never from a PDC that hears us to one that may be forged.
void CreditGrants::take_carrier(CreditSource& source, const Pdc& pdc) {
  const Pdc* before = table_.by_ref(source.carrier);
  if (pdc.is_unproven() && before != nullptr && !before->is_unproven()) return;
  source.carrier = pdc.ref();
}

void CreditGrants::resume(Instant now, Pdc& pdc) {
  if (!pacer_ || pdc.rx.credit_source == base::kNoIndex) return;
  CreditSource& source = sources_.at(pdc.rx.credit_source);
  take_carrier(source, pdc);
  pacer_->resume(now, source.key);
  pdc.rx.credit = pacer_->credit_units(source.key);  // the counter is cumulative
  scheduler_.want_control(pdc, kSendCredit);
}

void CreditGrants::leave(Pdc& pdc) {
  if (pdc.rx.credit_source == base::kNoIndex) return;
  CreditSource& source = sources_.at(pdc.rx.credit_source);
  pdc.rx.credit_source = base::kNoIndex;
  if (--source.pdcs > 0) return;
  pacer_->forget(source.key);
  index_.erase(hash_of(env_.hash_key, source.peer, source.key.ccc_id), source);
  sources_.release(&source);
}

void CreditGrants::run(Instant now) {
  if (!pacer_) return;
  while (const auto grant = pacer_->poll_grant(now)) {
    // A source lives as long as the pacer knows it, and its place is its name.
    const CreditSource& source = sources_.at(static_cast<std::uint32_t>(grant->key.source));
    Pdc* pdc = table_.by_ref(source.carrier);
    if (pdc == nullptr) {  // until it is heard on another one; the counter is cumulative
      pacer_->rest(grant->key);
      continue;
    }
    pdc->rx.credit = grant->credit_units;
    scheduler_.want_control(*pdc, kSendCredit);
    trace_.emit(now, EventId::kCreditGranted, pdc->id, {},
                static_cast<std::uint64_t>(grant->bytes));
    if (!may_tell(*pdc)) pacer_->rest(grant->key);
  }
}

// Grants help only a source that they reach, and an unproven one is sent few packets.
bool CreditGrants::may_tell(const Pdc& pdc) {
  return !pdc.is_unproven() ||
         (!ProofRequests::is_awaited(pdc) && pdc.unasked < ProofRequests::allowance(pdc));
}

std::uint32_t CreditGrants::units_for(const Pdc& pdc) {
  if (!pacer_ || pdc.rx.credit_source == base::kNoIndex) return 0;
  return pacer_->credit_units(sources_.at(pdc.rx.credit_source).key);
}

}  // namespace uet::pds
