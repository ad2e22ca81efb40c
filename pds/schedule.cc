// Whose turn it is: packets out, timers. [PDS 3.2, 13.7, CC 3.7]

#include "pds/engine.h"

namespace uet::pds {

// Control packets first: they are small, they open windows, and nobody waits for permission to send
// them.
bool Engine::poll_transmit(Instant now, net::TxPacket& out, std::uint8_t free_planes) {
  free_planes_ = free_planes;
  bool sent = poll_nack(now, out);
  if (!sent && !built_.is_empty()) {
    out = built_.pop();
    sent = true;
  }
  if (!sent) {
    const Built control = poll_control(now, out);
    if (control == Built::kNoBuffer) return false;
    sent = control == Built::kPacket;
  }
  if (!sent) {
    // RUDI and UUD take turns with the PDCs, so that neither starves the other.
    rudi_turn_ = !rudi_turn_;
    if (rudi_turn_)
      sent = poll_uud(now, out) || poll_rudi(now, out) || poll_data(now, out);
    else
      sent = poll_data(now, out) || poll_uud(now, out) || poll_rudi(now, out);
  }
  if (has_new_room_) settle(now);
  return sent;
}

// A plane went down or came back: its paths rest until one packet each has shown that they work. [CC 7.8]
void Engine::on_planes_changed(Instant now, std::uint8_t up) {
  planes_up_ = up;
  congestions_.for_each([&](Congestion& c) { c.ccc->on_planes_changed(now, up); });
}

// Round robin over CCCs, and within a CCC over its PDCs, one packet a turn. A CCC that may not send
// leaves the ring and comes back with the next event that can change that.
bool Engine::poll_data(Instant now, net::TxPacket& out) {
  CongestionRing waiting;
  const bool sent = poll_ready(now, out, waiting);
  if (!waiting.empty()) ready_.splice(ready_.begin(), waiting);
  return sent;
}

// `waiting` gets those whose good paths lead through ports that are busy.
bool Engine::poll_ready(Instant now, net::TxPacket& out, CongestionRing& waiting) {
  while (!ready_.empty()) {
    Congestion& congestion = ready_.front();
    ready_.pop_front();
    // While every port with a link is free there is nothing to wait for.
    if (free_planes_ != planes_up_ && congestion.sprayed &&
        congestion.ccc->worthwhile_planes(now, free_planes_) == 0) {
      waiting.push_back(congestion);
      continue;
    }
    while (!congestion.ready.empty()) {
      Pdc& pdc = congestion.ready.front();
      Psn psn;
      const Work work = next_work(now, pdc, psn);
      if (work == Work::kNone) {
        congestion.ready.pop_front();
        continue;
      }
      const ByteCount nominal =
          work == Work::kResend
              ? static_cast<ByteCount>(tx_blocks_.at(pdc.tx.ring, psn).cc.nominal_bytes)
              : nominal_of(pdc, pdc.tx.queue.front(), pdc.tx.queue.front().next_segment);
      if (!congestion.ccc->may_send(nominal) && !pdc.tx.has_free_pass) {
        if (!find_free_pass(now, congestion)) break;
        continue;
      }
      const Built built = send_data(now, pdc, work, psn, out);
      if (built == Built::kNothing) {
        congestion.ready.pop_front();
        continue;
      }
      if (built == Built::kPacket) {
        congestion.ready.pop_front();
        congestion.ready.push_back(pdc);
      }
      ready_.push_back(congestion);
      return built == Built::kPacket;
    }
  }
  return false;
}

// A PDC that is not open yet cannot ask for credit, and when all it sent was refused no timeout runs either: after an RTO one
// packet may leave without. [CC 5.3]
void Engine::arm_free_pass(Instant now, Pdc& pdc) {
  if (pdc.state == PdcState::kCreating && pdc.tx.rtx_count > 0 &&
      pdc.deadline(PdcTimer::kRetransmit).is_never())
    set_timer(pdc, PdcTimer::kRetransmit, now + rto(pdc, 0));
}

// The CCC may not send. One of its PDCs with a free pass comes to the front, wherever it stands; the others wait for theirs.
bool Engine::find_free_pass(Instant now, Congestion& congestion) {
  for (Pdc& pdc : congestion.ready) {
    if (!pdc.tx.has_free_pass) {
      arm_free_pass(now, pdc);
      continue;
    }
    congestion.ready.erase(congestion.ready.iterator_to(pdc));
    congestion.ready.push_front(pdc);
    return true;
  }
  return false;
}

void Engine::wake(Pdc& pdc) {
  Congestion* congestion = pdc.tx.cc.if_any();
  if (congestion == nullptr || (pdc.tx.rtx_count == 0 && pdc.tx.queue.empty())) return;
  if (!pdc.ready_hook.is_linked()) congestion->ready.push_back(pdc);
  wake(*congestion);
}

void Engine::wake(Congestion& congestion) {
  if (!congestion.ready.empty() && !congestion.ready_hook.is_linked()) ready_.push_back(congestion);
}

void Engine::after_congestion_event(Instant now, Congestion& congestion) {
  wake(congestion);
  on_congestion_timer(now, congestion);
}

Pdc* Engine::voice_of(Congestion& congestion) {
  if (congestion.voice == nullptr)
    for (Pdc& pdc : congestion.ready)
      if (pdc.peer_id != 0 && !pdc.is_unproven()) {
        congestion.voice = &pdc;
        break;
      }
  return congestion.voice;
}

// Credit requests and some probes are due by time, not by event. [CC 5.3]
void Engine::on_congestion_timer(Instant now, Congestion& congestion) {
  if (congestion.voice != nullptr && congestion.ccc->poll_probe(now))
    want_control(*congestion.voice, kSendProbe);
  if (const auto demand = congestion.ccc->poll_credit_request(now)) {
    Pdc* voice = voice_of(congestion);
    if (voice != nullptr) {
      voice->tx.credit_demand = *demand;
      want_control(*voice, kSendCreditRequest);
    } else if (!congestion.ready.empty() && congestion.ready.front().tx.unacked == 0) {
      // Another PDC used up the credit and is gone; this one has not been opened yet, and nobody can ask for more before it
      // is. A Noop opens it without credit.
      want_control(congestion.ready.front(), kSendNoop);
    }
  }
  const Instant next = congestion.ccc->next_deadline(congestion.voice != nullptr);
  if (next.is_never()) {
    if (congestion.timer.is_armed()) wheel_.cancel(congestion.timer);
  } else if (!congestion.timer.is_armed() || congestion.timer.when() != next) {
    wheel_.schedule(congestion.timer, std::max(next, now + Duration::from_us(1)));
  }
}

void Engine::set_timer(Pdc& pdc, PdcTimer timer, Instant when) {
  pdc.deadline(timer) = when;
  if (!pdc.timer.is_armed() || when < pdc.timer.when()) wheel_.schedule(pdc.timer, when);
}

void Engine::on_deadline(Instant now) {
  wheel_.advance(now);
  while (base::TimerNode* node = wheel_.pop_due()) {
    auto& timer = static_cast<Timer&>(*node);
    switch (timer.kind) {
      case Timer::Kind::kPdc:
        run_timers(now, *static_cast<Pdc*>(timer.owner));
        break;
      case Timer::Kind::kCongestion: {
        auto& congestion = *static_cast<Congestion*>(timer.owner);
        on_congestion_timer(now, congestion);
        wake(congestion);
        break;
      }
      case Timer::Kind::kRudi:
        on_rudi_timer(now, *static_cast<RudiPacket*>(timer.owner));
        break;
    }
  }
  run_pacer(now);
  tombstones_.expire(now);
  openings_.expire(now);
  if (next_id_at_ <= now) {
    next_id_at_ = Instant::never();
    has_new_room_ = true;
  }
  settle(now);
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
        on_retransmit_timer(now, pdc);
        break;
      case PdcTimer::kClear:
        on_clear_timer(now, pdc);
        break;
      case PdcTimer::kStall:
        on_stall_timer(now, pdc);
        break;
      case PdcTimer::kClose:
        on_close_timer(now, pdc);
        break;
      case PdcTimer::kLiveness:
        on_liveness(now, pdc);
        break;
      case PdcTimer::kTailLoss:
        on_tail_loss(now, pdc);
        break;
      case PdcTimer::kClearRequest:
        on_clear_request_timer(now, pdc);
        break;
      case PdcTimer::kProof:
        on_proof_timer(pdc);
        break;
    }
    if (!table_.is_alive(ref)) return;
  }
  const Instant next = *std::min_element(pdc.deadlines.begin(), pdc.deadlines.end());
  if (!next.is_never()) wheel_.schedule(pdc.timer, next);
}

