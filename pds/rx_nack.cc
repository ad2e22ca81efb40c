#include "pds/rx_nack.h"

#include "lib/base/planted.h"
#include "pds/backoff.h"
#include "pds/nack_rules.h"

namespace uet::pds {

namespace {

bool is_normal_class(NackCode code) {
  return rule_of(code).reaction != Reaction::kFail;
}

}  // namespace

void NackIntake::on_packet(Instant now, const net::RxPacket& rx) {
  const auto bytes = rx.packet.bytes();
  const auto drop = [&](DropReason reason, std::uint16_t pdcid = 0, Psn psn = {}) {
    trace_.drop(now, reason, bytes.size(), pdcid, psn);
  };
  const bool is_ccx = static_cast<wire::PdsType>(bytes[0] >> 3) == wire::PdsType::kNackCcx;
  if (bytes.size() < (is_ccx ? wire::PdsNackCcx::kSize : wire::PdsNack::kSize))
    return drop(DropReason::kTruncated);
  if (env_.is_trimmed(rx)) return drop(DropReason::kTrimmed);
  const auto h = wire::decode<wire::PdsNack>(bytes.data());
  if (h.nt) return rudi_.on_nack(now, rx, h);
  Pdc* pdc = table_.by_id(h.dpdcid);
  if (pdc == nullptr) return drop(DropReason::kUnknownPdc, h.dpdcid, h.nack_psn);
  if (pdc->peer != rx.source || (h.spdcid != 0 && pdc->peer_id != 0 && pdc->peer_id != h.spdcid))
    return drop(DropReason::kPeerMismatch, h.dpdcid, h.nack_psn);
  // Peers answer control packets that they do not know so, in the name of the PDC or of none. It says nothing about any PSN, but it
  // proves that they hear us. [PDS 14.2]
  if (h.nack_code == NackCode::kUnexpEvent && h.nack_psn == Psn(0) &&
      (h.spdcid == 0 || !pdc->tx.is_outstanding(h.nack_psn))) {
    if (pdc->unasked > 0) liveness_.prove(now, *pdc);
    return drop(DropReason::kUnknownControlNack, h.dpdcid);
  }
  // Whatever the code: a PSN that is not outstanding changes nothing. [PDS 19 R7]
  if (!pdc->tx.is_outstanding(h.nack_psn) || tx_blocks_.at(pdc->tx.ring, h.nack_psn).is_acked())
    return drop(DropReason::kNackNotOutstanding, h.dpdcid, h.nack_psn);
  // A PDC that has moved uses some of its PSNs again: what an earlier start was told is no word about this one. [decision 166]
  if (h.nack_code == NackCode::kNewStartPsn && pdc->start_changes > 0 && rx.is_overtaken &&
      env_.guard != nullptr && env_.guard->knows_order())
    return drop(DropReason::kStaleNack, h.dpdcid, h.nack_psn);
  trace_.emit(now, EventId::kNackReceived, pdc->id, h.nack_psn,
              static_cast<std::uint64_t>(h.nack_code));
  env_.nack_counts.add(NackWay::kReceived, h.nack_code, pdc->ref());
  if (pdc->peer_id == 0 && h.spdcid != 0 && is_normal_class(h.nack_code) &&
      h.nack_code != NackCode::kNewStartPsn)
    liveness_.learn_peer(now, *pdc, h.spdcid);
  Liveness::lives(now, *pdc);
  on_nack(now, *pdc, h, env_.meta_of(now, rx));
}

void NackIntake::on_nack(Instant now, Pdc& pdc, const wire::PdsNack& nack, const RxMeta& meta) {
  const CodeRule rule = rule_of(nack.nack_code);
  TxRecord& record = tx_blocks_.at(pdc.tx.ring, nack.nack_psn);
  const PdcRef ref = pdc.ref();
  // A peer that refuses a packet has spoken of it; one that only misses it has not.
  const bool is_refusal = rule.reaction == Reaction::kPause ||
                          rule.reaction == Reaction::kPauseLong ||
                          rule.cause != cc::NackCause::kOther;
  if (is_refusal && nack.nack_psn == pdc.tx.left_edge) pdc.tx.repeats = 0;
  switch (rule.reaction) {
    case Reaction::kResend:
      if (resend_now(now, pdc, nack.nack_psn, record, nack, meta) &&
          rule.cause != cc::NackCause::kOther)
        after_trim(now, pdc, nack.nack_psn, record);
      break;
    case Reaction::kPause:
    case Reaction::kPauseLong:
      pause(now, pdc, nack.nack_psn, record, nack, meta);
      break;
    case Reaction::kGoBack:
      on_rod_ooo(now, pdc, nack);
      break;
    case Reaction::kWait:
      Liveness::heard(now, pdc);
      on_ses_busy(now, pdc, record);
      break;
    case Reaction::kNewStart:
      Liveness::heard(now, pdc);
      if (!renumbering_.on_new_start(now, pdc, Psn(nack.payload)))
        return closing_.fail(now, pdc, PdsError::kNackExhausted);
      break;
    case Reaction::kIgnore:
      trace_.drop(now, DropReason::kReservedNack, 0, pdc.id, nack.nack_psn);
      break;
    case Reaction::kFail:
      if (nack.nack_code == NackCode::kInvalidSyn && pdc.start_changes > 0 &&
          pdc.state != PdcState::kCloseAckWait) {
        if (!renumbering_.on_invalid_syn(now, pdc, nack.nack_psn))
          return closing_.fail(now, pdc, PdsError::kNackExhausted);
        break;
      }
      return on_fatal(now, pdc, nack, rule.error);
  }
  if (!table_.is_alive(ref)) return;
  if (Congestion* congestion = pdc.tx.cc.if_any())
    scheduler_.after_congestion_event(now, *congestion);
}

namespace {

/// A packet that left before `psn`, once, may have its own answer on the way: paths differ.
bool is_behind_unheard(const TxBlockPool& blocks, const TxHalf& tx, Psn psn) {
  for (Psn before = tx.left_edge; before.is_before(psn); ++before) {
    const TxRecord& record = blocks.at(tx.ring, before);
    if (record.message != nullptr && record.cc.resent == 0 && !record.waits_for_resend() &&
        !record.is_acked() && !record.has_arrived())
      return true;
  }
  return false;
}

}  // namespace

// Nothing is outstanding but the Close Command when the target says that it does not know the PDC: it has freed it before. Any
// other word about a Close Command ends the PDC in error, though no message is left to fail. [PDS 16.2]
void NackIntake::on_fatal(Instant now, Pdc& pdc, const wire::PdsNack& nack, PdsError error) {
  const bool is_unknown = nack.nack_code == NackCode::kInvDpdcid;
  if (pdc.state == PdcState::kCloseAckWait && is_unknown) return closing_.on_acknowledged(now, pdc);
  // What becomes of that one says more: refused as well, nothing behind it was taken. Its own timeout ends the wait.
  if (is_unknown && is_behind_unheard(tx_blocks_, pdc.tx, nack.nack_psn))
    return trace_.drop(now, DropReason::kStaleNack, 0, pdc.id, nack.nack_psn);
  // Of the packet that it names a NACK says that it was not taken; of those behind it only when there is no PDC for them either.
  const bool speaks_of_all = is_unknown || nack.nack_code == NackCode::kPdcHdrMismatch ||
                             nack.nack_code == NackCode::kClosing ||
                             nack.nack_code == NackCode::kInvalidSyn;
  const TxRecord& record = tx_blocks_.at(pdc.tx.ring, nack.nack_psn);
  closing_.fail(now, pdc, error,
                Closing::Refused{nack.nack_psn, speaks_of_all && record.cc.resent == 0});
}

namespace {

/// True when the NACK answers an older copy than the one in the network. [PDS 13.2]
bool is_stale(Instant now, const TxRecord& record, bool retx_echo, const cc::Ccc& ccc) {
  if (record.waits_for_resend()) return true;  // that transmission was dealt with already
  if (record.cc.resent == 0) return false;
  if (!retx_echo) return true;
  // A NACK of an earlier copy can still be under way only where that copy was declared lost without feedback. Trimmed headers have
  // strict priority, so their NACKs return faster than the base RTT of full packets: against all of it, the NACK of a second trim
  // would be attributed to the first transmission. Base RTT has a floor, below which answers may be back as well: each one would
  // pass for that of the copy before.
  const bool earlier_is_unheard = record.cc.resent > 1 && !record.was_refused();
  const Duration rtt = std::min(ccc.smoothed_rtt(), ccc.base_rtt());
  return earlier_is_unheard && now - record.cc.sent_at < rtt / 2;
}

/// The same for a NACK that no packet drew: a destination that infers a loss cannot echo which copy it misses. One that left less
/// than a round trip ago may still be on its way. [PDS 17.1]
bool is_under_way(Instant now, const TxRecord& record, Duration rtt) {
  if (record.waits_for_resend()) return true;
  return record.cc.resent > 0 && now - record.cc.sent_at < rtt;
}

}  // namespace

/// Closes the transmission in congestion control and marks the packet. False when the NACK was
/// stale.
bool NackIntake::resend_now(Instant now, Pdc& pdc, Psn psn, TxRecord& record,
                            const wire::PdsNack& nack, const RxMeta& meta) {
  if (record.message == nullptr) {  // a control packet is not congestion controlled
    loss_.queue_resend(pdc, psn, record, TxEvent::kRefused);
    return true;
  }
  cc::Ccc& ccc = *pdc.tx.cc.of(*record.message).ccc;
  // An answer to our ACK Request speaks about the PSN, not about a copy of it.
  const bool is_answer = was_asked(record.state()) && (nack.nack_code == NackCode::kPktNotRcvd ||
                                                       nack.nack_code == NackCode::kAckWithData);
  const bool is_inferred = nack.nack_code == NackCode::kRcvrInferLoss;
  const bool is_old = is_inferred ? is_under_way(now, record, ccc.smoothed_rtt())
                                  : is_stale(now, record, nack.retx, ccc);
  if (!is_answer && is_old) {
    trace_.drop(now, DropReason::kStaleNack, 0, pdc.id, psn);
    return false;
  }
  // Not before: the tail that is repeated faster than its NACKs come back draws stale ones only. If those started the count of
  // repetitions anew, no copy would ever be old enough for its own NACK to end in a pause.
  Liveness::heard(now, pdc);
  if (is_answer) {
    loss_.mark_lost(now, pdc, psn, record, false);
    return true;
  }
  cc::NackSignal signal;
  signal.arrived_at = now;
  signal.cause = rule_of(nack.nack_code).cause;
  signal.ecn = nack.m;
  signal.retx_echo = nack.retx || is_inferred;
  signal.entropy = meta.entropy;
  signal.pdc_exists = nack.spdcid != 0;
  if (!ccc.on_nack(now, record.cc, pdc.tx.share, signal)) {
    trace_.drop(now, DropReason::kStaleNack, 0, pdc.id, psn);
    return false;
  }
  if (is_inferred) {
    pdc.tx.peer_holds = true;
    loss_.note_loss(now, pdc.tx.cc.of(*record.message));
  }
  loss_.queue_resend(pdc, psn, record, TxEvent::kRefused);
  // A receiver that infers losses holds what came after the gap; all others have dropped it.
  // [PDS 17.1]
  if (pdc.is_rod() && nack.nack_code != NackCode::kRcvrInferLoss)
    loss_.go_back(now, pdc, psn + 1, false);
  return true;
}

// Short of something over there: the same PSN again after a pause. [PDS 13.2]
void NackIntake::pause(Instant now, Pdc& pdc, Psn psn, TxRecord& record, const wire::PdsNack& nack,
                       const RxMeta& meta) {
  const CodeRule rule = rule_of(nack.nack_code);
  if (nack.nack_code == NackCode::kPsnOorWindow && psn.is_at_or_before(pdc.tx.cack)) return;
  if (!resend_now(now, pdc, psn, record, nack, meta)) return;
  if (record.nack_cnt < 255) ++record.nack_cnt;
  if (config_.is_above_nack_limit(record.nack_cnt)) return closing_.fail(now, pdc, rule.error);
  // A place in a table comes free later than a buffer, so for places each pause is longer than the one before; for the rest only
  // when it was short for unusually long. But as with timeouts no longer than rto_max: places come free in milliseconds, and who
  // has waited for long must not ask less often than newcomers. See docs/decisions/0083 and 0058.
  constexpr unsigned kUsual = 8;
  const unsigned steady = rule.reaction == Reaction::kPauseLong ? 1 : kUsual;
  const Duration longest = std::max(config_.nack_retx_time, config_.rto_max);
  const Duration wait = longer_each_time(config_.nack_retx_time, record.nack_cnt, steady, longest);
  const bool wants_place = nack.nack_code == NackCode::kNoGtdDelAvail;
  loss_.hold_back(pdc, psn, record, now + wait,
                  wants_place ? TxEvent::kPausedForPlace : TxEvent::kPaused);
  if (wants_place) clear_.owe_now(pdc);
}

// A trimmed packet is retransmitted at once, unless that was in vain many times in a row.
void NackIntake::after_trim(Instant now, Pdc& pdc, Psn psn, TxRecord& record) {
  if (record.message == nullptr) return;
  if (record.trim_cnt < 255) ++record.trim_cnt;
  if (record.trim_cnt <= kTrimsAnsweredAtOnce) return;
  const Duration wait = longer_each_time(round_trip(pdc, config_), record.trim_cnt,
                                         kTrimsAnsweredAtOnce + 1, config_.rto_max);
  loss_.hold_back(pdc, psn, record, now + wait, TxEvent::kPaused);
}

// The receiver has everything below Expected_PSN and dropped what came after the gap. [PDS 17.1] Some receivers say in its place how
// far they have come, or nothing: what is no PSN of ours below the one refused is not Expected_PSN, and the gap may begin with the
// oldest packet that has no answer. [WIRE 4.10]
void NackIntake::on_rod_ooo(Instant now, Pdc& pdc, const wire::PdsNack& nack) {
  TxHalf& tx = pdc.tx;
  const Psn named(nack.payload);
  const bool names_gap = named.is_after(tx.cack) && named.is_before(nack.nack_psn);
  const Psn expected = names_gap ? named : tx.left_edge;
  // The Close Command left when everything before it was acknowledged. A target that misses some of that would refuse it for
  // ever: it has acknowledged what never came, or its ACKs were forged. [PDS 16.2]
  if (pdc.is_rod() && pdc.state == PdcState::kCloseAckWait && nack.nack_psn == pdc.close_psn &&
      named.is_before(pdc.close_psn))
    return closing_.fail(now, pdc, PdsError::kPeerFailed);
  // Anything else about a Close Command says nothing, and must be no sign of life each time: its timeouts end the PDC.
  const bool says_nothing = pdc.state == PdcState::kCloseAckWait && named != pdc.close_psn;
  if (!pdc.is_rod() || says_nothing)
    return trace_.drop(now, DropReason::kNackNotOutstanding, 0, pdc.id, named);
  if (expected.is_before(tx.left_edge)) return;
  // Refused for lack of something and waiting: the gap will be filled when the pause is over.
  if (tx_blocks_.at(tx.ring, expected).is_paused())
    return trace_.drop(now, DropReason::kStaleNack, 0, pdc.id, expected);
  // One round per round trip: what was sent again less than one ago may still be on its way. Each copy of a window can draw many
  // such NACKs, each naming another gap.
  const Duration round = base::planted(base::PlantedBug::kNullContext)
                             ? tx.cc.if_any()->ccc->base_rtt()
                             : round_trip(pdc, config_);
  if (is_under_way(now, tx_blocks_.at(tx.ring, expected), round))
    return trace_.drop(now, DropReason::kStaleNack, 0, pdc.id, expected);
  Liveness::heard(now, pdc);
  tx.peer_holds = false;
  if (TxRecord& first = tx_blocks_.at(tx.ring, expected);
      first.message == nullptr && !first.is_acked())
    loss_.queue_resend(pdc, expected, first, TxEvent::kRefused);
  loss_.go_back(now, pdc, expected, false);
}

// It is there; only its response takes long. Sending it again would only draw the next NACK of this
// kind. [PDS 14.2, 0x18]
void NackIntake::on_ses_busy(Instant now, Pdc& pdc, TxRecord& record) {
  TxHalf& tx = pdc.tx;
  if (tx.ses_busy_since.is_never()) tx.ses_busy_since = now;
  if (config_.ses_procg_limit > Duration{} && now - tx.ses_busy_since >= config_.ses_procg_limit)
    return closing_.fail(now, pdc, PdsError::kRtoExhausted);
  if (record.message != nullptr) tx.cc.of(*record.message).ccc->on_held(now, record.cc, tx.share);
  loss_.note_arrival(now, pdc, record, TxEvent::kBusy);
  // The timeout that led here is taken back: a busy SES is not a lost packet.
  if (record.rto_cnt > 1) --record.rto_cnt;
}

}  // namespace uet::pds
