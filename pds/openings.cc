#include "pds/openings.h"

namespace uet::pds {

namespace {

/// Silence after which an unproven PDC may be pushed out: several retransmissions of a sender that is awake.
Duration eviction_grace(const PdsConfig& config) {
  constexpr Duration kGrace = Duration::from_ms(200);
  return config.peer_timeout > Duration{} ? std::min(kGrace, config.peer_timeout / 4) : kGrace;
}

}  // namespace

Openings::Openings(Environment& env, std::uint32_t places)
    : Part(env),
      tombstones_(limits_.tombstones, config_.tombstone_time, env.hash_key),
      ended_early_(limits_.openings, memory(), env.hash_key),
      unproven_(places, eviction_grace(config_)) {}

void Openings::remember(Instant now, const Pdc& pdc) {
  if (!pdc.rx.has_accepted) return;
  const bool is_over = pdc.is_proven || now - pdc.heard_at >= memory();
  if (is_over)
    tombstones_.add(now, pdc.peer, pdc.peer_id, pdc.start);
  else if (pdc.rx.has_delivered)
    ended_early_.add(now, pdc.peer, pdc.peer_id, pdc.start);
}

}  // namespace uet::pds
