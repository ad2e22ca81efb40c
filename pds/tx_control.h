/// Control packets and ACKs out. [PDS 15]
#pragma once

#include "pds/halves.h"
#include "pds/pdc_states.h"
#include "pds/tx_ack.h"

namespace uet::pds {

class ControlSender : Part {
 public:
  ControlSender(Environment& env, Scheduler& scheduler, PdcStates& states, SendingHalf& sending,
                const Receiver& receiver, AckBuilder& acks)
      : Part(env),
        scheduler_(scheduler),
        states_(states),
        window_(sending.window),
        tx_blocks_(sending.window.records()),
        loss_(sending.loss),
        clear_(sending.clear),
        receiver_(receiver),
        acks_(acks) {}

  /// The next ACK or control packet of the PDCs that the scheduler lists.
  Built poll(Instant now, net::TxPacket& out);

 private:
  Built build_control(Instant now, Pdc& pdc, net::TxPacket& out);
  Built build_pending_control(Instant now, Pdc& pdc, net::TxPacket& out);
  Built send_sequenced(Instant now, Pdc& pdc, ControlType type, net::TxPacket& out);
  Built resend_sequenced(Instant now, Pdc& pdc, net::TxPacket& out);
  Built send_ack_request(Instant now, Pdc& pdc, net::TxPacket& out);
  void watch_credit(Instant now, Pdc& pdc);
  struct Shape;
  Built emit_control(Instant now, Pdc& pdc, const Shape& shape, net::TxPacket& out);
  std::uint16_t control_entropy();

  Scheduler& scheduler_;
  PdcStates& states_;
  SendWindow& window_;
  TxBlockPool& tx_blocks_;
  LossRecovery& loss_;
  ClearSender& clear_;
  const Receiver& receiver_;
  AckBuilder& acks_;
};

}  // namespace uet::pds
