/// A target asks a peer that has proved nothing whether it is there, where something waits for the answer. See
/// docs/decisions/0100.
#pragma once

#include "pds/scheduler.h"
#include "pds/send_window.h"
#include "pds/unproven.h"

namespace uet::pds {

class ProofRequests {
 public:
  ProofRequests(const SendWindow& window, Scheduler& scheduler)
      : window_(window), scheduler_(scheduler) {}

  /// Something longer than an unproven peer may get waits.
  void ask(Instant now, Pdc& pdc) {
    if (!pdc.is_unproven() || !pdc.deadline(PdcTimer::kProof).is_never()) return;
    scheduler_.want_control(pdc, kSendProbe);
    scheduler_.set_timer(pdc, PdcTimer::kProof, now + window_.rto(pdc, 0));
  }
  /// Asks once more. While data waits it goes on, less and less often: the request for it is acknowledged, so nothing but the answer
  /// to a question may ever come from the peer.
  void on_timer(Instant now, Pdc& pdc) {
    const bool is_data_waiting = is_awaited(pdc);
    const bool may_ask = is_data_waiting ? pdc.questions < UnprovenPdcs::kQuestions - 1 &&
                                               pdc.unasked < allowance(pdc)
                                         : pdc.unasked < UnprovenPdcs::kUnasked;
    if (!pdc.is_unproven() || !may_ask) return;
    scheduler_.want_control(pdc, kSendProbe);
    if (is_data_waiting)
      scheduler_.set_timer(pdc, PdcTimer::kProof,
                           now + window_.rto(pdc, 0) * (std::int64_t{1} << ++pdc.questions));
  }
  static bool is_awaited(const Pdc& pdc) {
    return !pdc.tx.queue.empty() || pdc.rx.withholds_answers;
  }
  /// Packets that the peer may be sent without having asked for them.
  static std::uint32_t allowance(const Pdc& pdc) {
    return UnprovenPdcs::unasked_for(pdc.rx.rcvd_bytes, is_awaited(pdc));
  }

 private:
  const SendWindow& window_;
  Scheduler& scheduler_;
};

}  // namespace uet::pds
