/// What timers mean when they expire. [PDS 13.7]
#pragma once

#include "pds/clear.h"
#include "pds/liveness.h"
#include "pds/loss.h"
#include "pds/rudi.h"

namespace uet::pds {

class Timers {
 public:
  Timers(const PdcTable& pdcs, Scheduler& scheduler, LossRecovery& loss, ClearSender& clear,
         KeptResponses& kept, ProofRequests& proofs, Rudi& rudi, Closing& closing,
         Liveness& liveness)
      : table_(pdcs),
        scheduler_(scheduler),
        loss_(loss),
        clear_(clear),
        kept_(kept),
        proofs_(proofs),
        rudi_(rudi),
        closing_(closing),
        liveness_(liveness) {}

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
