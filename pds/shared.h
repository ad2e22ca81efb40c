/// What parts of both directions work on: the tables of PDCs, CCCs and messages, who waits for what, and what leaves without a
/// place in a PDC. A part that needs several of them takes the group and picks.
#pragma once

#include "lib/base/ring.h"
#include "pds/failed_messages.h"
#include "pds/nack_queue.h"
#include "pds/pdc_states.h"
#include "pds/pdc_table.h"
#include "pds/scheduler.h"

namespace uet::pds {

struct Shared {
  Shared(const PdsConfig& config, const cc::CcConfig& cc_config, const net::PortFacts& facts,
         net::PacketPool& pool, base::Rng& rng, base::Trace& trace, Upper& upper)
      : env(config, cc_config, facts, pool, rng, trace, upper),
        room(upper),
        states(trace),
        nacks(env),
        pdcs(env.limits.max_pdc, config.pdcid_quarantine, config.forced_start_psn, rng,
             env.hash_key),
        congestions(cc_config, env.limits.max_ccc, rng, trace, upper, env.hash_key),
        messages(config.max_messages, room),
        failed(messages, upper),
        built(config.built_queue_max) {}

  Environment env;
  Backpressure room;
  Scheduler scheduler;
  PdcStates states;
  NackQueue nacks;
  PdcTable pdcs;
  CongestionTable congestions;
  MessageTable messages;
  FailedMessages failed;
  base::Ring<net::TxPacket> built;  ///< last ACKs of closed PDCs, RUDI responses
};

}  // namespace uet::pds
