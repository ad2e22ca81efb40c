/// The CCCs of an endpoint: which PDCs share one, and who may send next. [PDS 18.2, CC 3.1, 3.7]
#pragma once

#include <array>
#include <boost/intrusive/list.hpp>
#include <optional>

#include "cc/ccc.h"
#include "lib/base/timing_wheel.h"
#include "lib/net/fabric_address.h"
#include "pds/pdc.h"

namespace uet::pds {

/// A CCC and the PDCs it serves.
struct Congestion {
  net::FabricAddress peer;
  std::uint8_t traffic_class = 0;
  std::uint8_t turn = 0;  ///< packets that the first of `ready` has sent in its turn
  /// One of its PDCs may be exempt from credit, or need a timer that makes it so. Without, it need not be looked for.
  bool seeks_exemption = false;
  bool sprayed = true;  ///< shared by all RUD PDCs of this peer and class; a ROD PDC has its own
  std::uint16_t request_header_bytes = 0;  ///< PDS header of its Requests
  std::uint32_t users = 0;
  std::uint32_t key_next = 0;
  std::uint32_t id_next = 0;
  std::optional<cc::Ccc> ccc;
  PdcReadyList ready;                               ///< PDCs that may have something to send
  boost::intrusive::list_member_hook<> ready_hook;  ///< in the scheduler's ring: `ready` is not
                                                    ///< empty and the CCC was not found blocked
  Timer timer{Timer::Kind::kCongestion, this};
  Pdc* carrier = nullptr;  ///< an established PDC that can carry control packets of this CCC
  Instant losing_until;    ///< a packet was lost a moment ago
};

using CongestionRing = boost::intrusive::list<
    Congestion,
    boost::intrusive::member_hook<Congestion, boost::intrusive::list_member_hook<>,
                                  &Congestion::ready_hook>,
    boost::intrusive::constant_time_size<false>>;

/// Zero without a CCC or a sample.
inline Duration smoothed_rtt(const Pdc& pdc) {
  const Congestion* congestion = pdc.tx.cc.if_any();
  return congestion != nullptr ? congestion->ccc->smoothed_rtt() : Duration{};
}
/// Base RTT where the PDC has a CCC, else NACK_Retx_Time.
inline Duration round_trip(const Pdc& pdc, const PdsConfig& config) {
  const Congestion* congestion = pdc.tx.cc.if_any();
  return congestion != nullptr ? congestion->ccc->base_rtt() : config.nack_retx_time;
}

class CongestionTable {
 public:
  /// `upper` knows which peers are on this host.
  CongestionTable(const cc::CcConfig& config, std::uint32_t capacity, base::Rng& rng,
                  base::Trace& trace, Upper& upper, const base::HashKey& key)
      : config_(derived(config)),
        host_config_(for_host(config)),
        rng_(rng),
        trace_(trace),
        upper_(upper),
        key_(key),
        pool_(capacity),
        index_(pool_, capacity),
        ids_(pool_, capacity) {}
  ~CongestionTable();

  /// One more user of the CCC for this peer; null when all are in use, or when the system has no
  /// memory for its path table. `sprayed` false: always a new one.
  Congestion* attach(Instant now, const net::FabricAddress& peer, std::uint8_t traffic_class,
                     bool sprayed);
  /// True when attach() would succeed after `reserved` others have.
  bool can_attach(const net::FabricAddress& peer, std::uint8_t traffic_class, bool sprayed,
                  std::uint32_t reserved);
  /// One user less; frees it with the last one. The caller has taken it off every list and timer.
  void detach(Congestion& congestion);

  std::uint32_t size() const { return pool_.in_use(); }
  const cc::CcConfig& config() const { return config_; }
  /// In no particular order. Walks the whole index: for rare events and for tools.
  template <typename Visit>
  void for_each(Visit&& visit) {
    if (size() > 0) index_.for_each(visit);
  }

 private:
  std::size_t hash(const net::FabricAddress& peer, std::uint8_t traffic_class) const {
    return peer.hash(key_, traffic_class);
  }
  Congestion* find(const net::FabricAddress& peer, std::uint8_t traffic_class);
  std::uint8_t unused_id(const net::FabricAddress& peer);
  std::size_t id_hash(const Congestion& c) const { return c.peer.hash(key_, c.ccc->id()); }

  /// Base RTTs of freed CCCs, so that the next one to the same peer need not probe. [CC 3.1]
  struct CachedRtt {
    net::FabricAddress peer;
    base::Duration base_rtt;
  };

  static cc::CcConfig for_host(cc::CcConfig config);

  cc::CcConfig config_;
  cc::CcConfig host_config_;
  base::Rng& rng_;
  base::Trace& trace_;
  Upper& upper_;
  const base::HashKey& key_;
  cc::ContendingContexts contending_;  ///< outlives the CCCs in the pool
  base::FixedPool<Congestion> pool_;
  base::PoolIndex<Congestion, &Congestion::key_next> index_;
  base::PoolIndex<Congestion, &Congestion::id_next> ids_;  ///< by peer and ccc_id
  std::array<CachedRtt, 256> rtt_cache_{};
  std::uint8_t next_id_ = 0;
};

}  // namespace uet::pds
