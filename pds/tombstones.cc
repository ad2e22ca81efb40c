#include "pds/tombstones.h"

namespace uet::pds {

Tombstones::Tombstones(std::uint32_t capacity, base::Duration lifetime, const base::HashKey& key)
    : key_(key), lifetime_(lifetime), pool_(capacity), index_(pool_, capacity) {}

void Tombstones::drop_oldest() {
  Stone& stone = pool_.at(oldest_);
  oldest_ = stone.age_next;
  if (oldest_ == base::kNoIndex) newest_ = base::kNoIndex;
  index_.erase(hash(stone.source, stone.spdcid, stone.start), stone);
  pool_.release(&stone);
}

void Tombstones::expire(base::Instant now) {
  while (oldest_ != base::kNoIndex && pool_.at(oldest_).expires <= now) drop_oldest();
}

void Tombstones::add(base::Instant now, const net::FabricAddress& source, std::uint16_t spdcid,
                     base::Psn start) {
  expire(now);
  if (pool_.capacity() == 0) return;
  if (pool_.is_full()) drop_oldest();
  Stone& stone = *pool_.acquire();
  stone.source = source;
  stone.spdcid = spdcid;
  stone.start = start;
  stone.expires = now + lifetime_;
  index_.insert(hash(source, spdcid, start), stone);
  const std::uint32_t index = pool_.index_of(&stone);
  (newest_ == base::kNoIndex ? oldest_ : pool_.at(newest_).age_next) = index;
  newest_ = index;
}

bool Tombstones::contains(base::Instant now, const net::FabricAddress& source, std::uint16_t spdcid,
                          base::Psn start) {
  expire(now);
  return index_.find(hash(source, spdcid, start), [&](const Stone& s) {
    return s.spdcid == spdcid && s.start == start && s.source == source;
  }) != nullptr;
}

}  // namespace uet::pds
