/// Builds acknowledgements at the moment they leave, so that CACK, SACK and window are never stale.
/// [PDS 10.1, 10.3]
#pragma once

#include <optional>

#include "cc/receiver.h"
#include "pds/built.h"
#include "pds/credit_grants.h"
#include "pds/environment.h"
#include "pds/kept_responses.h"
#include "pds/pdc.h"

namespace uet::pds {

class AckBuilder : Part {
 public:
  AckBuilder(Environment& env, KeptResponses& kept, CreditGrants& credit)
      : Part(env), peers_(kept.peers()), responses_(kept.store()), credit_(credit) {}

  bool has_ack_to_send(const Pdc& pdc);
  Built build(Instant now, Pdc& pdc, net::TxPacket& out);
  /// The last ACK of a PDC, of its Close Command. `expected`: the PSN that its initiator shall start at next.
  Built build_last(Instant now, Pdc& pdc, const std::optional<Psn>& expected, net::TxPacket& out);
  /// SES named a resource that may run out: from now on ACKs say what to do with the window.
  void on_resource(const Pdc& pdc, std::uint32_t resource);

 private:
  struct AckShape {
    Psn ack_psn;
    RxMeta meta;
    bool is_probe_answer = false;
    std::uint16_t opaque = 0;
    Psn sack_near;                    ///< PSN the bitmap should show
    std::optional<Psn> expected_psn;  ///< of the ACK of a Close Command, secured only
    const RxRecord* record = nullptr;
  };
  Built emit(Instant now, Pdc& pdc, const AckShape& shape, net::TxPacket& out);
  cc::WindowAdvice window_advice_for(const Pdc& pdc);

  PeerShares& peers_;
  ResponseStore& responses_;
  CreditGrants& credit_;
  bool has_slowed_ = false;
};

}  // namespace uet::pds
