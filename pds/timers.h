/// What timers mean when they expire. [PDS 13.7]
#pragma once

#include "pds/life.h"
#include "pds/rudi.h"

namespace uet::pds {

class Timers {
 public:
  Timers(const PdcTable& pdcs, Scheduler& scheduler, SendingHalf& sending, ReceivingHalf& receiving,
         Rudi& rudi, Life& life)
      : table_(pdcs),
        scheduler_(scheduler),
        loss_(sending.loss),
        clear_(sending.clear),
        kept_(receiving.kept),
        proofs_(receiving.proofs),
        rudi_(rudi),
        closing_(life.closing),
        liveness_(life.liveness) {}

  /// All timers of the wheel that are due.
  void run(Instant now);

 private:
  void run_pdc(Instant now, Pdc& pdc);

  const PdcTable& table_;
  Scheduler& scheduler_;
  LossRecovery& loss_;
  ClearSender& clear_;
  KeptResponses& kept_;
  ProofRequests& proofs_;
  Rudi& rudi_;
  Closing& closing_;
  Liveness& liveness_;
};

}  // namespace uet::pds