// Looked at now and then rather than restarted with every packet. [PDS 2.2, 16.1]
void Engine::on_liveness(Instant now, Pdc& pdc) {
  const TxHalf& tx = pdc.tx;
  if (pdc.is_unproven()) {  // it is asked for nothing, and forgotten when its SYN packets can no longer come
    const Instant end = pdc.heard_at + opening_memory();
    return end <= now ? retire_unproven(now, pdc) : set_timer(pdc, PdcTimer::kLiveness, end);
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
    if (only_waits && pdc.peer_id != 0) {
      const Duration longest = config_.peer_timeout / 4;
      const auto ask_after = [&] {
        return pdc.locks > 0 ? std::min(longest, rto(pdc, 0) * (1 << tx.times_asked)) : longest;
      };
      if (now - std::max(pdc.heard_at, tx.asked_at) >= ask_after()) {
        want_control(pdc, kSendProbe);
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
        set_timer(pdc, PdcTimer::kLiveness, now + config_.peer_timeout);
      return begin_close(now, pdc);
    }
    next = std::min(next, idle_since + idle_limit);
  }
  set_timer(pdc, PdcTimer::kLiveness, next);
}

void Engine::settle(Instant now) {
  if (!has_new_room_) return;
  has_new_room_ = false;
  if (!is_short_of_room_) return;
  is_short_of_room_ = false;
  upper_.on_resume(now);
}

}  // namespace uet::pds
