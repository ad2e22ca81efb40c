/// All PDCs of an endpoint: their identifiers, and how they are found. [PDS 4.1, 5]
#pragma once

#include <optional>

#include "lib/base/rng.h"
#include "lib/base/zeroed_array.h"
#include "pds/pdc.h"
#include "pds/pds_config.h"

namespace uet::pds {

/// What decides which initiator PDC a message may use. [PDS 5.1]
struct PdcKey {
  net::FabricAddress peer;
  Mode mode = Mode::kRud;
  std::uint8_t traffic_class = 0;
  std::uint32_t rod_context = 0;
  bool operator==(const PdcKey&) const = default;
};

class PdcTable {
 public:
  /// `quarantine`: how long a freed identifier rests. Identifiers are handed out in a random first
  /// order, then least recently freed first; 0 never.
  PdcTable(std::uint32_t max_pdc, base::Duration quarantine, std::uint32_t forced_start_psn,
           base::Rng& rng, const base::HashKey& key);

  /// A new PDC with identifier and generation, in no index yet; null when the table is full or
  /// every free identifier is in quarantine.
  Pdc* allocate(Instant now);
  /// Forgets a PDC that is in no index any more. `last` is the highest PSN it used in either
  /// direction.
  void release(Instant now, Pdc& pdc, Psn last);
  /// A Start_PSN for this identifier: random, not 0, at least 2^16 away from the last PSN used on
  /// it. `expected`: what the target accepts without a challenge begins here. [PDS 5.3, 6.5]
  Psn choose_start(const Pdc& pdc, std::optional<Psn> expected);

  Pdc* by_id(std::uint16_t id) const { return by_id_[id]; }
  /// Null when the PDC is gone.
  Pdc* by_ref(PdcRef ref) const {
    Pdc* pdc = by_id_[ref.value & 0xffff];
    return pdc != nullptr && pdc->generation == ref.value >> 16 ? pdc : nullptr;
  }
  bool is_alive(PdcRef ref) const { return by_ref(ref) != nullptr; }
  /// A small number that names the PDC as long as it lives.
  std::uint32_t slot_of(const Pdc& pdc) const { return pool_.index_of(&pdc); }

  /// Changes with the set of initiator PDCs.
  std::uint64_t initiators_version() const { return initiators_version_; }
  void index_initiator(Pdc& pdc) {
    ++initiators_version_;
    initiators_.insert(hash_of(key_of(pdc)), pdc);
    ++initiator_count_;
  }
  void unindex_initiator(Pdc& pdc) {
    ++initiators_version_;
    initiators_.erase(hash_of(key_of(pdc)), pdc);
    --initiator_count_;
  }
  /// Start and proof are part of its place: it leaves the index while they change.
  void index_target(Pdc& pdc) { targets_.insert(hash_of_target(pdc), pdc); }
  void unindex_target(Pdc& pdc) { targets_.erase(hash_of_target(pdc), pdc); }
  /// A guard lets only one opening of an identifier live, and may move its start. Before the first PDC.
  void set_guarded() { is_guarded_ = true; }

  /// The target PDC of this opening. One identifier of a peer may have several: a forged SYN has another start. See
  /// docs/decisions/0103.
  Pdc* find_target(const net::FabricAddress& peer, std::uint16_t spdcid, Psn start);
  /// The target PDC of which the peer has proved that it uses this identifier; behind a guard any.
  Pdc* find_proven_target(const net::FabricAddress& peer, std::uint16_t spdcid);
  /// Calls visit(pdc) for every initiator PDC of this key; visit must not change the table.
  template <typename Visit>
  void for_each_of(const PdcKey& key, Visit&& visit) {
    (void)initiators_.find(hash_of(key), [&](Pdc& pdc) {
      if (pdc.peer == key.peer && pdc.mode == key.mode && pdc.traffic_class == key.traffic_class &&
          pdc.rod_context == key.rod_context)
        visit(pdc);
      return false;
    });
  }
  /// Longest idle first, approximately: touch() moves to the end.
  PdcOrderList& in_order() { return order_; }
  void touch(Pdc& pdc) {
    if (&order_.back() == &pdc) return;
    order_.erase(order_.iterator_to(pdc));
    order_.push_back(pdc);
  }

