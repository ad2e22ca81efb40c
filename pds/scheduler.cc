#include "pds/scheduler.h"

namespace uet::pds {

void Scheduler::want_control(Pdc& pdc, unsigned bits) {
  pdc.pending_control = static_cast<std::uint16_t>(pdc.pending_control | bits);
  list_control(pdc);
}

// One node of the wheel serves all timers of a PDC; it stands at the earliest, or earlier after one
// was stopped.
void Scheduler::rearm(Pdc& pdc) {
  const Instant next = *std::min_element(pdc.deadlines.begin(), pdc.deadlines.end());
  if (!next.is_never()) wheel_.schedule(pdc.timer, next);
}

void Scheduler::wake_for_records(std::uint32_t n) {
  for (; n > 0 && !lacking_records_.empty(); --n) {
    Pdc& pdc = lacking_records_.front();
    lacking_records_.pop_front();
    wake(pdc);
    if (pdc.pending_control != 0) list_control(pdc);
  }
}

Pdc* Scheduler::carrier_of(Congestion& congestion) {
  if (congestion.carrier == nullptr)
    for (Pdc& pdc : congestion.ready)
      if (pdc.peer_id != 0 && !pdc.is_unproven()) {
        congestion.carrier = &pdc;
        break;
      }
  return congestion.carrier;
}

void Scheduler::on_congestion_timer(Instant now, Congestion& congestion) {
  // Also one that this CCC has never sent a packet on: read data that waits on a target PDC, while another PDC that is refused
  // again and again has spent what may leave without credit. See docs/decisions/0083.
  if (congestion.ccc->lacks_credit() && carrier_of(congestion) != nullptr)
    congestion.ccc->on_pdc_opened();
  Pdc* const carrier = congestion.carrier;
  if (carrier != nullptr && congestion.ccc->poll_probe(now)) want_control(*carrier, kSendProbe);
  if (const auto demand = congestion.ccc->poll_credit_request(now)) {
    if (carrier != nullptr) {
      carrier->tx.credit_demand = *demand;
      want_control(*carrier, kSendCreditRequest);
    } else if (!congestion.ready.empty() && congestion.ready.front().tx.unacked == 0) {
      // Another PDC used up the credit and is gone; this one has not been opened yet, and no PDC can ask for more before it
      // is. A Noop opens it without credit.
      want_control(congestion.ready.front(), kSendNoop);
    }
  }
  const Instant next = congestion.ccc->next_deadline(carrier != nullptr);
  if (next.is_never()) {
    if (congestion.timer.is_armed()) wheel_.cancel(congestion.timer);
  } else if (!congestion.timer.is_armed() || congestion.timer.when() != next) {
    wheel_.schedule(congestion.timer, std::max(next, now + Duration::from_us(1)));
  }
}

void Scheduler::forget(Pdc& pdc) {
  wheel_.cancel(pdc.timer);
  if (pdc.control_hook.is_linked()) control_.erase(control_.iterator_to(pdc));
  if (pdc.record_hook.is_linked()) lacking_records_.erase(lacking_records_.iterator_to(pdc));
}

void Scheduler::forget(Congestion& congestion) {
  if (congestion.ready_hook.is_linked()) ready_.erase(ready_.iterator_to(congestion));
  wheel_.cancel(congestion.timer);
}

}  // namespace uet::pds
