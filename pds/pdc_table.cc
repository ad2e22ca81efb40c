#include "pds/pdc_table.h"

#include <cstdlib>
#include <limits>

namespace uet::pds {

PdcTable::PdcTable(std::uint32_t max_pdc, base::Duration quarantine, std::uint32_t forced_start_psn,
                   base::Rng& rng)
    : quarantine_(quarantine),
      reserve_(reserve_of(max_pdc)),
      forced_start_psn_(forced_start_psn),
      rng_(rng),
      pool_(max_pdc),
      initiators_(pool_, max_pdc),
      targets_(pool_, max_pdc),
      by_id_(new Pdc*[kIds]()),
      ids_(new IdState[kIds]),
      free_ids_(new std::uint16_t[kIds]) {
  for (std::uint32_t id = 1; id < kIds; ++id) {
    // Inside-out shuffle: identifiers of a new endpoint cannot be guessed from their number.
    const std::uint32_t j = rng_.below(free_count_ + 1);
    free_ids_[free_count_] = free_ids_[j];
    free_ids_[j] = static_cast<std::uint16_t>(id);
    ++free_count_;
  }
}

Instant PdcTable::next_free_id() const {
  if (free_count_ == 0) return Instant::never();
  const IdState& oldest = ids_[free_ids_[free_head_]];
  return oldest.was_used ? oldest.freed_at + quarantine_ : Instant{};
}

Pdc* PdcTable::allocate(Instant now) {
  if (pool_.is_full() || next_free_id() > now) return nullptr;
  const std::uint16_t id = free_ids_[free_head_];
  free_head_ = (free_head_ + 1) % kIds;
  --free_count_;
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
  free_ids_[(free_head_ + free_count_) % kIds] = pdc.id;
  ++free_count_;
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

Pdc* PdcTable::find_target(const net::FabricAddress& peer, std::uint16_t spdcid) {
  return targets_.find(hash_of(peer, spdcid),
                       [&](const Pdc& pdc) { return pdc.peer_id == spdcid && pdc.peer == peer; });
}

}  // namespace uet::pds
