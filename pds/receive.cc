// A packet came in: what it is, and which PDC it belongs to. [PDS 6.4, 9.1, 9.2, 13.6]

#include "pds/engine.h"

namespace uet::pds {

bool Engine::is_trimmed(const net::RxPacket& rx) const {
  const std::uint8_t dscp = rx.tos.dscp();
  return dscp == config_.dscp_trimmed || dscp == config_.dscp_trimmed_last_hop;
}

RxMeta Engine::meta_of(Instant now, const net::RxPacket& rx) const {
  RxMeta meta;
  meta.arrived = now;
  meta.entropy = rx.entropy;
  meta.plane = rx.plane;
  meta.ecn = rx.tos.is_congestion_experienced();
  return meta;
}

void Engine::on_packet(Instant now, net::RxPacket rx) {
  using wire::PdsType;
  const auto bytes = std::as_const(rx.packet).bytes();
  if (bytes.size() < wire::PdsUud::kSize)
    return trace_.drop(now, DropReason::kTruncated, bytes.size());
  const auto type = static_cast<PdsType>(bytes[0] >> 3);
  switch (type) {
    case PdsType::kRudReq:
    case PdsType::kRodReq:
      on_request_packet(now, rx, false);
      break;
    case PdsType::kRudCcReq:
    case PdsType::kRodCcReq:
      on_request_packet(now, rx, true);
      break;
    case PdsType::kAck:
    case PdsType::kAckCc:
    case PdsType::kAckCcx:
      on_ack_packet(now, rx);
      break;
    case PdsType::kNack:
    case PdsType::kNackCcx:
      on_nack_packet(now, rx);
      break;
    case PdsType::kControl:
      on_control_packet(now, rx);
      break;
    case PdsType::kRudiReq:
      on_rudi_request(now, rx);
      break;
    case PdsType::kRudiResp:
      on_rudi_response(now, rx);
      break;
    case PdsType::kUudReq:
      on_uud(now, rx);
      break;
    case PdsType::kTss:  // the layer below removes it: one that arrives here was not expected
    default:
      return trace_.drop(now, DropReason::kBadType, bytes.size());
  }
  if (has_new_room_) settle(now);
}

void Engine::on_request_packet(Instant now, net::RxPacket& rx, bool has_cc_state) {
  const auto bytes = std::as_const(rx.packet).bytes();
  const std::size_t header_bytes =
      has_cc_state ? wire::PdsRequestCc::kSize : wire::PdsRequest::kSize;
  if (bytes.size() < header_bytes) return trace_.drop(now, DropReason::kTruncated, bytes.size());
  const auto h = wire::decode<wire::PdsRequest>(bytes.data());
  if (h.next_hdr > NextHdr::kResponseDataSmall || h.next_hdr == NextHdr::kResponse)
    return trace_.drop(now, DropReason::kBadNextHeader, bytes.size());

  Arrival in;
  in.source = rx.source;
  in.mode = h.type == wire::PdsType::kRodReq || h.type == wire::PdsType::kRodCcReq ? Mode::kRod
                                                                                   : Mode::kRud;
  in.next_hdr = h.next_hdr;
  in.retx = h.retx;
  in.ar = h.ar;
  in.syn = h.syn;
  in.has_clear = true;
  in.clear_offset = h.clear_psn_offset;
  in.psn = h.psn;
  in.spdcid = h.spdcid;
  in.dpdcid = h.dpdcid;
  in.psn_offset = h.dpdcid & kMaxSynOffset;
  in.header_bytes = static_cast<std::uint16_t>(header_bytes);
  in.body = bytes.subspan(header_bytes);
  in.packet = &rx.packet;
  in.meta = meta_of(now, rx);
  in.meta.bytes = static_cast<std::uint32_t>(in.body.size());
  in.meta.retx = h.retx;
  in.meta.ack_now = h.ar || h.retx || h.syn || (in.meta.ecn && config_.ack_on_ecn);
  in.trimmed = is_trimmed(rx);
  in.last_hop = rx.tos.dscp() == config_.dscp_trimmed_last_hop;
  wire::PdsRequestCc cc_state;
  if (has_cc_state) cc_state = wire::decode<wire::PdsRequestCc>(bytes.data());
  // Secured, nothing of it was verified.
  if (in.trimmed && guard_ != nullptr) [[unlikely]]
    return on_trim_hint(now, in);
  if (in.trimmed) [[unlikely]]
    on_trimmed(now, in);
  else
    on_sequenced(now, in);
  // Afterwards, so that the first packet of a PDC counts.
  if (has_cc_state && pacer_) note_demand(now, in, cc_state.ccc_id, cc_state.credit_target);
}

// The order of the checks is significant. [PDS 9.2]
Pdc* Engine::find_for(Instant now, const Arrival& in) {
  if (in.syn) return find_for_syn(now, in);
  Pdc* pdc = table_.by_id(in.dpdcid);
  if (pdc == nullptr || pdc->state == PdcState::kPending) {
    trace_.drop(now, DropReason::kUnknownPdc, in.body.size(), in.dpdcid, in.psn);
    nack_for(now, in, nullptr, NackCode::kInvDpdcid);
    return nullptr;
  }
  if (pdc->peer != in.source || (pdc->peer_id != 0 && pdc->peer_id != in.spdcid)) {
    trace_.drop(now, DropReason::kPeerMismatch, in.body.size(), in.dpdcid, in.psn);
    nack_for(now, in, nullptr, NackCode::kPdcHdrMismatch);
    return nullptr;
  }
  if (in.spdcid == 0) {
    trace_.drop(now, DropReason::kPeerMismatch, in.body.size(), in.dpdcid, in.psn);
    return nullptr;
  }
  if (pdc->mode != in.mode) {
    trace_.drop(now, DropReason::kModeMismatch, in.body.size(), in.dpdcid, in.psn);
    nack_for(now, in, pdc, NackCode::kPdcModeMismatch);
    return nullptr;
  }
  return pdc;
}

Pdc* Engine::find_for_syn(Instant now, const Arrival& in) {
  if (in.spdcid == 0) {
    trace_.drop(now, DropReason::kPeerMismatch, in.body.size(), 0, in.psn);
    return nullptr;
  }
  Pdc* pdc = table_.find_target(in.source, in.spdcid);
  if (pdc != nullptr && pdc->start != in.start() && pdc->state != PdcState::kPending &&
      is_given_up(now, *pdc)) {
    if (!may_replace(now, *pdc, in)) return nullptr;
    fail(now, *pdc, PdsError::kPeerSilent);
    pdc = nullptr;
  }
  if (pdc == nullptr) return open_target(now, in);
  if (pdc->mode != in.mode) {
    trace_.drop(now, DropReason::kModeMismatch, in.body.size(), pdc->id, in.psn);
    nack_for(now, in, pdc, NackCode::kPdcModeMismatch);
    return nullptr;
  }
  if (pdc->state == PdcState::kPending) return confirm_opening(now, *pdc, in);
  if (pdc->start != in.start()) {
    trace_.drop(now, DropReason::kPsnBelowStart, in.body.size(), pdc->id, in.psn);
    nack_for(now, in, pdc, NackCode::kInvalidSyn);
    return nullptr;
  }
  return pdc;
}

// [PDS 6.4] Every refusal comes before anything is allocated.
Pdc* Engine::open_target(Instant now, const Arrival& in) {
  const auto refuse = [&](DropReason reason, NackCode code, std::uint32_t payload = 0) -> Pdc* {
    trace_.drop(now, reason, in.body.size(), 0, in.psn);
    nack_for(now, in, nullptr, code, payload);
    return nullptr;
  };
  if (tombstones_.contains(now, in.source, in.spdcid, in.start())) {
    trace_.drop(now, DropReason::kStaleSyn, in.body.size(), 0, in.psn);
    return nullptr;
  }
  // Its PDC had to make place before the peer proved that it hears us, which may have delivered this: never again.
  if (openings_.contains(now, in.source, in.spdcid, in.start()))
    return refuse(DropReason::kStaleSyn, NackCode::kClosingInErr);
  // Who closes leaves a tombstone, which nothing may push out early: as many as can close are open. So tables give the rate of
  // openings that they can protect, and the rest waits. See docs/decisions/0048.
  if (!tombstones_.has_room_for(now, table_.target_count() + 1)) [[unlikely]]
    return refuse(DropReason::kNoPdc, NackCode::kNoPdcAvail);
  // No address holds more than half of the places, whatever it has proved.
  const PeerShares::Use* use = shares_.find(in.source);
  if (use != nullptr && use->targets >= unproven_.share())
    return refuse(DropReason::kNoPdc, NackCode::kNoPdcAvail);
  if (!make_place_for_stranger(now) || table_.next_free_id() > now)
    return refuse(DropReason::kNoPdc, NackCode::kNoPdcAvail);
  if (!congestions_.can_attach(in.source, 0, in.mode != Mode::kRod, ccc_reserved_))
    return refuse(DropReason::kNoPdc, NackCode::kNoCccAvail);
  if (trackers_.is_empty()) return refuse(DropReason::kNoTracker, NackCode::kNoBitmap);
  if (in.psn_offset >= limits_.window)
    return refuse(DropReason::kPsnBeyondWindow, NackCode::kPsnOorWindow);
  // Secured, the guard decides between ESTABLISHED and PENDING; without one a SYN is accepted at
  // once. [PDS 6.5]
  if (guard_ != nullptr) {
    if (const auto announced = guard_->on_opening({in.source, in.spdcid, in.start()})) {
      challenge(now, in, *announced);
      return nullptr;
    }
  }
  if (in.mode == Mode::kRod && in.psn_offset != 0)
    return refuse(DropReason::kRodOutOfOrder, NackCode::kRodOoo, in.start().value());

  Pdc& pdc = add_target(now, in, in.start(), PdcInput::kSynAccepted);
  trace_.emit(now, EventId::kPdcOpened, pdc.id, pdc.start, 1, static_cast<std::uint64_t>(pdc.mode));
  on_liveness(now, pdc);
  return &pdc;
}

/// The caller has seen that there is room for it.
Pdc& Engine::add_target(Instant now, const Arrival& in, Psn start, PdcInput how) {
  Pdc* pdc = table_.allocate(now);
  UET_CHECK(pdc != nullptr);
  pdc->peer = in.source;
  pdc->peer_id = in.spdcid;
  pdc->mode = in.mode;
  pdc->is_initiator = false;
  pdc->opened_at = now;
  unproven_.add(*pdc);
  pdc->share = shares_.join(in.source, true);
  table_.index_target(*pdc);
  init_halves(now, *pdc, start);
  change_state(now, *pdc, how);
  ++ccc_reserved_;
  return *pdc;
}

// Only the headers of a trimmed packet can be trusted, so it causes a NACK and nothing else.
// [PDS 13.6]
void Engine::on_trimmed(Instant now, const Arrival& in) {
  trace_.drop(now, DropReason::kTrimmed, in.body.size(), in.syn ? 0 : in.dpdcid, in.psn);
  const NackCode code = in.last_hop ? NackCode::kTrimmedLasthop : NackCode::kTrimmed;
  Pdc* pdc = nullptr;
  if (in.syn) {
    if (in.spdcid == 0) return;
    pdc = table_.find_target(in.source, in.spdcid);
    if (pdc == nullptr || pdc->state == PdcState::kPending) {
      if (!tombstones_.contains(now, in.source, in.spdcid, in.start()))
        nack_for(now, in, nullptr, code);
      return;
    }
    if (pdc->start != in.start() || pdc->mode != in.mode) return;
  } else {
    pdc = find_for(now, in);
    if (pdc == nullptr) return;
  }
  switch (classify(*pdc, in.psn)) {
    case PsnClass::kNew:
      return nack_for(now, in, pdc, code);
    case PsnClass::kBeyond:
      return nack_for(now, in, pdc, NackCode::kPsnOorWindow);
    case PsnClass::kFinished:
      return on_duplicate(now, *pdc, in, true);
    case PsnClass::kKnown:
      return on_duplicate(now, *pdc, in, false);
    case PsnClass::kBelowStart:
    case PsnClass::kTooOld:
      return;
  }
}

}  // namespace uet::pds
