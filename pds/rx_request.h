/// A RUD or ROD Request came in: reads its header. [PDS 8, 9.1]
#pragma once

#include "pds/credit_grants.h"
#include "pds/rx_sequenced.h"

namespace uet::pds {

class RequestIntake : Part {
 public:
  RequestIntake(Environment& env, CreditGrants& credit, SequencedIntake& sequenced)
      : Part(env), credit_(credit), sequenced_(sequenced) {}

  void on_packet(Instant now, net::RxPacket& rx, bool has_cc_state);

 private:
  CreditGrants& credit_;
  SequencedIntake& sequenced_;
};

}  // namespace uet::pds
