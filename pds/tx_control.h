/// Control packets and ACKs out. [PDS 15]
#pragma once

#include "pds/clear.h"
#include "pds/environment.h"
#include "pds/loss.h"
#include "pds/pdc_states.h"
#include "pds/receiver.h"
#include "pds/scheduler.h"
#include "pds/tx_ack.h"

namespace uet::pds {

class ControlSender : Part {
 public:
  ControlSender(Environment& env, Scheduler& scheduler, PdcStates& states, SendWindow& window,
                LossRecovery& loss, ClearSender& clear, const Receiver& receiver, AckBuilder& acks)
      : Part(env),
        scheduler_(scheduler),
        states_(states),
        window_(window),
        tx_blocks_(window.records()),
        loss_(loss),
        clear_(clear),
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
  Built emit_control(Instant now, Pdc& pdc, ControlType type, Psn psn, std::uint32_t payload,
                     bool ar, bool retx, std::uint16_t opaque, net::TxPacket& out);
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
