/// What arrivals say of packets that left before: those may be lost. [PDS 13.4]
#pragma once

#include "pds/loss.h"

namespace uet::pds {

class LossEvidence : Part {
 public:
  LossEvidence(Environment& env, SendWindow& window, LossRecovery& loss, Scheduler& scheduler)
      : Part(env), tx_blocks_(window.records()), loss_(loss), scheduler_(scheduler) {}

  /// Lost: packets sent later on the same path have arrived.
  void infer_losses(Instant now, Pdc& pdc);
  /// `newest` has arrived. If its only transmission did, what left before it on any path is suspected, of the PSNs from `from` on.
  void suspect_overtaken(Instant now, Pdc& pdc, Psn from, Psn newest);
  /// The same for what left before `sent_before`, of the PSNs from `from` on and before `end`.
  void suspect_sent_before(Instant now, Pdc& pdc, Psn from, Psn end, Instant sent_before);

 private:
  TxBlockPool& tx_blocks_;
  LossRecovery& loss_;
  Scheduler& scheduler_;
};

}  // namespace uet::pds
