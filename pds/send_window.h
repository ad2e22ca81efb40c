/// What a source may have outstanding, and what it keeps of each PSN until it is acknowledged. [PDS 4.3, 7.1, 7.5, 13.1]
#pragma once

#include <algorithm>

#include "pds/backoff.h"
#include "pds/congestion.h"
#include "pds/environment.h"
#include "pds/pdc.h"
#include "pds/tx_window.h"

namespace uet::pds {

class SendWindow : Part {
 public:
  explicit SendWindow(Environment& env)
      : Part(env), records_(limits_.window, limits_.tx_blocks, limits_.tx_blocks_further) {}

  /// The window is anchored at CACK, not at what was received or acknowledged beyond it, and binds
  /// retransmissions too.
  bool allows(const Pdc& pdc, Psn psn) const;
  /// A new PSN: a Request or a sequenced control packet.
  bool may_take_psn(const Pdc& pdc) const;
  /// Where may_take_psn() says no: the next PSN could be taken, but for want of a record.
  bool lacks_record(const Pdc& pdc) const {
    return allows(pdc, pdc.tx.next) && !records_.can_add(pdc.tx.ring, pdc.tx.next);
  }
  /// How many new PSNs in a row it allows an open PDC, apart from records.
  std::uint32_t psns_left(const Pdc& pdc) const;
  /// Limit_PSN_Range: `more` packets can be sent before this direction comes near its end. [PDS 7.6]
  bool has_psns_for(const Pdc& pdc, std::uint64_t more) const;
  /// A data packet is out that is not acknowledged, or waits to be.
  bool has_unacked_data(const Pdc& pdc) const;
  /// Retransmission timeout of a packet that has had `rto_cnt` of them.
  /// RTO_Init_Time doubled per timeout. A path that is measured to be slower than that (a peer in software that is not polled
  /// all the time) starts at four smoothed round trips; see docs/decisions/0041-retransmission-timeout.md. [PDS 13.1]
  Duration rto(const Pdc& pdc, unsigned rto_cnt) const {
    const Duration first =
        std::min(std::max(config_.rto_init_time, smoothed_rtt(pdc) * 4), kLongestRto);
    return rto_cnt == 0 ? first : repeated_rto(first, rto_cnt);
  }
  /// The only way in which a record of the sender half changes its state: what waits to be sent again is counted.
  static void move(TxHalf& tx, TxRecord& record, TxEvent on) {
    const bool has_waited = record.waits_for_resend();
    if (has_waited) count(tx, record, ~0u);
    record.move(on);
    if ((has_waited || can_lead_to_resend(on)) && record.waits_for_resend()) count(tx, record, 1);
  }
  /// Forgets all records: the PDC ends.
  void release(TxHalf& tx) {
    for (; tx.left_edge != tx.next; ++tx.left_edge) records_.remove(tx.ring, tx.left_edge);
  }

  TxRecord& at(const Pdc& pdc, Psn psn) { return records_.at(pdc.tx.ring, psn); }
  const TxRecord& at(const Pdc& pdc, Psn psn) const { return records_.at(pdc.tx.ring, psn); }
  TxBlockPool& records() { return records_; }
  const TxBlockPool& records() const { return records_; }

 private:
  static void count(TxHalf& tx, const TxRecord& record, std::uint32_t by) {
    if (record.is_paused()) {
      tx.paused_count += by;
      if (record.state() == TxState::kPlaceWanted) tx.places_wanted += by;
    } else if (record.message != nullptr)
      tx.rtx_count += by;
  }

  Duration repeated_rto(Duration first, unsigned rto_cnt) const;

  TxBlockPool records_;
};

}  // namespace uet::pds
