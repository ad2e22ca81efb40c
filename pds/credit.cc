// Credit in both roles: demand that arrives is handed to the pacer, grants leave on a PDC of the
// source. [PDS 15, CC 5]

#include "pds/engine.h"

#include <cstring>

namespace uet::pds {

namespace {

cc::SourceKey key_for(const net::FabricAddress& source, std::uint8_t ccc_id) {
  std::uint64_t hi = 0, lo = 0;
  std::memcpy(&hi, source.bytes().data(), 8);
  std::memcpy(&lo, source.bytes().data() + 8, 8);
  return {(hi * 0x9e37'79b9'7f4a'7c15ULL) ^ lo, ccc_id};
}

}  // namespace

/// A data packet says how much its CCC wants to send. Trimmed ones too: their copies need a chance.
void Engine::note_demand(Instant now, const Arrival& in, std::uint8_t ccc_id,
                         std::uint32_t target) {
  pacer_->on_data_seen(in.meta.ecn, in.trimmed, in.last_hop);
  // Only peers that have a PDC here may occupy the pacer.
  Pdc* pdc = in.syn ? table_.find_target(in.source, in.spdcid) : table_.by_id(in.dpdcid);
  if (pdc == nullptr || pdc->peer != in.source || pdc->peer_id != in.spdcid) return;
  const cc::SourceKey key = key_for(in.source, ccc_id);
  join_credit(*pdc, key);
  if (in.trimmed) pacer_->on_trimmed(now, key);
  pacer_->on_demand(now, key, target);
}

void Engine::on_credit_request(Instant now, Pdc& pdc, std::uint32_t payload) {
  if (!pacer_) return;
  const cc::SourceKey key = key_for(pdc.peer, static_cast<std::uint8_t>(payload >> 24));
  join_credit(pdc, key);
  pacer_->on_request(now, key, payload & 0xff'ffff);
}

void Engine::join_credit(Pdc& pdc, cc::SourceKey key) {
  CreditSource* source = nullptr;
  const auto matches = [&](const CreditSource& s) { return s.key == key; };
  if (pdc.rx.credit_source != kNoIndex) {
    source = &credit_sources_.at(pdc.rx.credit_source);
    if (source->key == key) {
      source->voice = pdc.ref();
      return;
    }
    leave_credit(pdc);  // the peer moved this PDC to another CCC
  }
  const std::size_t hash = mix(key.source ^ key.ccc_id);
  source = credit_index_.find(hash, matches);
  if (source == nullptr) {
    source = credit_sources_.acquire();
    if (source == nullptr) return;
    source->key = key;
    credit_index_.insert(hash, *source);
  }
  ++source->pdcs;
  source->voice = pdc.ref();
  pdc.rx.credit_source = credit_sources_.index_of(source);
}

void Engine::leave_credit(Pdc& pdc) {
  if (pdc.rx.credit_source == kNoIndex) return;
  CreditSource& source = credit_sources_.at(pdc.rx.credit_source);
  pdc.rx.credit_source = kNoIndex;
  if (--source.pdcs > 0) return;
  pacer_->forget(source.key);
  credit_index_.erase(mix(source.key.source ^ source.key.ccc_id), source);
  credit_sources_.release(&source);
}

void Engine::run_pacer(Instant now) {
  if (!pacer_) return;
  while (const auto grant = pacer_->poll_grant(now)) {
    CreditSource* source =
        credit_index_.find(mix(grant->key.source ^ grant->key.ccc_id),
                           [&](const CreditSource& s) { return s.key == grant->key; });
    if (source == nullptr) continue;
    Pdc* pdc = table_.by_ref(source->voice);
    if (pdc == nullptr) continue;  // the counter is cumulative: the next grant carries it
    pdc->rx.credit = grant->credit_units;
    want_control(*pdc, kSendCredit);
    trace_.emit(now, EventId::kCreditGranted, pdc->id, {},
                static_cast<std::uint64_t>(grant->bytes));
  }
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
