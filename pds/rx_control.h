/// Control packets in. [PDS 15]
#pragma once

#include "pds/rx_sequenced.h"

namespace uet::pds {

class ControlIntake : Part {
 public:
  ControlIntake(Shared& shared, ClearSender& clear, ReceivingHalf& receiving, Life& life,
                SequencedIntake& sequenced)
      : Part(shared.env),
        table_(shared.pdcs),
        scheduler_(shared.scheduler),
        nacks_(shared.nacks),
        clear_(clear),
        receiver_(receiving.receiver),
        reorder_(receiving.reorder),
        credit_(receiving.credit),
        closing_(life.closing),
        liveness_(life.liveness),
        sequenced_(sequenced) {}

  void on_packet(Instant now, const net::RxPacket& rx);

 private:
  void on_unsequenced(Instant now, const wire::PdsControl& header, const Arrival& in,
                      std::size_t bytes);
  void on_ack_request(Instant now, Pdc& pdc, const wire::PdsControl& header, const RxMeta& meta);
  void on_probe(Instant now, Pdc& pdc, const wire::PdsControl& header, const RxMeta& meta);
  void on_credit(Instant now, Pdc& pdc, std::uint32_t credit_units);

  const PdcTable& table_;
  Scheduler& scheduler_;
  NackQueue& nacks_;
  ClearSender& clear_;
  Receiver& receiver_;
  ReorderBuffer& reorder_;
  CreditGrants& credit_;
  Closing& closing_;
  Liveness& liveness_;
  SequencedIntake& sequenced_;
};

}  // namespace uet::pds
