/// Target PDCs closed a moment ago: a late copy of one of their SYN packets must not open them
/// again. [PDS 6.6]
#pragma once

#include <memory>

#include "lib/base/fixed_pool.h"
#include "lib/base/serial.h"
#include "lib/base/units.h"
#include "lib/net/fabric_address.h"

namespace uet::pds {

/// A bounded queue ordered by expiry. Who opens a target PDC makes sure that there is a place for its tombstone; should one be
/// missing nevertheless, the oldest is forgotten early.
class Tombstones {
 public:
  Tombstones(std::uint32_t capacity, base::Duration lifetime, const base::HashKey& key);

  void add(base::Instant now, const net::FabricAddress& source, std::uint16_t spdcid,
           base::Psn start);
  /// True when a PDC of this source, identifier and Start_PSN was closed less than the lifetime
  /// ago.
  bool contains(base::Instant now, const net::FabricAddress& source, std::uint16_t spdcid,
                base::Psn start);
  /// `more` PDCs may close now, and all are remembered for as long as they must be. Without capacity nothing ever is.
  bool has_room_for(base::Instant now, std::uint32_t more) {
    if (pool_.capacity() - pool_.in_use() < more) expire(now);
    return pool_.capacity() == 0 || pool_.capacity() - pool_.in_use() >= more;
  }
  std::uint32_t size() const { return pool_.in_use(); }
  std::uint32_t longest_chain() { return index_.longest_chain(); }
  void expire(base::Instant now);

 private:
  struct Stone {
    net::FabricAddress source;
    std::uint16_t spdcid = 0;
    base::Psn start;
    base::Instant expires;
    std::uint32_t hash_next = 0;
    std::uint32_t age_next = base::kNoIndex;
  };
  std::size_t hash(const net::FabricAddress& source, std::uint16_t spdcid, base::Psn start) const {
    return source.hash(key_, std::uint64_t{spdcid} << 32 | start.value());
  }
  void drop_oldest();

  const base::HashKey& key_;
  base::Duration lifetime_;
  base::FixedPool<Stone> pool_;
  base::PoolIndex<Stone, &Stone::hash_next> index_;
  std::uint32_t oldest_ = base::kNoIndex;
  std::uint32_t newest_ = base::kNoIndex;
};

}  // namespace uet::pds
