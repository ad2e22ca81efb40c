/// What each peer address occupies, over all its PDCs, and how much of the store of answers it may. No peer that takes and never
/// gives back can keep others out; see docs/decisions/0101.
#pragma once

#include <algorithm>
#include <cstdint>

#include "lib/base/fixed_pool.h"
#include "lib/net/fabric_address.h"
#include "pds/pdc_state.h"

namespace uet::pds {

class PeerShares {
 public:
  struct Use {
    net::FabricAddress peer;
    std::uint32_t pdcs = 0;
    std::uint32_t targets = 0;  ///< of those, opened by the peer
    std::uint32_t answers = 0;  ///< pending and stored
    std::uint32_t held = 0;     ///< packets behind gaps
    std::uint32_t records = 0;  ///< blocks of them, beyond the first of each PDC; see TxBlockPool
    std::uint32_t resource =
        0;  ///< the fullest of SES that the peer fills; 0: none that would have to be watched
    std::uint32_t index_next = 0;
  };

  /// At most one peer for each PDC.
  PeerShares(std::uint32_t max_pdc, const base::HashKey& key)
      : key_(key), pool_(max_pdc), index_(pool_, max_pdc) {}

  /// One more PDC with this peer, of which we are that end; the number names its use until leave().
  std::uint32_t join(const net::FabricAddress& peer, Role role) {
    Use* use = find(peer);
    if (use == nullptr) {
      use = pool_.acquire();
      UET_CHECK(use != nullptr);
      use->peer = peer;
      index_.insert(hash(peer), *use);
    }
    ++use->pdcs;
    use->targets += role == Role::kTarget ? 1 : 0;
    return pool_.index_of(use);
  }
  void leave(std::uint32_t place, Role role) {
    Use& use = pool_.at(place);
    use.targets -= role == Role::kTarget ? 1 : 0;
    if (--use.pdcs > 0) return;
    UET_DCHECK(use.answers == 0 && use.held == 0 && use.records == 0);
    index_.erase(hash(use.peer), use);
    pool_.release(&use);
  }
  Use& at(std::uint32_t place) { return pool_.at(place); }
  Use* find(const net::FabricAddress& peer) {
    return index_.find(hash(peer), [&](const Use& u) { return u.peer == peer; });
  }
  std::uint32_t size() const { return pool_.in_use(); }
  std::uint32_t longest_chain() { return index_.longest_chain(); }

 private:
  std::size_t hash(const net::FabricAddress& peer) const { return peer.hash(key_); }

  const base::HashKey& key_;

  base::FixedPool<Use> pool_;
  base::PoolIndex<Use, &Use::index_next> index_;
};

/// Whether one more answer may be kept.
struct AnswerShare {
  std::uint32_t capacity = 0;
  std::uint32_t kept = 0;         ///< by all
  std::uint32_t of_unproven = 0;  ///< by all unproven peers together
  std::uint32_t of_peer = 0;
  std::uint32_t of_pdc = 0;

  static constexpr std::uint32_t kUnprovenPdc = 16;
  static constexpr std::uint32_t kLeast = 8;  ///< as long as anything is free

  constexpr std::uint32_t free() const { return capacity > kept ? capacity - kept : 0; }
  constexpr std::uint32_t unproven_share() const { return std::max(capacity / 4, kLeast); }
  constexpr std::uint32_t pdc_share() const { return std::max(capacity / 4, kLeast); }
  /// A peer may keep as much as is free above a quarter of the store, and a few answers of that quarter. So one that never clears
  /// ends with three eighths, and many such one after the other leave a few places each for 128 peers.
  constexpr bool allows_proven() const {
    const std::uint32_t above = free() > capacity / 4 ? free() - capacity / 4 : 0;
    return free() > 0 && of_peer < std::max(above, kLeast) && of_pdc < pdc_share();
  }
  constexpr bool allows_unproven() const {
    return of_unproven < unproven_share() && of_pdc < kUnprovenPdc && free() > 0;
  }
  constexpr bool is_short() const { return free() < capacity / 4; }
};

}  // namespace uet::pds
