#include "pds/pdc_table.h"

#include <cstdlib>

namespace uet::pds {

PdcTable::PdcTable(std::uint32_t max_pdc, base::Duration quarantine, std::uint32_t forced_start_psn,
                   base::Rng& rng, const base::HashKey& key)
    : quarantine_(quarantine),
      reserve_(reserve_of(max_pdc)),
      forced_start_psn_(forced_start_psn),
      rng_(rng),
      hash_key_(key),
      pool_(max_pdc),
      initiators_(pool_, max_pdc),
      targets_(pool_, max_pdc),
      by_id_(kIds),
      ids_(kIds),
      unused_(kIds),
      freed_(kIds) {}

Instant PdcTable::next_free_id() const {
  if (unused_count_ > 0) return Instant{};
  return freed_count_ > 0 ? ids_[freed_[freed_head_]].freed_at + quarantine_ : Instant::never();
}

std::uint16_t PdcTable::take_id() {
  if (unused_count_ > 0) {
    // One step of a shuffle: identifiers of a new endpoint cannot be guessed from their number. The
    // identifier at place i is i, unless one from the end was moved there.
    const auto id_at = [&](std::uint32_t place) {
      return unused_[place] != 0 ? unused_[place] : static_cast<std::uint16_t>(place);
    };
    const std::uint32_t place = 1 + rng_.below(unused_count_);
    const std::uint16_t id = id_at(place);
    unused_[place] = id_at(unused_count_--);
    return id;
  }
  const std::uint16_t id = freed_[freed_head_];
  freed_head_ = (freed_head_ + 1) % kIds;
  --freed_count_;
  return id;
}

Pdc* PdcTable::allocate(Instant now) {
  if (pool_.is_full() || next_free_id() > now) return nullptr;
  const std::uint16_t id = take_id();
  Pdc* pdc = pool_.acquire();
  IdState& state = ids_[id];
  // Generation 0 with an identifier is a valid name; the identifier alone keeps the reference from
  // being null.
  pdc->id = id;
  pdc->generation = ++state.generation;
  by_id_[id] = pdc;
  order_.push_back(*pdc);
  return pdc;
}

void PdcTable::release(Instant now, Pdc& pdc, Psn last) {
  IdState& state = ids_[pdc.id];
  state.freed_at = now;
  state.last_psn = last;
  state.was_used = true;
  by_id_[pdc.id] = nullptr;
  freed_[(freed_head_ + freed_count_) % kIds] = pdc.id;
  ++freed_count_;
  order_.erase(order_.iterator_to(pdc));
  pool_.release(&pdc);
}

Psn PdcTable::choose_start(const Pdc& pdc, std::optional<Psn> expected) {
  constexpr std::int32_t kDistance = 1 << 16;
  const IdState& state = ids_[pdc.id];
  if (expected) {
    const bool is_near =
        state.was_used && std::abs(expected->distance_from(state.last_psn)) < kDistance;
    return is_near ? state.last_psn + kDistance : *expected;
  }
  if (forced_start_psn_ != 0) return Psn(forced_start_psn_);
  for (;;) {  // one draw in 32768 fails
    const Psn start(rng_.next_u32());
    if (start.value() == 0) continue;
    if (!state.was_used) return start;
    const std::int32_t d = start.distance_from(state.last_psn);
    if (d >= kDistance || d <= -kDistance) return start;
  }
}

Pdc* PdcTable::find_target(const net::FabricAddress& peer, std::uint16_t spdcid, Psn start) {
  const auto is_it = [&](const Pdc& pdc) {
    return pdc.start == start && pdc.peer_id == spdcid && pdc.peer == peer;
  };
  Pdc* const pdc = targets_.find(hash_of(peer, spdcid), is_it);
  return pdc != nullptr ? pdc : targets_.find(hash_of(peer, spdcid, start), is_it);
}

Pdc* PdcTable::find_proven_target(const net::FabricAddress& peer, std::uint16_t spdcid) {
  return targets_.find(hash_of(peer, spdcid), [&](const Pdc& pdc) {
    return is_alone(pdc) && pdc.peer_id == spdcid && pdc.peer == peer;
  });
}

}  // namespace uet::pds
