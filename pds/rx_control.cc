#include "pds/rx_control.h"

namespace uet::pds {

namespace {

constexpr bool is_sequenced(ControlType type) {
  return type == ControlType::kNoop || type == ControlType::kNegotiation ||
         type == ControlType::kCloseCommand || type == ControlType::kCloseRequest;
}
constexpr bool may_open(ControlType type) {
  return type == ControlType::kNoop || type == ControlType::kNegotiation;
}

// The PSN that an unsequenced control packet speaks of can be one of this PDC. Identifiers alone are no evidence. [PDS 19 R5]
bool is_believable(const Pdc& pdc, const wire::PdsControl& header) {
  const auto is_near = [](Psn psn, Psn anchor) {
    const std::int32_t d = psn.distance_from(anchor);
    return d <= static_cast<std::int32_t>(kMaxWindow) &&
           d >= -static_cast<std::int32_t>(kMaxWindow);
  };
  switch (header.ctl_type) {
    case ControlType::kAckRequest:
      return is_near(header.psn, pdc.rx.cack);
    case ControlType::kClearCommand:
      return is_near(Psn(header.payload), pdc.rx.cack);
    case ControlType::kClearRequest:
      return is_near(Psn(header.payload), pdc.tx.cack);
    default:  // a Probe only wishes for a SACK base, credit counts bytes
      return true;
  }
}

}  // namespace

void ControlIntake::on_packet(Instant now, const net::RxPacket& rx) {
  const auto bytes = rx.packet.bytes();
  if (bytes.size() < wire::PdsControl::kSize)
    return trace_.drop(now, DropReason::kTruncated, bytes.size());
  if (env_.is_trimmed(rx)) return trace_.drop(now, DropReason::kTrimmed, bytes.size());
  const auto h = wire::decode<wire::PdsControl>(bytes.data());
  if (static_cast<unsigned>(h.ctl_type) > static_cast<unsigned>(ControlType::kNegotiation))
    return trace_.drop(now, DropReason::kBadControlType, bytes.size());
  trace_.emit(now, EventId::kControlReceived, h.syn ? 0 : h.dpdcid, h.psn,
              static_cast<std::uint64_t>(h.ctl_type), h.payload);
  if (h.syn && !may_open(h.ctl_type))
    return trace_.drop(now, DropReason::kSynNotAllowed, bytes.size());

  RxMeta meta = env_.meta_of(now, rx);
  meta.retx = h.retx;
  meta.ack_now = true;
  Arrival in;
  in.source = rx.source;
  in.is_control = true;
  in.control = h.ctl_type;
  in.retx = h.retx;
  in.ar = h.ar;
  in.syn = h.syn;
  in.psn = h.psn;
  in.spdcid = h.spdcid;
  in.dpdcid = h.dpdcid;
  in.psn_offset = h.dpdcid & kMaxSynOffset;
  in.meta = meta;
  if (is_sequenced(h.ctl_type)) {
    // The mode is only said by those that may open a PDC; of the others it is the PDC's. [WIRE 4.4]
    in.mode = h.isrod ? Mode::kRod : Mode::kRud;
    if (!may_open(h.ctl_type))
      if (const Pdc* pdc = table_.by_id(h.dpdcid)) in.mode = pdc->mode;
    return sequenced_.on_packet(now, in);
  }
  on_unsequenced(now, h, in, bytes.size());
}

void ControlIntake::on_unsequenced(Instant now, const wire::PdsControl& h, const Arrival& in,
                                   std::size_t bytes) {
  Pdc* pdc = table_.by_id(h.dpdcid);
  if (pdc == nullptr || pdc->state == PdcState::kPending) {
    trace_.drop(now, DropReason::kUnknownPdc, bytes, h.dpdcid, h.psn);
    if (h.ctl_type == ControlType::kAckRequest) nacks_.tell(now, in, nullptr, Refusal::kUnknownPdc);
    return;
  }
  if (pdc->peer != in.source || h.spdcid == 0 || pdc->peer_id != h.spdcid)
    return trace_.drop(now, DropReason::kPeerMismatch, bytes, h.dpdcid, h.psn);
  if (!is_believable(*pdc, h))
    return trace_.drop(now, DropReason::kPsnBeyondWindow, bytes, h.dpdcid, h.psn);
  Liveness::heard(now, *pdc);
  liveness_.prove(now, *pdc);
  switch (h.ctl_type) {
    case ControlType::kAckRequest:
      return on_ack_request(now, *pdc, h, in.meta);
    case ControlType::kClearCommand: {
      const Psn before = pdc->rx.cack;
      receiver_.accept_clear(now, *pdc, Psn(h.payload));
      // The source may wait for the window that this opens. [PDS 11.2]
      if (pdc->rx.cack != before) receiver_.queue_update(*pdc, in.meta);
      if (pdc->state == PdcState::kClosing) closing_.finish_if_answered(now, *pdc);
      return;
    }
    case ControlType::kClearRequest:
      return clear_.on_request(now, *pdc, Psn(h.payload));
    case ControlType::kProbe:
      return on_probe(now, *pdc, h, in.meta);
    case ControlType::kCredit:
      return on_credit(now, *pdc, h.payload >> 8);
    case ControlType::kCreditRequest:
      return credit_.on_request(now, *pdc, h.payload);
    default:
      return;
  }
}

// "What about this PSN?" The answer never changes the tracker. [PDS 15]
void ControlIntake::on_ack_request(Instant now, Pdc& pdc, const wire::PdsControl& header,
                                   const RxMeta& meta) {
  switch (classify(pdc, header.psn)) {
    case PsnClass::kFinished:
      return receiver_.queue_finished_ack(pdc, header.psn, meta);
    case PsnClass::kKnown:
      return receiver_.answer_known(now, pdc, header.psn, meta);
    case PsnClass::kNew:
      return nacks_.notify(now, pdc, header.psn, Notice::kMissing, meta);
    case PsnClass::kBeyond:
      return trace_.drop(now, DropReason::kPsnBeyondWindow, 0, pdc.id, header.psn);
    case PsnClass::kBelowStart:
      return trace_.drop(now, DropReason::kPsnBelowStart, 0, pdc.id, header.psn);
    case PsnClass::kTooOld:
      return trace_.drop(now, DropReason::kPsnTooOld, 0, pdc.id, header.psn);
  }
}

void ControlIntake::on_probe(Instant now, Pdc& pdc, const wire::PdsControl& header,
                             const RxMeta& meta) {
  RxHalf& rx = pdc.rx;
  reorder_.report_all_gaps(now, pdc, meta);
  rx.wants_probe_answer = true;
  rx.probe_opaque = header.probe_opaque;
  rx.probe_base = Psn(header.payload);
  rx.probe_meta = meta;
  scheduler_.list_control(pdc);
}

/// A grant for us as a source.
void ControlIntake::on_credit(Instant now, Pdc& pdc, std::uint32_t credit_units) {
  Congestion* congestion = pdc.tx.cc.if_any();
  if (congestion == nullptr) return trace_.drop(now, DropReason::kRoleMismatch, 0, pdc.id);
  congestion->ccc->on_credit(now, credit_units);
  scheduler_.after_congestion_event(now, *congestion);
}

}  // namespace uet::pds
