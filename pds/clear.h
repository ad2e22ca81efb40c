/// CLEAR at the source: how it says that guaranteed responses have arrived, and how it finds out of a window that only
/// uncleared responses close. [PDS 11]
#pragma once

#include "pds/environment.h"
#include "pds/scheduler.h"
#include "pds/send_window.h"

namespace uet::pds {

class ClearSender : Part {
 public:
  ClearSender(Environment& env, const SendWindow& window, Scheduler& scheduler)
      : Part(env), window_(window), scheduler_(scheduler) {}

  /// The peer waits for a CLEAR. The next Request carries it; without one, a Clear Command after
  /// PDS_Clear_Time.
  void owe(Instant now, Pdc& pdc);
  void owe_now(Pdc& pdc) { scheduler_.want_control(pdc, kSendClear); }
  /// While a CLEAR is owed, after an ACK: it leaves at once where it alone brings the answers that are missing. A target that keeps
  /// an answer leaves the default ones behind it to CACK, so with every packet there and nothing to send that could carry the CLEAR,
  /// both ends would only wait for PDS_Clear_Time. `named`: the packet that the ACK answers, which was sent.
  void hasten(Pdc& pdc, Psn named);
  /// The peer wants a CLEAR for everything up to `wanted`.
  void on_request(Instant now, Pdc& pdc, Psn wanted);
  /// Nothing is unacknowledged, and no PSN may be taken: there is no record for it, or only uncleared responses can be in the way.
  void wait_for_psn(Instant now, Pdc& pdc) {
    if (window_.lacks_record(pdc))
      scheduler_.wait_for_record(pdc);
    else
      start_stall(now, pdc);
  }
  /// What is to be sent may be outside of the window. Does nothing unless all below has its answer.
  void start_stall(Instant now, Pdc& pdc);

  void on_timer(Pdc& pdc) {
    if (pdc.tx.clear_owed) scheduler_.want_control(pdc, kSendClear);
  }
  void on_stall_timer(Instant now, Pdc& pdc);

 private:
  const SendWindow& window_;
  Scheduler& scheduler_;
};

}  // namespace uet::pds
