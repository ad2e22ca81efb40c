#include "pds/engine.h"

namespace uet::pds {

Engine::Engine(const PdsConfig& config, const cc::CcConfig& cc_config, const net::PortFacts& facts,
               net::PacketPool& pool, base::Rng& rng, base::Trace& trace, Upper& upper)
    : EngineEnvironment{Environment(config, cc_config, facts, pool, rng, trace, upper)},
      Part(own_env_),
      room_(upper),
      states_(trace),
      nacks_(own_env_),
      table_(limits_.max_pdc, config.pdcid_quarantine, config.forced_start_psn, rng),
      congestions_(cc_config, limits_.max_ccc, rng, trace, upper),
      messages_(config.max_messages, room_),
      failed_(messages_, upper),
      window_(own_env_),
      tx_blocks_(window_.records()),
      loss_(own_env_, window_, scheduler_),
      clear_(own_env_, window_, scheduler_),
      proofs_(window_, scheduler_),
      openings_(own_env_, table_.places_for(false)),
      kept_(own_env_, scheduler_),
      receiver_(own_env_, table_, kept_, scheduler_, nacks_, proofs_),
      reorder_(own_env_, table_, nacks_, congestions_.config().config_base_rtt),
      renumbering_(own_env_, window_, loss_, scheduler_),
      credit_(own_env_, table_, scheduler_, congestions_.config()),
      acks_(own_env_, kept_.store(), credit_),
      controls_(own_env_, scheduler_, states_, window_, loss_, clear_, receiver_, acks_),
      sender_(own_env_, scheduler_, window_, loss_, clear_),
      data_(own_env_, scheduler_, window_, sender_),
      built_(config.built_queue_max),
      rudi_(own_env_, scheduler_, messages_, room_, nacks_, built_),
      uud_(own_env_, messages_, failed_) {
  planes_.up = static_cast<std::uint8_t>((1u << facts.planes) - 1);
}

// Packets and congestion contexts must go back before the pools do; messages and PDCs are only
// memory.
Engine::~Engine() {
  PdcOrderList& all = table_.in_order();
  while (!all.empty()) {
    Pdc& pdc = all.front();
    pdc.tx.queue.clear();
    receiver_.release(pdc);
    reorder_.release(pdc);
    window_.release(pdc.tx);
    detach_congestion(pdc);
    credit_.leave(pdc);
    scheduler_.wheel().cancel(pdc.timer);
    if (pdc.control_hook.is_linked())
      scheduler_.control().erase(scheduler_.control().iterator_to(pdc));
    if (pdc.is_initiator)
      table_.unindex_initiator(pdc);
    else
      table_.unindex_target(pdc);
    if (pdc.unproven_hook.is_linked()) openings_.unproven().remove(pdc);
    kept_.peers().leave(pdc.share, !pdc.is_initiator);
    table_.release(Instant{}, pdc, Psn{});
  }
}

Instant Engine::next_deadline() const {
  Instant next = scheduler_.wheel().next_deadline();
  next = std::min(next, credit_.next_deadline());
  return std::min(next, next_id_at_);
}

Pds::Gauges Engine::gauges() const {
  Pds::Gauges g{};
  g.pdcs_open = table_.size();
  g.pdcs_half_open = states_.half_open();
  g.outstanding_packets = tx_blocks_.in_use();
  g.queued_messages = messages_.size();
  g.stored_responses = kept_.store().kept();
  g.tombstones = openings_.tombstones().size();
  g.rudi_outstanding = rudi_.outstanding();
  g.ccc_count = congestions_.size();
  g.half_open_reaped = half_open_reaped_;
  g.stored_unproven = kept_.of_unproven();
  g.clear_breaks = clear_breaks_;
  g.pdcs_unproven = openings_.unproven().size();
  g.unproven_evicted = unproven_evicted_;
  g.openings_remembered = openings_.ended_early().size();
  return g;
}

}  // namespace uet::pds
