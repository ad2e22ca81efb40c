/// The life of PDCs: how they open, who makes place for whom, what silence means, and how they end. In the order in which the parts
/// know each other.
#pragma once

#include "pds/liveness.h"

namespace uet::pds {

struct Life {
  Life(Shared& shared, SendWindow& window, ReceivingHalf& receiving, AckBuilder& acks)
      : lifecycle(shared, window, receiving),
        closing(shared, window, receiving, acks, lifecycle),
        admission(shared.env, shared.pdcs, shared.states, receiving, closing),
        liveness(shared, window, receiving, closing, admission) {}

  Lifecycle lifecycle;
  Closing closing;
  Admission admission;
  Liveness liveness;
};

}  // namespace uet::pds
