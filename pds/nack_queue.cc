#include "pds/nack_queue.h"

namespace uet::pds {

void NackQueue::refuse(Instant now, const Arrival& in, const Pdc* pdc, Refusal refusal,
                       std::uint32_t payload) {
  const std::uint16_t id = pdc != nullptr ? pdc->id : in.syn ? 0 : in.dpdcid;
  trace_.drop(now, rule_of(refusal).reason, in.body.size(), id, in.psn);
  tell(now, in, pdc, refusal, payload);
}

void NackQueue::tell(Instant now, const Arrival& in, const Pdc* pdc, Refusal refusal,
                     std::uint32_t payload) {
  const auto code = rule_of(refusal).nack;
  if (!code) return;
  wire::PdsNack header;
  header.nack_code = *code;
  header.nack_psn = in.psn;
  header.m = in.meta.ecn;
  header.retx = in.retx;
  header.spdcid = pdc != nullptr ? identifier_of(*pdc) : 0;
  header.dpdcid = in.spdcid;
  header.payload = payload;
  add(now, in.source, in.meta, header, header.spdcid != 0, pdc);
}

void NackQueue::tell_rudi(Instant now, const net::FabricAddress& source, const RxMeta& meta,
                          const wire::PdsRudi& packet, Refusal refusal) {
  const auto code = rule_of(refusal).nack;
  if (!code) return;
  wire::PdsNack header;
  header.nack_code = *code;
  header.nt = true;
  header.nack_psn = Psn(packet.pkt_id);
  header.m = meta.ecn;
  header.retx = packet.retx;
  add(now, source, meta, header, false);
}

void NackQueue::notify(Instant now, const Pdc& pdc, Psn psn, Notice notice, const RxMeta& meta) {
  wire::PdsNack header;
  header.nack_code = code_of(notice);
  header.nack_psn = psn;
  header.m = meta.ecn;
  header.retx = meta.retx;
  header.spdcid = pdc.id;
  header.dpdcid = pdc.peer_id;
  add(now, pdc.peer, meta, header, true, &pdc);
}

void NackQueue::add(Instant now, const net::FabricAddress& to, const RxMeta& meta,
                    wire::PdsNack header, bool is_live, const Pdc* about) {
  if ((!is_live && !limiter_.allow(now, to)) || queue_.is_full())
    return trace_.drop(now, DropReason::kNackRateLimited, 0, header.spdcid, header.nack_psn);
  queue_.push(
      NackOut{to, meta.entropy, meta.plane, header, about != nullptr ? about->ref() : PdcRef{}});
}

bool NackQueue::poll(Instant now, net::TxPacket& out) {
  if (queue_.is_empty()) return false;
  net::Packet packet = pool_.allocate();
  if (!packet) return false;
  const NackOut nack = queue_.pop();
  wire::emit(nack.header, packet.append(wire::PdsNack::kSize));
  trace_.emit(now, EventId::kNackSent, nack.header.spdcid, nack.header.nack_psn,
              static_cast<std::uint64_t>(nack.header.nack_code));
  env_.nack_counts.add(NackWay::kSent, nack.header.nack_code, nack.about);
  out.packet = std::move(packet);
  out.destination = nack.destination;
  out.entropy = nack.entropy;
  out.plane = nack.plane;
  out.tos.value = env_.control_tos();
  return true;
}

}  // namespace uet::pds
