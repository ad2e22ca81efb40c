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
  /// Asks once more.
  void on_timer(Pdc& pdc) {
    if (pdc.is_unproven() && pdc.unasked < UnprovenPdcs::kUnasked)
      scheduler_.want_control(pdc, kSendProbe);
  }
  static bool is_awaited(const Pdc& pdc) {
    return !pdc.tx.queue.empty() || pdc.rx.withholds_answers;
  }

 private:
  const SendWindow& window_;
  Scheduler& scheduler_;
};

}  // namespace uet::pds
