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
    congestion->ccc.emplace(on_host ? host_config_ : config_, next_id_, sprayed,
                            cached.peer == peer ? cached.base_rtt : base::Duration{}, rng_, trace_,
                            now, &contending_);
  } catch (const std::bad_alloc&) {
    pool_.release(congestion);
    return nullptr;
  }
  congestion->request_header_bytes =
      congestion->ccc->carries_credit() ? wire::PdsRequestCc::kSize : wire::PdsRequest::kSize;
  ++next_id_;
  index_.insert(hash(peer, traffic_class), *congestion);
  return congestion;
}

void CongestionTable::detach(Congestion& congestion) {
  if (--congestion.users > 0) return;
  UET_CHECK(!congestion.ready_hook.is_linked() && !congestion.timer.is_armed());
  rtt_cache_[congestion.peer.hash() % rtt_cache_.size()] = {congestion.peer,
                                                            congestion.ccc->base_rtt()};
  index_.erase(hash(congestion.peer, congestion.traffic_class), congestion);
  pool_.release(&congestion);
}

}  // namespace uet::pds
