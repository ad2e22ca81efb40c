#include "pds/timers.h"

namespace uet::pds {

void Timers::run(Instant now) {
  scheduler_.wheel().advance(now);
  while (base::TimerNode* node = scheduler_.wheel().pop_due()) {
    auto& timer = static_cast<Timer&>(*node);
    switch (timer.kind) {
      case Timer::Kind::kPdc:
        run_pdc(now, *static_cast<Pdc*>(timer.owner));
        break;
      case Timer::Kind::kCongestion: {
        auto& congestion = *static_cast<Congestion*>(timer.owner);
        scheduler_.on_congestion_timer(now, congestion);
        scheduler_.wake(congestion);
        break;
      }
      case Timer::Kind::kRudi:
        rudi_.on_timer(now, *static_cast<RudiPacket*>(timer.owner));
        break;
    }
  }
}

void Timers::run_pdc(Instant now, Pdc& pdc) {
  const PdcRef ref = pdc.ref();
  for (std::size_t i = 0; i < kPdcTimerCount; ++i) {
    if (pdc.deadlines[i] > now) continue;
    pdc.deadlines[i] = Instant::never();
    switch (static_cast<PdcTimer>(i)) {
      case PdcTimer::kRetransmit:
        if (!loss_.on_retransmit_timer(now, pdc)) return closing_.on_timeouts_exhausted(now, pdc);
        closing_.on_timeout(pdc);
        break;
      case PdcTimer::kClear:
        clear_.on_timer(pdc);
        break;
      case PdcTimer::kStall:
        clear_.on_stall_timer(now, pdc);
        break;
      case PdcTimer::kClose:
        closing_.on_timer(now, pdc);
        break;
      case PdcTimer::kLiveness:
        liveness_.look(now, pdc);
        break;
      case PdcTimer::kTailLoss:
        loss_.on_tail_loss(now, pdc);
        break;
      case PdcTimer::kClearRequest:
        if (!kept_.on_clear_request_timer(now, pdc)) return closing_.on_never_cleared(now, pdc);
        break;
      case PdcTimer::kProof:
        proofs_.on_timer(now, pdc);
        break;
    }
    if (!table_.is_alive(ref)) return;
  }
  scheduler_.rearm(pdc);
}

}  // namespace uet::pds
