/// Timeouts, and what is to be sent again for whatever reason. [PDS 13]
///
/// It marks records and tells the scheduler and congestion control; what it cannot decide (a PDC that has timed out too often)
/// it returns.
#pragma once

#include "pds/environment.h"
#include "pds/scheduler.h"
#include "pds/send_window.h"

namespace uet::pds {

class LossRecovery : Part {
 public:
  LossRecovery(Environment& env, SendWindow& window, Scheduler& scheduler)
      : Part(env), window_(window), tx_blocks_(window.records()), scheduler_(scheduler) {}

  // --- Single packets
  /// A packet has left: its RTO runs.
  void arm_retransmit(Instant now, Pdc& pdc, TxRecord& record);
  /// The same for packets that have left in a row, to whose records the caller gave this deadline.
  void watch_sent(Instant now, Pdc& pdc, Instant deadline);
  /// To be sent again as soon as window and congestion control allow: it was lost or refused, or its pause is over.
  void queue_resend(Pdc& pdc, Psn psn, TxRecord& record, TxEvent why);
  /// The peer has it: from now on its RTO asks for the response.
  void note_arrival(Instant now, Pdc& pdc, TxRecord& record, TxEvent how);
  /// Tells congestion control once per transmission, and schedules the next one.
  void mark_lost(Instant now, Pdc& pdc, Psn psn, TxRecord& record, bool timeout);
  /// What is to be sent again waits until then. `why`: kPaused or kPausedForPlace.
  void hold_back(Pdc& pdc, Psn psn, TxRecord& record, Instant until, TxEvent why);
  /// A packet has left once more.
  static void note_repeat(Instant now, Pdc& pdc, Psn psn);
  /// ROD: everything from `from` on is sent again, in order. [PDS 17.1]
  void go_back(Instant now, Pdc& pdc, Psn from, bool timeout);

  // --- Evidence
  static void note_loss(Instant now, Congestion& congestion);
  /// A packet was lost a moment ago: the next loss is likely.
  static bool is_losing(Instant now, const Pdc& pdc);

  // --- Timers
  /// False when some packet has timed out as often as it may: the PDC has to end.
  [[nodiscard]] bool on_retransmit_timer(Instant now, Pdc& pdc);
  void on_tail_loss(Instant now, Pdc& pdc);
  void watch_tail(Instant now, Pdc& pdc);

 private:
  bool on_timeout(Instant now, Pdc& pdc, Psn psn, TxRecord& record);
  /// The peer's window excludes a data packet of which nothing was heard for its RTO: it waits to be sent again.
  void set_back(Instant now, Pdc& pdc, Psn psn, TxRecord& record);
  Duration tail_silence(Instant now, const Pdc& pdc) const;
  void ask_for_unasked(Instant now, Pdc& pdc);
  void ask_about(Pdc& pdc, Psn psn, TxRecord& record);
  void ask_about_tail(Instant now, Pdc& pdc);

  SendWindow& window_;
  TxBlockPool& tx_blocks_;
  Scheduler& scheduler_;
};

}  // namespace uet::pds
