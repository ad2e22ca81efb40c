/// Initiator: the target wants another Start_PSN (secure establishment). Everything that is out moves there and leaves again.
/// [PDS 6.5]
#pragma once

#include "pds/environment.h"
#include "pds/loss.h"

namespace uet::pds {

class Renumbering : Part {
 public:
  Renumbering(Environment& env, SendWindow& window, LossRecovery& loss, Scheduler& scheduler)
      : Part(env), tx_blocks_(window.records()), loss_(loss), scheduler_(scheduler) {}

  /// False when the target has wanted another start too often: the PDC has to end.
  [[nodiscard]] bool on_new_start(Instant now, Pdc& pdc, Psn start);
  /// The target has the PDC from another start than the one that `psn` left with. False as above.
  [[nodiscard]] bool on_invalid_syn(Instant now, Pdc& pdc, Psn psn);

 private:
  bool move(Instant now, Pdc& pdc, Psn start);

  TxBlockPool& tx_blocks_;
  LossRecovery& loss_;
  Scheduler& scheduler_;
};

}  // namespace uet::pds
