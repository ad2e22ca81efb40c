#include "pds/liveness.h"

namespace uet::pds {
namespace {

/// A process that was stopped repeats a packet once for all that time. With so many repetitions it is not the clock that speaks.
constexpr std::uint8_t kManyRepeats = 16;

}  // namespace

void Liveness::learn_peer(Instant now, Pdc& pdc, std::uint16_t peer_id) {
  pdc.peer_id = peer_id;
  Congestion* congestion = pdc.tx.cc.if_any();
  if (congestion != nullptr && congestion->carrier == nullptr) congestion->carrier = &pdc;
  states_.change(now, pdc, PdcInput::kPeerLearnt);
  trace_.emit(now, EventId::kPdcEstablished, pdc.id, pdc.start, peer_id);
  if (pdc.pending_control != 0) scheduler_.list_control(pdc);
  // A control packet that opens a PDC brings no credit and no word for the CCC, which therefore cannot ask: when nothing else
  // is under way, one packet leaves without. [CC 5.3]
  if (pdc.tx.rtx_count > 0 && pdc.tx.rtx_count == pdc.tx.unacked)
    pdc.tx.has_credit_exemption = true;
  scheduler_.wake(pdc);
  if (congestion != nullptr) {
    congestion->ccc->on_pdc_opened();
    if (env_.sends_credit_state) scheduler_.on_congestion_timer(now, *congestion);
  }
  if (pdc.is_close_wanted) closing_.begin(now, pdc);
}

void Liveness::on_proof(Instant now, Pdc& pdc) {
  kept_.on_proven(pdc);
  Pdc* before = table_.find_proven_target(pdc.peer, pdc.peer_id);
  table_.unindex_target(pdc);
  pdc.is_proven = true;
  table_.index_target(pdc);
  openings_.unproven().remove(pdc);
  Scheduler::stop_timer(pdc, PdcTimer::kProof);
  receiver_.release_withheld(pdc);
  credit_.resume(now, pdc);
  if (Congestion* congestion = pdc.tx.cc.if_any()) {
    if (congestion->carrier == nullptr) congestion->carrier = &pdc;
    scheduler_.after_congestion_event(now, *congestion);
  }
  scheduler_.wake(pdc);
  look(now, pdc);
  // Its initiator has started anew: the PDC of its former life will not be heard of again. See docs/decisions/0102.
  if (before != nullptr && before != &pdc && closing_.is_given_up(now, *before))
    closing_.fail(now, *before, PdsError::kPeerSilent);
}

void Liveness::look(Instant now, Pdc& pdc) {
  const TxHalf& tx = pdc.tx;
  if (pdc.is_unproven()) {  // it is asked for nothing, and forgotten when its SYN packets can no longer come
    const Instant end = pdc.heard_at + openings_.memory();
    return end <= now ? admission_.retire(now, pdc)
                      : scheduler_.set_timer(pdc, PdcTimer::kLiveness, end);
  }
  const bool is_busy = pdc.has_tx_work() || pdc.has_close_psn;
  const Duration idle_limit = pdc.is_initiator ? config_.pdc_idle_time : config_.pdc_idle_time * 2;
  Instant next = Instant::never();
  // Nothing that draws an answer is under way: a read whose requests are all answered waits for its data, or the CCC for credit.
  // Ask now and then, or a target that died would keep both waiting for ever.
  const bool wants_credit = tx.credit_asked_at > pdc.heard_at;
  const bool only_waits = tx.unacked == 0 && (is_busy || pdc.locks > 0 || wants_credit);
  // NACK back-off does not count toward peer_timeout: we send nothing, so the peer has nothing to acknowledge. [PDS 13.2] Nor does
  // the time in which a PDC in CREATING sends nothing, because others of its CCC use up the window or there is no credit.
  if ((tx.paused_count > 0 && tx.paused_count == tx.unacked) || (only_waits && pdc.peer_id == 0))
    pdc.busy_since = now;
  if ((is_busy || only_waits) && config_.peer_timeout > Duration{}) {
    Instant silent_since = std::max(pdc.heard_at, pdc.busy_since);
    if (!is_busy && pdc.locks == 0) silent_since = tx.credit_asked_at;
    if (now - silent_since >= config_.peer_timeout)
      return closing_.fail(now, pdc, PdsError::kPeerSilent);
    next = silent_since + config_.peer_timeout;
    // The peer lives and never speaks of the oldest packet: no way lets packets of that size through, or the peer takes the PSN
    // for another packet. See docs/decisions/0005.
    if (tx.repeats > 0) {
      const Instant over = tx.repeated_since + config_.peer_timeout;
      if (over <= now && tx.repeats >= kManyRepeats)
        return closing_.on_timeouts_exhausted(now, pdc);
      next = std::min(next, std::max(over, now + config_.rto_max));
    }
  }
  // Also without a limit on silence: a target that has no proof of us keeps the data back, and its own Probes may be lost; and one that
  // has given up the PDC drops Credit Requests and Probes without a word. What has a PSN it refuses, so a Noop asks it.
  const bool has_limit = config_.peer_timeout > Duration{};
  const bool asks_soon = pdc.locks > 0 || wants_credit;
  if (only_waits && pdc.peer_id != 0 && (has_limit || asks_soon)) {
    const Duration longest = has_limit ? config_.peer_timeout / 4 : config_.rto_max;
    const auto ask_after = [&] {
      return asks_soon ? std::min(longest, window_.rto(pdc, 0) * (1 << tx.times_asked)) : longest;
    };
    if (now - std::max(pdc.heard_at, tx.asked_at) >= ask_after()) {
      scheduler_.want_control(pdc, wants_credit ? kSendNoop : kSendProbe);
      pdc.tx.asked_at = now;
      if (tx.times_asked < 12) ++pdc.tx.times_asked;
    }
    next = std::min(next, now + ask_after());
  }
  if (idle_limit > Duration{}) {
    Instant idle_since = std::max(pdc.active_at, pdc.heard_at);
    if (is_busy || pdc.locks > 0) idle_since = now;
    if (now - idle_since >= idle_limit) {
      // The Close Command is work like any other: a peer that is silent while it is repeated is looked at again.
      if (config_.peer_timeout > Duration{})
        scheduler_.set_timer(pdc, PdcTimer::kLiveness, now + config_.peer_timeout);
      return closing_.begin(now, pdc);
    }
    next = std::min(next, idle_since + idle_limit);
  }
  scheduler_.set_timer(pdc, PdcTimer::kLiveness, next);
}

}  // namespace uet::pds
