/// An acknowledgement came in. [PDS 10.4]
#pragma once

#include "pds/ack_in.h"
#include "pds/life.h"

namespace uet::pds {

class AckIntake : Part {
 public:
  AckIntake(Environment& env, const PdcTable& pdcs, MessageTable& messages, Scheduler& scheduler,
            SendingHalf& sending, Life& life)
      : Part(env),
        table_(pdcs),
        messages_(messages),
        scheduler_(scheduler),
        tx_blocks_(sending.window.records()),
        loss_(sending.loss),
        evidence_(sending.evidence),
        clear_(sending.clear),
        closing_(life.closing),
        liveness_(life.liveness) {}

  void on_packet(Instant now, const net::RxPacket& rx);

 private:
  void on_ack(Instant now, Pdc& pdc, AckIn& in);
  bool acknowledge(Instant now, Pdc& pdc, TxRecord& record, const AckIn* with_response = nullptr);
  bool take_response(Instant now, Pdc& pdc, AckIn& in);
  bool take_cack(Instant now, Pdc& pdc, const AckIn& in);
  void look_for_losses(Instant now, Pdc& pdc, const AckIn& in);
  void obey_requests(Instant now, Pdc& pdc, const AckIn& in);
  bool pass_further_response(Instant now, const Pdc& pdc, const AckIn& in);
  void apply_sack(Instant now, Pdc& pdc, const AckIn& in);
  void advance_left_edge(Pdc& pdc);

  const PdcTable& table_;
  MessageTable& messages_;
  Scheduler& scheduler_;
  TxBlockPool& tx_blocks_;
  LossRecovery& loss_;
  LossEvidence& evidence_;
  ClearSender& clear_;
  Closing& closing_;
  Liveness& liveness_;
};

}  // namespace uet::pds
