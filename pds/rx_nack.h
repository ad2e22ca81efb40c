/// A NACK came in. [PDS 14]
#pragma once

#include "pds/life.h"
#include "pds/rudi.h"

namespace uet::pds {

class NackIntake : Part {
 public:
  NackIntake(Environment& env, const PdcTable& pdcs, Scheduler& scheduler, SendingHalf& sending,
             Rudi& rudi, Life& life)
      : Part(env),
        table_(pdcs),
        scheduler_(scheduler),
        tx_blocks_(sending.window.records()),
        loss_(sending.loss),
        clear_(sending.clear),
        renumbering_(sending.renumbering),
        rudi_(rudi),
        closing_(life.closing),
        liveness_(life.liveness) {}

  void on_packet(Instant now, const net::RxPacket& rx);

 private:
  void on_nack(Instant now, Pdc& pdc, const wire::PdsNack& nack, const RxMeta& meta);
  void on_fatal(Instant now, Pdc& pdc, const wire::PdsNack& nack, PdsError error);
  void pause(Instant now, Pdc& pdc, Psn psn, TxRecord& record, const wire::PdsNack& nack,
             const RxMeta& meta);
  bool resend_now(Instant now, Pdc& pdc, Psn psn, TxRecord& record, const wire::PdsNack& nack,
                  const RxMeta& meta);
  void after_trim(Instant now, Pdc& pdc, Psn psn, TxRecord& record);
  void on_rod_ooo(Instant now, Pdc& pdc, const wire::PdsNack& nack);
  void on_ses_busy(Instant now, Pdc& pdc, TxRecord& record);

  const PdcTable& table_;
  Scheduler& scheduler_;
  TxBlockPool& tx_blocks_;
  LossRecovery& loss_;
  ClearSender& clear_;
  Renumbering& renumbering_;
  Rudi& rudi_;
  Closing& closing_;
  Liveness& liveness_;
};

}  // namespace uet::pds
