/// How PDCs end: gracefully by the initiator, on request of the target, or in error. [PDS 16]
#pragma once

#include "pds/arrival.h"
#include "pds/lifecycle.h"
#include "pds/tx_ack.h"

namespace uet::pds {

class Closing : Part {
 public:
  Closing(Shared& shared, SendWindow& window, ReceivingHalf& receiving, AckBuilder& acks,
          Lifecycle& lifecycle);

  // --- Gracefully
  /// Any trigger of a graceful close. [PDS 16.1] An initiator that has sent nothing is freed.
  void begin(Instant now, Pdc& pdc);
  /// Initiator: goes as far towards the Close Command as the PDC allows now. [PDS 16.2]
  void proceed(Instant now, Pdc& pdc);
  void on_timer(Instant now, Pdc& pdc);
  /// Initiator: the Close Command was acknowledged, or its target is gone already.
  void on_acknowledged(Instant now, Pdc& pdc);
  /// Initiator: the place is wanted. False unless nothing but a Close Command is outstanding, and its fifth copy was not answered.
  bool end_if_unanswered(Instant now, Pdc& pdc);
  /// Initiator: packets have timed out. What SES could not submit for want of a place may take that of a PDC whose Close Command
  /// has not been answered.
  void on_timeout(const Pdc& pdc);
  /// Target. The PSN is new and inside the window. [PDS 16.3]
  void on_command(Instant now, Pdc& pdc, const Arrival& in);
  /// Target: SES has answered something.
  void finish_if_answered(Instant now, Pdc& pdc);
  /// The endpoint ends.
  void close_all(Instant now);

  // --- In error
  /// A NACK that says of one packet that the target does not know its PDC.
  struct Refused {
    Psn psn;
    bool was_sent_once = false;
  };
  /// Every message on the PDC fails exactly once. [PDS 16.5]
  void fail(Instant now, Pdc& pdc, PdsError error, const std::optional<Refused>& refused = {});
  /// Some packet has timed out as often as it may.
  void on_timeouts_exhausted(Instant now, Pdc& pdc);
  /// The source hears us and clears nothing.
  void on_never_cleared(Instant now, Pdc& pdc);
  /// Data waited for a peer to prove that it hears us, in vain: it is told that none will come.
  void on_never_proven(Instant now, Pdc& pdc);
  /// Target: no confirmation came for a PDC in PENDING.
  void reap_half_open(Instant now, Pdc& pdc);
  bool is_given_up(Instant now, const Pdc& pdc) const;

  std::uint64_t half_open_reaped() const { return half_open_reaped_; }
  std::uint64_t clear_breaks() const { return clear_breaks_; }

 private:
  Duration grace() const;
  /// Target: asks the initiator to close.
  void request(Instant now, Pdc& pdc);
  void finish_target(Instant now, Pdc& pdc);
  bool has_unanswered_question(const Pdc& pdc) const;
  static bool is_known_undelivered(Psn psn, const TxRecord& record, PdsError error,
                                   const std::optional<Refused>& refused);

  PdcTable& table_;
  Scheduler& scheduler_;
  PdcStates& states_;
  SendWindow& window_;
  TxBlockPool& tx_blocks_;
  NackQueue& nacks_;
  Receiver& receiver_;
  ReorderBuffer& reorder_;
  AckBuilder& acks_;
  FailedMessages& failed_;
  Backpressure& room_;
  base::Ring<net::TxPacket>& built_;
  Lifecycle& lifecycle_;
  std::uint64_t half_open_reaped_ = 0;
  std::uint64_t clear_breaks_ = 0;
};

}  // namespace uet::pds
