/// The PDC that a sequenced packet belongs to, opened if need be. [PDS 6.4, 6.5, 9.2]
#pragma once

#include "pds/life.h"
#include "pds/verdict.h"

namespace uet::pds {

class TargetOpening : Part {
 public:
  TargetOpening(Shared& shared, ReceivingHalf& receiving, Life& life);

  /// Null when the packet was dealt with.
  Pdc* find_for(Instant now, const Arrival& in);

 private:
  Pdc* find_for_syn(Instant now, const Arrival& in);
  bool is_given_up(Instant now, const Pdc& pdc, const Arrival& in);
  bool may_replace(Instant now, Pdc& pdc, const Arrival& in);
  Pdc* open(Instant now, const Arrival& in);
  void challenge(Instant now, const Arrival& in, Psn announced);
  Pdc* confirm(Instant now, Pdc& pdc, const Arrival& in);

  PdcTable& table_;
  Scheduler& scheduler_;
  PdcStates& states_;
  NackQueue& nacks_;
  Openings& openings_;
  Receiver& receiver_;
  Lifecycle& lifecycle_;
  Closing& closing_;
  Admission& admission_;
  Liveness& liveness_;
};

}  // namespace uet::pds
