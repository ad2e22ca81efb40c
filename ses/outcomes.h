/// What becomes of operations that went: complete, failed, sent again, cancelled. [SES 2.5, 4.4, 10, 12]
#pragma once

#include "ses/pdc_use.h"
#include "ses/send_queues.h"
#include "ses/tx_responses.h"

namespace uet::ses {

/// Ends attempts, and operations: the only place that makes their completions. Owns what waits for the end of an upcall to be cut off,
/// and knows how many on which PDC wait for no more than a word of their target.
class Outcomes {
 public:
  Outcomes(Core& core, Operations& operations, RendezvousSources& sources,
           ResponseReader& responses, SendQueues& queues)
      : core_(core),
        operations_(operations),
        sources_(sources),
        responses_(responses),
        queues_(queues) {}
  ~Outcomes() { to_truncate_.clear(); }
  Outcomes(const Outcomes&) = delete;
  Outcomes& operator=(const Outcomes&) = delete;

  // --- What peers say
  /// To be called after everything that may have brought the attempt nearer to its end.
  void advance(Instant now, TxOp& op);
  /// The attempt is over: every packet answered, and all data here or the message failed.
  void conclude(Instant now, TxOp& op);
  /// A default response has come. All that read(), advance() and conclude() come to for a plain send; false of any other operation.
  bool finish_plain(Instant now, TxOp& op);
  /// A rendezvous: the target has read more of the rest.
  void on_read(Instant now, TxOp& op);
  /// The target asks for what it put off. What it is told. [SES 8.2]
  ReturnCode on_restart(Instant now, TxOp& op, std::uint32_t target_token);
  /// The target was told `code` when it asked. Changes nothing when it had asked for this attempt, or the next one, before.
  void on_refused_restart(Instant now, TxOp& op, ReturnCode code);

  // --- What packet delivery says
  void on_error(Instant now, TxOp& op, pds::PdsError error);
  void on_pdc_gone(Instant now, pds::PdcRef pdc, pds::PdsError error);
  void on_pdc_closed(Instant now, pds::PdcRef pdc);
  std::uint32_t yield_locks(Instant now, pds::PdcRef pdc);

  // --- What users want
  /// False when there is nothing left to take back.
  bool cancel(Instant now, TxOp& op);
  /// The operation's endpoint closes: it makes no completion, and the user's memory is not touched any more.
  void detach(Instant now, TxOp& op);
  /// Its target did not ask for it again, or stopped reading it.
  void expire(Instant now, TxOp& op);

  /// The one completion of the operation. It must be in no queue but those of its flow and of all operations.
  void finish(Instant now, TxOp& op, ReturnCode code);

  /// Operations that the four above have looked at in vain, since the start.
  std::uint64_t passed() const { return passed_; }

  // --- Time
  bool has_work() const { return !to_truncate_.empty(); }
  void truncate_wanted(Instant now);

 private:
  bool wants_retry(const TxOp& op) const;
  void retry(Instant now, TxOp& op);
  void await_delivery(Instant now, TxOp& op);
  void wait_for_restart(Instant now, TxOp& op);
  void restart(Instant now, TxOp& op, std::uint32_t target_token);
  /// A lock on the PDC is released in the call, or goes with the PDC or with what the caller answers.
  enum class Lock { kRelease, kGoesOtherwise };
  void leave_carrier(Instant now, TxOp& op, Lock lock);
  void take_back(Instant now, TxOp& op, ReturnCode code = ReturnCode::kCancelled);
  void leave_notice(TxOp& op);
  void end_behind(Instant now, TxOp& first);
  void want_truncation(Instant now, TxOp& op);
  void truncate_now(Instant now, TxOp& op);
  template <typename Visit>
  void for_each_waiting(pds::PdcRef pdc, const std::uint32_t& left, Visit&& visit);

  Core& core_;
  Operations& operations_;
  RendezvousSources& sources_;
  ResponseReader& responses_;
  SendQueues& queues_;
  OpList<&TxOp::extra_hook> to_truncate_;
  PdcUse waiting_;    ///< operations with waits_for_target
  PdcUse questions_;  ///< of those, with awaits_delivery
  std::uint64_t passed_ = 0;
};

}  // namespace uet::ses
