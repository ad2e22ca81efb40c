/// NACKs that wait to be sent. Not stored, not repeated, not acknowledged: what they say is said again for the next copy.
/// [PDS 14.1]
#pragma once

#include "lib/base/ring.h"
#include "pds/arrival.h"
#include "pds/environment.h"
#include "pds/nack_limiter.h"
#include "pds/nack_rules.h"
#include "pds/pdc.h"

namespace uet::pds {

class NackQueue : Part {
 public:
  explicit NackQueue(Environment& env)
      : Part(env),
        limiter_(config_.nack_sources_max, config_.nack_rate_limit, config_.nack_burst,
                 env.hash_key),
        queue_(config_.nack_queue_max) {}

  /// Drops a packet, and says so where the rule has a code. `pdc`: the one that it belongs to, or null.
  void refuse(Instant now, const Arrival& in, const Pdc* pdc, Refusal refusal,
              std::uint32_t payload = 0);
  /// Says the same of a packet that was dropped before.
  void tell(Instant now, const Arrival& in, const Pdc* pdc, Refusal refusal,
            std::uint32_t payload = 0);
  /// The same of a RUDI packet.
  void tell_rudi(Instant now, const net::FabricAddress& source, const RxMeta& meta,
                 const wire::PdsRudi& packet, Refusal refusal);
  /// About a PSN of this PDC, as the packet of `meta` made us look at it.
  void notify(Instant now, const Pdc& pdc, Psn psn, Notice notice, const RxMeta& meta);
  /// `is_live`: tied to a PDC whose peer has earned it; others share the limit of their source address.
  /// `about`: the PDC that counts it, or null.
  void add(Instant now, const net::FabricAddress& to, const RxMeta& meta, wire::PdsNack header,
           bool is_live, const Pdc* about = nullptr);
  /// What a NACK says of this PDC. A target PDC that has accepted nothing may be gone the next moment: 0, so that its identifier is
  /// not learnt.
  static std::uint16_t identifier_of(const Pdc& pdc) {
    return pdc.is_initiator || pdc.rx.has_accepted ? pdc.id : 0;
  }
  /// False when there is none, or no packet for it.
  bool poll(Instant now, net::TxPacket& out);
  bool is_empty() const { return queue_.is_empty(); }

 private:
  /// Complete: the PDC may be gone when it leaves.
  struct NackOut {
    net::FabricAddress destination;
    std::uint16_t entropy = 0;
    std::uint8_t plane = 0;
    wire::PdsNack header;
    PdcRef about;
  };

  NackLimiter limiter_;
  base::Ring<NackOut> queue_;
};

}  // namespace uet::pds
