/// RCCC, destination side: shares out the link of one FEP among all sources that want to send to
/// it. [CC 5.4]
///
/// Knows sources only by a handle and the ccc_id they carry; not how credit travels. Poll style:
/// its owner asks poll_grant() whenever next_deadline() has come, and sends what it returns.
/// Bounded: when the table is full, the source that has rested longest is forgotten; when all are
/// waiting, a new one is refused (and asks again by Credit Request).
#pragma once

#include <array>
#include <boost/intrusive/list.hpp>
#include <cstdint>
#include <optional>

#include "cc/cc_config.h"
#include "cc/fabric_factor.h"
#include "lib/base/fixed_pool.h"
#include "lib/base/hash_key.h"
#include "lib/base/units.h"

namespace uet::cc {

using base::ByteCount;
using base::Duration;
using base::Instant;

/// Names a CCC of some source: the handle is the FEP's own for that source.
struct SourceKey {
  std::uint64_t source = 0;
  std::uint8_t ccc_id = 0;
  bool operator==(const SourceKey&) const = default;
};

class CreditPacer {
 public:
  struct Grant {
    SourceKey key;
    std::uint32_t credit_units = 0;  ///< cumulative, 24 bits, as it goes on the wire
    ByteCount bytes = 0;             ///< new with this grant; 0 only repeats the counter
  };

  /// `config` must be complete and outlive the pacer, as `rng` must; its link_rate is what is shared
  /// out. `capacity` sources at most.
  CreditPacer(const CcConfig& config, std::size_t capacity, base::Rng& rng);

  /// A data packet carries `target`. False when the table has no room for a new source.
  bool on_demand(Instant now, SourceKey key, std::uint32_t target);
  /// A packet of this source was trimmed: its retransmission needs a chance even without demand.
  bool on_trimmed(Instant now, SourceKey key);
  /// A Credit Request: the source is blocked, so it is answered even when nothing new is due (a
  /// credit may be lost).
  bool on_request(Instant now, SourceKey key, std::uint32_t target);
  /// Its grants cannot reach it now: the source gets no turns until it is heard again or resume().
  void rest(SourceKey key);
  void resume(Instant now, SourceKey key);
  /// No PDC of this source CCC is left.
  void forget(SourceKey key);

  /// The next grant that is due, each with its own turn of the link.
  std::optional<Grant> poll_grant(Instant now);
  Instant next_deadline() const;
  /// The counter as it stands, for an ACK of credit type that leaves anyway.
  std::uint32_t credit_units(SourceKey key) const;

  /// What every data packet tells of the fabric, whatever its source; nothing happens unless
  /// config.fabric_factor is set. [CC 5.5]
  void on_data_seen(bool ecn, bool trimmed, bool last_hop);

  std::size_t sources() const { return entries_.in_use(); }
  std::size_t capacity() const { return entries_.capacity(); }
  std::size_t wanting() const { return lists_[kWanting].size(); }
  std::uint64_t refused() const { return refused_; }
  /// What part of the link's share it gives while the fabric is congested: in (0, 1].
  double fabric_factor() const { return fabric_factor_; }

 private:
  enum ListId : std::uint8_t { kResting, kWanting, kSatisfied, kListCount };
  struct Entry {
    SourceKey key;
    std::uint32_t target = 0;
    std::uint32_t given = 0;
    std::uint32_t phase = 0;  ///< units that its first grant lacks under incast
    std::uint32_t index_next = 0;
    ListId list = kResting;
    boost::intrusive::list_member_hook<> hook;
  };
  using List = boost::intrusive::list<
      Entry,
      boost::intrusive::member_hook<Entry, boost::intrusive::list_member_hook<>, &Entry::hook>>;

  Entry* find(SourceKey key) const;
  Entry* find_or_add(SourceKey key, std::optional<std::uint32_t> target);
  void raise_target(Entry& e, std::uint32_t target) const;
  void want(Instant now, Entry& e);
  void wake(Instant now);
  void move_to(Entry& e, ListId list);
  void drop(Entry& e);
  static std::size_t hash(SourceKey key) { return base::mix(key.source * 257 + key.ccc_id + 1); }
  void update_fabric_factor(Instant now);
  Grant serve_wanting();
  Grant serve_satisfied();
  std::uint32_t next_phase();
  Duration turn_for(ByteCount bytes) const;
  bool may_advance(const Entry& e) const;

  const CcConfig& config_;
  std::uint32_t grant_units_;
  std::uint32_t advance_units_;  ///< of a grant in advance
  std::uint32_t demand_units_max_;
  base::FixedPool<Entry> entries_;
  base::PoolIndex<Entry, &Entry::index_next> index_;
  std::array<List, kListCount> lists_{};
  double fabric_factor_ = 1.0;
  std::optional<FabricFactor> fabric_;
  std::uint64_t refused_ = 0;
  std::uint32_t phase_ = 0;  ///< of the next new source, in 2^-32 of a packet
  Instant next_turn_;
};

}  // namespace uet::cc
