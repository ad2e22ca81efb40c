/// What is remembered of each sender whose packets verified: derived keys and counters. [TSS 6.5]
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "lib/base/hash_key.h"
#include "lib/base/zeroed_array.h"
#include "lib/net/fabric_address.h"
#include "tss/cipher.h"
#include "tss/kdf.h"
#include "tss/replay.h"

namespace uet::tss {

/// A derived key ready for use. Which slot filling it was derived from, `generation` says.
struct ReadyKey {
  std::uint64_t generation = 0;  ///< 0: none
  Context context;
  Mask mask;
  std::unique_ptr<Cipher> cipher;
  bool is_for(std::uint64_t g, const Context& c) const { return generation == g && context == c; }
};

struct Source {
  net::FabricAddress address;
  std::uint32_t ssi = 0;              ///< 0 in a domain without SSI
  std::uint64_t members_version = 0;  ///< of the newest list of members that let a packet of it in

  /// Of one AN.
  struct Slot {
    std::uint64_t generation = 0;
    ReplayFilter replay;
    /// Two, since packets of an old and a new period interleave. [TSS 6.5]
    std::array<ReadyKey, 2> keys;
    bool newest = false;
  };
  std::array<Slot, 2> slots;
  ReadyKey tx;  ///< a server's key to this client
};

/// Senders by address and SSI. Entries come only after a packet verified, and stay as long as a key
/// under which they sent is there: to forget one would accept its old packets again. When the table
/// is full, entries of which no key is left make room; when there is none, new senders are refused.
class SourceTable {
 public:
  /// `window_bits` of replay window for each entry and AN. `has_one_ssi_each`: an address has one SSI in each list of members, and
  /// find_member() is asked for.
  /// Members choose the addresses and SSIs that they send from, so places are hashed under `hash_key`.
  SourceTable(std::uint32_t capacity, std::uint32_t window_bits, bool has_one_ssi_each,
              const base::HashKey& hash_key);

  Source* find(const net::FabricAddress& address, std::uint32_t ssi);
  /// The one heard from `address` under that list of members; null when there is none.
  Source* find_member(const net::FabricAddress& address, std::uint64_t members_version);
  /// Null when full. `is_dead` says whether an entry may be forgotten. The sender must not be known.
  template <typename IsDead>
  Source* add(const net::FabricAddress& address, std::uint32_t ssi, IsDead&& is_dead) {
    if (sources_.size() == capacity_ && !forget_one(is_dead)) return nullptr;
    return insert(address, ssi);
  }

  /// The replay window of `source` under `an`; all of it zero after reset_window().
  std::span<std::uint64_t> window(const Source& source, bool an);
  void reset_window(const Source& source, bool an);
  std::size_t size() const { return sources_.size() - free_.size(); }
  /// Places that the longest search for a sender passes.
  std::size_t longest_chain() const;

 private:
  static constexpr std::uint32_t kNone = 0;
  Source* insert(const net::FabricAddress& address, std::uint32_t ssi);
  std::uint32_t place_of(const Source& source) const {
    return static_cast<std::uint32_t>(&source - sources_.data());
  }
  void index(std::uint32_t place);
  void rebuild();
  template <typename IsDead>
  bool forget_one(IsDead&& is_dead) {
    if (!free_.empty()) return true;
    for (std::uint32_t i = 0; i < sources_.size(); ++i)
      if (is_dead(sources_[i])) free_.push_back(i);
    if (free_.empty()) return false;
    rebuild();
    return true;
  }

  std::size_t first_bucket(const net::FabricAddress& address, std::uint32_t ssi) const {
    return address.hash(hash_key_, has_one_ssi_each_ ? 0 : ssi) & (buckets_.size() - 1);
  }

  const base::HashKey& hash_key_;
  std::uint32_t capacity_, words_;
  bool has_one_ssi_each_;
  std::vector<Source> sources_;         ///< reserved at construction: never moves
  std::vector<std::uint32_t> free_;     ///< places of forgotten entries
  std::vector<std::uint32_t> buckets_;  ///< place + 1; open addressing
  base::ZeroedArray<std::uint64_t> windows_;
};

}  // namespace uet::tss
