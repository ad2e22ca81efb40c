/// What all parts of one endpoint's packet delivery share: settings, facts of the port, and what they call outside
/// of it. It knows no PDC and calls no part.
#pragma once

#include "cc/cc_config.h"
#include "lib/base/rng.h"
#include "lib/base/standstills.h"
#include "lib/base/trace.h"
#include "lib/net/port.h"
#include "pds/nack_counts.h"
#include "pds/pds.h"
#include "pds/pool_sizes.h"
#include "pds/response_store.h"

namespace uet::pds {

using base::ByteCount;
using base::DropReason;
using base::Duration;
using base::EventId;

struct Environment {
  Environment(const PdsConfig& settings, const cc::CcConfig& cc_config, const net::PortFacts& facts,
              net::PacketPool& packets, base::Rng& random, base::Trace& events, Upper& ses);

  const PdsConfig config;
  const Limits limits;
  const bool sends_nscc_state;
  const bool sends_credit_state;
  const ByteCount encapsulation_bytes;
  net::PacketPool& pool;
  base::Rng& rng;
  const base::HashKey hash_key;  ///< of all tables whose keys peers choose
  base::Trace& trace;
  Upper& upper;
  OpeningGuard* guard = nullptr;
  NackCounts nack_counts;
  base::Standstills standstills;

  /// When a peer that has been silent since then counts as gone. Never, where peer_timeout is 0.
  Instant end_of_patience(Instant now, Instant since) const {
    return config.peer_timeout > Duration{} && !since.is_never()
               ? standstills.end_of(since, config.peer_timeout, now)
               : Instant::never();
  }

  ByteCount nominal_bytes(std::size_t uet_bytes) const {
    return static_cast<ByteCount>(uet_bytes) + encapsulation_bytes;
  }
  std::uint8_t data_tos(bool resend) const {
    const std::uint8_t dscp = !config.use_trimming ? config.dscp_data
                              : resend             ? config.dscp_trimmable_rtx
                                                   : config.dscp_trimmable;
    return net::TosByte::of(dscp, 2).value;
  }
  std::uint8_t control_tos() const { return net::TosByte::of(config.dscp_control, 0).value; }

  /// The entropy value of a packet that may take any path, from any bits: a port from 49152 on.
  static std::uint16_t any_entropy(std::uint64_t bits) {
    return static_cast<std::uint16_t>(0xc000 | (bits & 0x3fff));
  }

  bool is_trimmed(const net::RxPacket& rx) const { return config.trimmed_dscps().contains(rx.tos); }
  static RxMeta meta_of(Instant now, const net::RxPacket& rx) {
    RxMeta meta;
    meta.arrived = now;
    meta.entropy = rx.entropy;
    meta.plane = rx.plane;
    meta.ecn = rx.tos.is_congestion_experienced();
    return meta;
  }
};

/// A part of packet delivery, with the environment at hand.
class Part {
 protected:
  explicit Part(Environment& env)
      : env_(env),
        config_(env.config),
        limits_(env.limits),
        pool_(env.pool),
        trace_(env.trace),
        upper_(env.upper) {}

  Environment& env_;
  const PdsConfig& config_;
  const Limits& limits_;
  net::PacketPool& pool_;
  base::Trace& trace_;
  Upper& upper_;
};

}  // namespace uet::pds