  std::uint32_t size() const { return pool_.in_use(); }
  std::uint32_t longest_chain() {
    return std::max(initiators_.longest_chain(), targets_.longest_chain());
  }
  std::uint32_t capacity() const { return pool_.capacity(); }
  std::uint32_t target_count() const { return pool_.in_use() - initiator_count_; }
  /// The most PDCs of one role.
  std::uint32_t places_per_role() const { return pool_.capacity() - reserve_; }
  /// Each role leaves some places to the other: endpoints whose tables are full of PDCs that wait to be accepted would wait
  /// for each other for ever. [PDS 5.2]
  bool has_share_left(Role role) const {
    const std::uint32_t own = role == Role::kInitiator ? initiator_count_ : target_count();
    return own < places_per_role();
  }
  /// No PDC of this role can be opened before another one goes.
  bool is_full_for(Role role) const { return pool_.is_full() || !has_share_left(role); }
  /// When the next identifier leaves quarantine, if that is what allocate() waits for.
  Instant next_free_id() const;

 private:
  static PdcKey key_of(const Pdc& pdc) {
    return {pdc.peer, pdc.mode, pdc.traffic_class, pdc.rod_context};
  }
  std::size_t hash_of(const PdcKey& k) const {
    return k.peer.hash(hash_key_, std::uint64_t{k.rod_context} << 32 |
                                      std::uint64_t{k.traffic_class} << 8 |
                                      static_cast<std::uint64_t>(k.mode));
  }
  std::size_t hash_of(const net::FabricAddress& peer, std::uint16_t id) const {
    return peer.hash(hash_key_, std::uint64_t{id} << 32);
  }
  std::size_t hash_of(const net::FabricAddress& peer, std::uint16_t id, Psn start) const {
    return peer.hash(hash_key_, std::uint64_t{1} << 63 | std::uint64_t{id} << 32 | start.value());
  }
  /// Any number of forged openings may have the identifier of an honest one: they must not make its chain long.
  std::size_t hash_of_target(const Pdc& pdc) const {
    return is_alone(pdc) ? hash_of(pdc.peer, pdc.peer_id)
                         : hash_of(pdc.peer, pdc.peer_id, pdc.start);
  }
  bool is_alone(const Pdc& pdc) const { return is_guarded_ || !pdc.is_unproven(); }

  /// The identifier that next_free_id() speaks of.
  std::uint16_t take_id();

  /// What is remembered of an identifier after its PDC is gone.
  struct IdState {
    Instant freed_at;  // where was_used
    Psn last_psn;
    std::uint16_t generation = 0;
    bool was_used = false;
  };
  static constexpr std::uint32_t kIds = 65536;

  base::Duration quarantine_;
  std::uint32_t reserve_;
  std::uint32_t initiator_count_ = 0;
  std::uint64_t initiators_version_ = 1;
  std::uint32_t forced_start_psn_;
  bool is_guarded_ = false;
  base::Rng& rng_;
  const base::HashKey& hash_key_;
  base::FixedPool<Pdc> pool_;
  base::PoolIndex<Pdc, &Pdc::index_next> initiators_;
  base::PoolIndex<Pdc, &Pdc::index_next> targets_;
  PdcOrderList order_;
  base::ZeroedArray<Pdc*> by_id_;
  base::ZeroedArray<IdState> ids_;
  base::ZeroedArray<std::uint16_t> unused_;  // places 1 to unused_count_; see take_id()
  std::uint32_t unused_count_ = kIds - 1;
  base::ZeroedArray<std::uint16_t> freed_;  // ring, least recently freed first
  std::uint32_t freed_head_ = 0;
  std::uint32_t freed_count_ = 0;
};

}  // namespace uet::pds
