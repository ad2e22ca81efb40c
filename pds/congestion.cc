#include "pds/congestion.h"

#include "lib/wire/pds_headers.h"

namespace uet::pds {

CongestionTable::~CongestionTable() {
  UET_DCHECK(pool_.in_use() == 0);
}

cc::CcConfig CongestionTable::for_host(cc::CcConfig config) {
  if (config.host_max_window == 0) return config;
  config.max_window = config.host_max_window;
  config.config_base_rtt = config.host_base_rtt;
  return derived(config);
}

Congestion* CongestionTable::find(const net::FabricAddress& peer, std::uint8_t traffic_class) {
  return index_.find(hash(peer, traffic_class), [&](const Congestion& c) {
    return c.sprayed && c.traffic_class == traffic_class && c.peer == peer;
  });
}

bool CongestionTable::can_attach(const net::FabricAddress& peer, std::uint8_t traffic_class,
                                 bool sprayed, std::uint32_t reserved) {
  if (sprayed && find(peer, traffic_class) != nullptr) return true;
  return pool_.in_use() + reserved < pool_.capacity();
}

Congestion* CongestionTable::attach(Instant now, const net::FabricAddress& peer,
                                    std::uint8_t traffic_class, bool sprayed) {
  if (sprayed) {
    if (Congestion* shared = find(peer, traffic_class)) {
      ++shared->users;
      return shared;
    }
  }
  Congestion* congestion = pool_.acquire();
  if (congestion == nullptr) return nullptr;
  congestion->peer = peer;
  congestion->traffic_class = traffic_class;
  congestion->sprayed = sprayed;
  congestion->users = 1;
  const CachedRtt& cached = rtt_cache_[peer.hash() % rtt_cache_.size()];
  const bool on_host = upper_.stays_on_host(now, peer);
  try {
    congestion->ccc.emplace(on_host ? host_config_ : config_, unused_id(peer), sprayed,
                            cached.peer == peer ? cached.base_rtt : base::Duration{}, rng_, trace_,
                            now, &contending_);
  } catch (const std::bad_alloc&) {
    pool_.release(congestion);
    return nullptr;
  }
  congestion->request_header_bytes =
      congestion->ccc->carries_credit() ? wire::PdsRequestCc::kSize : wire::PdsRequest::kSize;
  next_id_ = static_cast<std::uint8_t>(congestion->ccc->id() + 1);
  index_.insert(hash(peer, traffic_class), *congestion);
  ids_.insert(id_hash(*congestion), *congestion);
  return congestion;
}

/// The destination tells the CCCs of a source apart by the ccc_id alone: two with the same would share one account. With more than
/// 256 towards one peer some have to. [CC 3.8]
std::uint8_t CongestionTable::unused_id(const net::FabricAddress& peer) {
  for (unsigned i = 0; i < 256; ++i) {
    const auto id = static_cast<std::uint8_t>(next_id_ + i);
    const Congestion* user = ids_.find(peer.hash(key_, id), [&](const Congestion& c) {
      return c.ccc->id() == id && c.peer == peer;
    });
    if (user == nullptr) return id;
  }
  return next_id_;
}

void CongestionTable::detach(Congestion& congestion) {
  if (--congestion.users > 0) return;
  UET_CHECK(!congestion.ready_hook.is_linked() && !congestion.timer.is_armed());
  const base::Duration base_rtt = congestion.ccc->base_rtt();
  // What was never measured would keep the next one from measuring.
  if (base_rtt < congestion.ccc->config().config_base_rtt)
    rtt_cache_[congestion.peer.hash() % rtt_cache_.size()] = {congestion.peer, base_rtt};
  ids_.erase(id_hash(congestion), congestion);
  index_.erase(hash(congestion.peer, congestion.traffic_class), congestion);
  pool_.release(&congestion);
}

}  // namespace uet::pds
