/// The life of PDCs: how they open, who makes place for whom, what silence means, and how they end. In the order in which the parts
/// know each other.
#pragma once

#include "pds/liveness.h"

namespace uet::pds {

struct Life {
  /// `built`: where last ACKs wait to be sent.
  Life(Environment& env, PdcTable& pdcs, CongestionTable& congestions, Backpressure& room,
       Scheduler& scheduler, PdcStates& states, NackQueue& nacks, FailedMessages& failed,
       SendWindow& window, ReceivingHalf& receiving, AckBuilder& acks,
       base::Ring<net::TxPacket>& built)
      : lifecycle(env, pdcs, congestions, room, scheduler, states, window, receiving),
        closing(env, pdcs, scheduler, states, nacks, failed, window, receiving, acks, built,
                lifecycle),
        admission(env, pdcs, states, receiving, closing),
        liveness(env, pdcs, scheduler, states, window, receiving, closing, admission) {}

  Lifecycle lifecycle;
  Closing closing;
  Admission admission;
  Liveness liveness;
};

}  // namespace uet::pds
