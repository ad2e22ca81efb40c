#include "pds/rx_request.h"

namespace uet::pds {

void RequestIntake::on_packet(Instant now, net::RxPacket& rx, bool has_cc_state) {
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
  in.meta = env_.meta_of(now, rx);
  in.meta.bytes = static_cast<std::uint32_t>(in.body.size());
  in.meta.retx = h.retx;
  in.meta.ack_now = h.ar || h.retx || h.syn || (in.meta.ecn && config_.ack_on_ecn);
  in.trimmed = env_.is_trimmed(rx);
  in.overtaken = rx.is_overtaken;
  in.last_hop = rx.tos.dscp() == config_.dscp_trimmed_last_hop;
  wire::PdsRequestCc cc_state;
  if (has_cc_state) cc_state = wire::decode<wire::PdsRequestCc>(bytes.data());
  if (in.trimmed && env_.guard != nullptr) [[unlikely]]
    return sequenced_.on_trim_hint(now, in);
  if (in.trimmed) [[unlikely]]
    sequenced_.on_trimmed(now, in);
  else
    sequenced_.on_packet(now, in);
  // Afterwards, so that the first packet of a PDC counts.
  if (has_cc_state) credit_.note_demand(now, in, cc_state.ccc_id, cc_state.credit_target);
}

}  // namespace uet::pds
