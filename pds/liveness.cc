#include "pds/liveness.h"

#include <algorithm>

namespace uet::pds {
namespace {

/// A process that was stopped repeats a packet once for all that time. With so many repetitions it is not the clock that speaks.
constexpr std::uint8_t kManyRepeats = 16;
/// Of the time between two questions.
constexpr std::uint8_t kMostDoublings = 12;

}  // namespace

void Liveness::learn_peer(Instant now, Pdc& pdc, std::uint16_t peer_id) {
  pdc.peer_id = peer_id;
  pdc.is_unanswered = false;
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

/// What an end waits for, as one look finds it.
struct Liveness::Wait {
  explicit Wait(const Pdc& pdc)
      : is_busy(pdc.has_tx_work() || pdc.has_close_psn),
        has_locks(pdc.locks > 0),
        wants_credit(pdc.tx.credit_asked_at > pdc.heard_at),
        draws_no_answer(pdc.tx.unacked == 0 && (is_busy || has_locks || wants_credit)) {}

  bool is_busy;       ///< messages, or the close of the PDC
  bool has_locks;     ///< data of reads
  bool wants_credit;  ///< credit, and the peer has said nothing since it was asked
  /// Nothing that draws an answer is under way: a read whose requests are all answered waits for its data, or the CCC for credit.
  /// A target that died would keep both waiting for ever.
  bool draws_no_answer;
};

void Liveness::look(Instant now, Pdc& pdc) {
  if (pdc.is_unproven()) {  // it is asked for nothing, and forgotten when its SYN packets can no longer come
    const Instant end = pdc.heard_at + openings_.memory();
    if (end > now) return scheduler_.set_timer(pdc, PdcTimer::kLiveness, end);
    return ProofRequests::is_awaited(pdc) ? closing_.on_never_proven(now, pdc)
                                          : admission_.retire(now, pdc);
  }
  const Wait wait(pdc);
  // NACK back-off does not count toward peer_timeout: we send nothing, so the peer has nothing to acknowledge. [PDS 13.2] Nor does
  // the time in which a PDC in CREATING sends nothing, because others of its CCC use up the window or there is no credit.
  const bool is_backing_off = pdc.tx.paused_count > 0 && pdc.tx.paused_count == pdc.tx.unacked;
  if (is_backing_off || (wait.draws_no_answer && pdc.peer_id == 0)) pdc.busy_since = now;

  const Instant silence_ends = end_of_silence(now, pdc, wait);
  if (silence_ends <= now) return closing_.fail(now, pdc, PdsError::kPeerSilent);
  const Instant credit_ends = end_of_patience_for_credit(now, pdc);
  if (credit_ends <= now) return closing_.fail(now, pdc, PdsError::kPeerSilent);
  Instant repeats_end = end_of_repeats(now, pdc, wait);
  if (repeats_end <= now && pdc.tx.repeats >= kManyRepeats)
    return closing_.on_timeouts_exhausted(now, pdc);
  repeats_end = std::max(repeats_end, now + config_.rto_max);
  const Instant next_question = ask(now, pdc, wait);
  const Instant idleness_ends = end_of_idleness(now, pdc, wait);
  if (idleness_ends <= now) {
    // The Close Command is work like any other: a peer that is silent while it is repeated is looked at again.
    if (config_.peer_timeout > Duration{})
      scheduler_.set_timer(pdc, PdcTimer::kLiveness, now + config_.peer_timeout);
    return closing_.begin(now, pdc);
  }
  scheduler_.set_timer(
      pdc, PdcTimer::kLiveness,
      std::min({silence_ends, credit_ends, repeats_end, next_question, idleness_ends}));
}

/// When a peer that says nothing more counts as dead. One that never answered is given up by the clock: it may have executed
/// what opened the PDC, and does not remember that for as long as we were stopped.
Instant Liveness::end_of_silence(Instant now, const Pdc& pdc, const Wait& wait) const {
  if (!(wait.is_busy || wait.draws_no_answer)) return Instant::never();
  const bool waits_for_credit_alone = !wait.is_busy && !wait.has_locks;
  const Instant since =
      waits_for_credit_alone ? pdc.tx.credit_asked_at : std::max(pdc.heard_at, pdc.busy_since);
  return pdc.peer_id == 0 ? since + Openings::patience(config_) : env_.end_of_patience(now, since);
}

/// When a destination counts as one that never grants credit, although it answers all else: it runs other congestion control, or
/// none that we know.
Instant Liveness::end_of_patience_for_credit(Instant now, const Pdc& pdc) const {
  const Congestion* congestion = pdc.tx.cc.if_any();
  if (congestion == nullptr || (pdc.tx.queue.empty() && pdc.tx.rtx_count == 0))
    return Instant::never();
  return env_.end_of_patience(now, congestion->ccc->refused_credit_since());
}

/// When the oldest packet counts as one that the peer never speaks of, although it lives: no way lets packets of that size
/// through, or the peer takes the PSN for another packet. See docs/decisions/0005.
Instant Liveness::end_of_repeats(Instant now, const Pdc& pdc, const Wait& wait) const {
  const bool is_judged = (wait.is_busy || wait.draws_no_answer) && pdc.tx.repeats > 0;
  return is_judged ? env_.end_of_patience(now, pdc.tx.repeated_since) : Instant::never();
}

/// Asks a peer from which nothing would come by itself; returns when it is to be asked again. Also without a limit on silence:
/// a target that has no proof of us keeps the data back, and its own Probes may be lost; and one that has given up the PDC drops
/// Credit Requests and Probes without a word. What has a PSN it refuses, so a Noop asks it.
Instant Liveness::ask(Instant now, Pdc& pdc, const Wait& wait) {
  TxHalf& tx = pdc.tx;
  const bool has_limit = config_.peer_timeout > Duration{};
  const bool asks_soon = wait.has_locks || wait.wants_credit;
  if (!wait.draws_no_answer || pdc.peer_id == 0 || (!has_limit && !asks_soon))
    return Instant::never();
  const Duration longest = has_limit ? config_.peer_timeout / 4 : config_.rto_max;
  const auto ask_after = [&] {
    return asks_soon ? std::min(longest, window_.rto(pdc, 0) * (1 << tx.times_asked)) : longest;
  };
  if (now - std::max(pdc.heard_at, tx.asked_at) >= ask_after()) {
    scheduler_.want_control(pdc, wait.wants_credit ? kSendNoop : kSendProbe);
    tx.asked_at = now;
    if (tx.times_asked < kMostDoublings) ++tx.times_asked;
  }
  return now + ask_after();
}

/// When a PDC without work is closed. A target waits twice as long: the Close Command is the initiator's to send.
Instant Liveness::end_of_idleness(Instant now, const Pdc& pdc, const Wait& wait) const {
  const Duration limit = pdc.is_initiator ? config_.pdc_idle_time : config_.pdc_idle_time * 2;
  if (limit <= Duration{}) return Instant::never();
  if (wait.is_busy || wait.has_locks) return now + limit;
  return std::max(pdc.active_at, pdc.heard_at) + limit;
}

}  // namespace uet::pds
