// Whose turn it is: packets out, timers. [PDS 3.2, 13.7, CC 3.7]

#include "pds/engine.h"

namespace uet::pds {

// Control packets first: they are small, they open windows, and nobody waits for permission to send
// them.
bool Engine::poll_transmit(Instant now, net::TxPacket& out, std::uint8_t free_planes) {
  planes_.free = free_planes;
  bool sent = nacks_.poll(now, out);
  if (!sent && !built_.is_empty()) {
    out = built_.pop();
    sent = true;
  }
  if (!sent) {
    const Built control = controls_.poll(now, out);
    if (control == Built::kNoBuffer) return false;
    sent = control == Built::kPacket;
  }
  if (!sent) {
    // RUDI and UUD take turns with the PDCs, so that neither starves the other.
    rudi_turn_ = !rudi_turn_;
    if (rudi_turn_)
      sent = uud_.poll(now, out) || rudi_.poll(now, out) || data_.poll(now, planes_, out);
    else
      sent = data_.poll(now, planes_, out) || uud_.poll(now, out) || rudi_.poll(now, out);
  }
  room_.settle(now);
  return sent;
}

// A plane went down or came back: its paths rest until one packet each has shown that they work. [CC 7.8]
void Engine::on_planes_changed(Instant now, std::uint8_t up) {
  planes_.up = up;
  congestions_.for_each([&](Congestion& c) { c.ccc->on_planes_changed(now, up); });
}

void Engine::on_deadline(Instant now) {
  scheduler_.wheel().advance(now);
  while (base::TimerNode* node = scheduler_.wheel().pop_due()) {
    auto& timer = static_cast<Timer&>(*node);
    switch (timer.kind) {
      case Timer::Kind::kPdc:
        run_timers(now, *static_cast<Pdc*>(timer.owner));
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
  credit_.run(now);
  openings_.expire(now);
  if (next_id_at_ <= now) {
    next_id_at_ = Instant::never();
    room_.on_room();
  }
  room_.settle(now);
}

// One node of the wheel serves all timers of a PDC; it stands at the earliest, or earlier after one
// was stopped.
void Engine::run_timers(Instant now, Pdc& pdc) {
  const PdcRef ref = pdc.ref();
  for (std::size_t i = 0; i < kPdcTimerCount; ++i) {
    if (pdc.deadlines[i] > now) continue;
    pdc.deadlines[i] = Instant::never();
    switch (static_cast<PdcTimer>(i)) {
      case PdcTimer::kRetransmit:
        if (!loss_.on_retransmit_timer(now, pdc)) return on_timeouts_exhausted(now, pdc);
        break;
      case PdcTimer::kClear:
        clear_.on_timer(pdc);
        break;
      case PdcTimer::kStall:
        clear_.on_stall_timer(now, pdc);
        break;
      case PdcTimer::kClose:
        on_close_timer(now, pdc);
        break;
      case PdcTimer::kLiveness:
        on_liveness(now, pdc);
        break;
      case PdcTimer::kTailLoss:
        loss_.on_tail_loss(now, pdc);
        break;
      case PdcTimer::kClearRequest:
        if (!kept_.on_clear_request_timer(now, pdc)) return break_uncleared(now, pdc);
        break;
      case PdcTimer::kProof:
        proofs_.on_timer(pdc);
        break;
    }
    if (!table_.is_alive(ref)) return;
  }
  scheduler_.rearm(pdc);
}

// Looked at now and then rather than restarted with every packet. [PDS 2.2, 16.1]
void Engine::on_liveness(Instant now, Pdc& pdc) {
  const TxHalf& tx = pdc.tx;
  if (pdc.is_unproven()) {  // it is asked for nothing, and forgotten when its SYN packets can no longer come
    const Instant end = pdc.heard_at + openings_.memory();
    return end <= now ? retire_unproven(now, pdc)
                      : scheduler_.set_timer(pdc, PdcTimer::kLiveness, end);
  }
  const bool is_busy = pdc.has_tx_work() || pdc.has_close_psn;
  const Duration idle_limit = pdc.is_initiator ? config_.pdc_idle_time : config_.pdc_idle_time * 2;
  Instant next = Instant::never();
  // Nothing that draws an answer is under way: a read whose requests are all answered waits for its data, or the CCC for credit.
  // Ask now and then, or a target that died would keep both waiting for ever.
  const bool wants_credit = tx.credit_asked_at > pdc.heard_at;
  const bool only_waits = tx.unacked == 0 && (is_busy || pdc.locks > 0 || wants_credit);
  // Told to come back later, we are the silent ones: the time of a pause does not count. [PDS 13.2] Nor does the time in which a
  // PDC that is not open yet sends nothing, because others of its CCC use up the window or there is no credit.
  if ((tx.paused_count > 0 && tx.paused_count == tx.unacked) || (only_waits && pdc.peer_id == 0))
    pdc.busy_since = now;
  if ((is_busy || only_waits) && config_.peer_timeout > Duration{}) {
    Instant silent_since = std::max(pdc.heard_at, pdc.busy_since);
    if (!is_busy && pdc.locks == 0) silent_since = tx.credit_asked_at;
    if (now - silent_since >= config_.peer_timeout) return fail(now, pdc, PdsError::kPeerSilent);
    next = silent_since + config_.peer_timeout;
    if (only_waits) {
      const Duration longest = config_.peer_timeout / 4;
      const auto ask_after = [&] {
        return pdc.locks > 0 ? std::min(longest, window_.rto(pdc, 0) * (1 << tx.times_asked))
                             : longest;
      };
      if (pdc.peer_id != 0 && now - std::max(pdc.heard_at, tx.asked_at) >= ask_after()) {
        scheduler_.want_control(pdc, kSendProbe);
        pdc.tx.asked_at = now;
        if (tx.times_asked < 12) ++pdc.tx.times_asked;
      }
      next = std::min(next, now + ask_after());
    }
  }
  if (idle_limit > Duration{}) {
    Instant idle_since = std::max(pdc.active_at, pdc.heard_at);
    if (is_busy || pdc.locks > 0) idle_since = now;
    if (now - idle_since >= idle_limit) {
      // The Close Command is work like any other: a peer that is silent while it is repeated is looked at again.
      if (config_.peer_timeout > Duration{})
        scheduler_.set_timer(pdc, PdcTimer::kLiveness, now + config_.peer_timeout);
      return begin_close(now, pdc);
    }
    next = std::min(next, idle_since + idle_limit);
  }
  scheduler_.set_timer(pdc, PdcTimer::kLiveness, next);
}

}  // namespace uet::pds
