/// Which PDCs and CCCs may have something to send, and when what is due: the lists that polling takes from, and the timers.
/// [PDS 3.2, 13.7, CC 3.7]
///
/// Every part may tell it that something changed; it calls none. What a timer or a turn means is decided by those that take
/// from it.
#pragma once

#include "lib/base/timing_wheel.h"
#include "pds/congestion.h"
#include "pds/pdc.h"

namespace uet::pds {

class Scheduler {
 public:
  // --- What may be sent
  /// The PDC may have data to send: its CCC takes its turn again.
  void wake(Pdc& pdc) {
    Congestion* congestion = pdc.tx.cc.if_any();
    if (congestion == nullptr || (pdc.tx.rtx_count == 0 && pdc.tx.queue.empty())) return;
    if (!pdc.ready_hook.is_linked()) congestion->ready.push_back(pdc);
    if (pdc.tx.has_credit_exemption || pdc.state == PdcState::kCreating) [[unlikely]]
      congestion->seeks_exemption = true;
    wake(*congestion);
  }
  void wake(Congestion& congestion) {
    if (!congestion.ready_hook.is_linked() && !congestion.ready.empty())
      ready_.push_back(congestion);
  }
  /// Control packets to be sent, as bits of PdcControl.
  void want_control(Pdc& pdc, unsigned bits);
  /// What was sent is waited for: a Probe asks for it, unless a packet has done so, or one that is queued is going to.
  void hurry(Pdc& pdc) {
    TxHalf& tx = pdc.tx;
    if (!tx.asking.has_unasked() || tx.unacked == 0) return;
    if (tx.queue.empty())
      want_control(pdc, kSendProbe);
    else
      tx.asking.hurry();
  }
  /// The PDC has an ACK or a control packet to send.
  void list_control(Pdc& pdc) {
    if (!pdc.control_hook.is_linked()) control_.push_back(pdc);
  }
  /// The PDC has something to send, nothing outstanding whose ACK would wake it, and there is no record for its next PSN.
  void wait_for_record(Pdc& pdc) {
    if (!pdc.record_hook.is_linked()) lacking_records_.push_back(pdc);
  }
  bool lacks_records() const { return !lacking_records_.empty(); }
  /// There is memory for `n` of those that wait for a record: they take their turns again, in the order in which they began to wait.
  void wake_for_records(std::uint32_t n);
  CongestionRing& ready() { return ready_; }
  PdcControlList& control() { return control_; }
  const PdcControlList& control() const { return control_; }
  bool is_idle() const { return control_.empty() && ready_.empty(); }
  /// No data, no control packets, and ACKs of one PDC.
  bool has_only_acks() const {
    return ready_.empty() && !control_.empty() && &control_.front() == &control_.back() &&
           control_.front().pending_control == 0;
  }

  // --- Timers
  void set_timer(Pdc& pdc, PdcTimer timer, Instant when) {
    pdc.deadline(timer) = when;
    if (!pdc.timer.is_armed() || when < pdc.timer.when()) wheel_.schedule(pdc.timer, when);
  }
  static void stop_timer(Pdc& pdc, PdcTimer timer) { pdc.deadline(timer) = Instant::never(); }
  /// Puts the node of a PDC at its earliest timer.
  void rearm(Pdc& pdc);
  base::TimingWheel& wheel() { return wheel_; }
  const base::TimingWheel& wheel() const { return wheel_; }

  // --- Congestion control
  /// An event that can let a CCC send, or ask for credit.
  void after_congestion_event(Instant now, Congestion& congestion) {
    wake(congestion);
    on_congestion_timer(now, congestion);
  }
  /// Credit requests and some probes are due by time, not by event. [CC 5.3]
  void on_congestion_timer(Instant now, Congestion& congestion);

  // --- The end of a PDC
  void forget(Pdc& pdc);
  void forget(Congestion& congestion);

 private:
  Pdc* carrier_of(Congestion& congestion);

  base::TimingWheel wheel_;
  CongestionRing ready_;    ///< CCCs with PDCs that may have something to send
  PdcControlList control_;  ///< PDCs with ACKs or control packets to send
  PdcRecordList lacking_records_;
};

}  // namespace uet::pds
