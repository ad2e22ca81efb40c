/// An acknowledgement came in. [PDS 10.4]
#pragma once

#include "pds/clear.h"
#include "pds/liveness.h"
#include "pds/loss.h"

namespace uet::pds {

class AckIntake : Part {
 public:
  AckIntake(Environment& env, const PdcTable& pdcs, MessageTable& messages, Scheduler& scheduler,
            SendWindow& window, LossRecovery& loss, ClearSender& clear, Closing& closing,
            Liveness& liveness)
      : Part(env),
        table_(pdcs),
        messages_(messages),
        scheduler_(scheduler),
        tx_blocks_(window.records()),
        loss_(loss),
        clear_(clear),
        closing_(closing),
        liveness_(liveness) {}

  void on_packet(Instant now, const net::RxPacket& rx);

 private:
  std::optional<AckIn> parse(Instant now, const net::RxPacket& rx);
  void on_ack(Instant now, Pdc& pdc, AckIn& in);
  bool acknowledge(Instant now, Pdc& pdc, TxRecord& record, std::uint8_t next_hdr,
                   std::span<const std::uint8_t> body);
  bool pass_further_response(Instant now, const Pdc& pdc, const AckIn& in);
  void apply_sack(Instant now, Pdc& pdc, const AckIn& in);
  std::optional<Psn> newest_arrival(const Pdc& pdc, const AckIn& in) const;
  void advance_left(Pdc& pdc);

  const PdcTable& table_;
  MessageTable& messages_;
  Scheduler& scheduler_;
  TxBlockPool& tx_blocks_;
  LossRecovery& loss_;
  ClearSender& clear_;
  Closing& closing_;
  Liveness& liveness_;
};

}  // namespace uet::pds
