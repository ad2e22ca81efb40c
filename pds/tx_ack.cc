#include "pds/tx_ack.h"

#include <cstring>
#include <type_traits>

namespace uet::pds {

bool AckBuilder::has_ack_to_send(const Pdc& pdc) {
  if (pdc.rx.wants_update || pdc.rx.wants_probe_answer) return true;
  const RxRecord* record = responses_.front(pdc.rx.acks);
  if (record == nullptr) return false;
  // ROD: the ACK of n waits for the answers to everything before n. [PDS 17.1]
  return !pdc.is_rod() || record->urgent || record->psn.is_at_or_before(pdc.rx.answered);
}

Built AckBuilder::build(Instant now, Pdc& pdc, net::TxPacket& out) {
  RxHalf& rx = pdc.rx;
  AckShape shape;
  RxRecord* record = responses_.front(rx.acks);
  if (record != nullptr && pdc.is_rod() && !record->urgent && record->psn.is_after(rx.answered))
    record = nullptr;
  if (record != nullptr) {
    shape.ack_psn = record->psn;
    shape.meta = record->meta;
    shape.record = record;
    shape.sack_near = record->psn;
  } else if (rx.wants_probe_answer) {
    shape.ack_psn = rx.cack;
    shape.meta = rx.probe_meta;
    shape.is_probe_answer = true;
    shape.opaque = rx.probe_opaque;
    shape.sack_near = rx.probe_base;
  } else if (rx.wants_update) {
    shape.ack_psn = rx.cack;
    shape.meta = rx.last_meta;
    shape.meta.retx = false;
    shape.sack_near = rx.max_rcvd;
  } else {
    return Built::kNothing;
  }
  const Built built = emit(now, pdc, shape, out);
  if (built != Built::kPacket) return built;
  rx.ack_gen_count = 0;
  rx.ce_seen = false;
  if (record != nullptr) {
    responses_.pop(rx.acks);
    record->urgent = false;
    if (record->state == RxRecord::State::kAckOnly) responses_.remove(*record);
  } else if (shape.is_probe_answer) {
    rx.wants_probe_answer = false;
  } else {
    rx.wants_update = false;
  }
  return built;
}

Built AckBuilder::build_last(Instant now, Pdc& pdc, const std::optional<Psn>& expected,
                             net::TxPacket& out) {
  AckShape shape;
  shape.ack_psn = pdc.close_psn;
  shape.meta = pdc.close_meta;
  shape.sack_near = pdc.close_psn;
  shape.expected_psn = expected;
  return emit(now, pdc, shape, out);
}

/// PDCs of one source share its window: what one of them fills the ACKs of all of them tell, or one would take back what the other
/// said. A source that has proved nothing may be forged, and slows no other down.
void AckBuilder::on_resource(const Pdc& pdc, std::uint32_t resource) {
  has_slowed_ = true;
  if (pdc.is_unproven()) return;
  std::uint32_t& watched = peers_.at(pdc.share).resource;
  // Of several the one that is fullest: a window is one, and the others would take back what that one asked for.
  if (watched == resource) return;
  if (watched == 0 || upper_.fill_of(resource) >= upper_.fill_of(watched)) watched = resource;
}

// Once a window penalty has been signalled for a resource, the ACKs of all its sources carry the restore flag: ACKs get lost.
// [CC 4.8]
cc::WindowAdvice AckBuilder::window_advice_for(const Pdc& pdc) {
  std::uint32_t& resource = peers_.at(pdc.share).resource;
  if (resource == 0) return {.penalty = 0, .restore = true};
  const cc::WindowAdvice advice = cc::window_advice(upper_.fill_of(resource), 1000);
  if (advice.penalty == 0 && advice.restore) resource = 0;
  return advice;
}

namespace {

template <typename H>
constexpr bool kHasSack = requires(H h) {
  h.sack_bitmap;
};

}  // namespace

Built AckBuilder::emit(Instant now, Pdc& pdc, const AckShape& shape, net::TxPacket& out) {
  RxHalf& rx = pdc.rx;
  // The 16-bit offset reaches everything inside the window; an ACK for something older names CACK
  // instead.
  std::int32_t ack_offset = shape.ack_psn.distance_from(rx.cack);
  if (ack_offset < -32768 || ack_offset > 32767) ack_offset = 0;

  net::Packet packet = pool_.allocate();
  if (!packet) return Built::kNoBuffer;
  std::uint8_t next_hdr = 0;
  const bool names_cack = shape.record == nullptr && !shape.is_probe_answer && !shape.expected_psn;
  const bool names_data =
      rx.has_delivered && rx.cack.is_at_or_after(pdc.start) && rx.cack != rx.last_control;
  if (names_cack && names_data) {
    const SesResponse usual = upper_.default_response();
    next_hdr = usual.next_hdr;
    if (usual.header_bytes > 0)
      std::memcpy(packet.append(usual.header_bytes), usual.header.data(), usual.header_bytes);
  }
  if (shape.record != nullptr) {
    next_hdr = shape.record->next_hdr;
    const std::size_t header = shape.record->header_bytes;
    if (header > 0) std::memcpy(packet.append(header), shape.record->header.data(), header);
    const auto data = responses_.data_of(*shape.record);
    if (!data.empty()) std::memcpy(packet.append(data.size()), data.data(), data.size());
  }

  const auto finish = [&]<typename H>(std::type_identity<H>) {
    H header;
    header.next_hdr = static_cast<NextHdr>(next_hdr);
    header.m = config_.ack_on_ecn ? shape.meta.ecn : (shape.meta.ecn || rx.ce_seen);
    header.retx = shape.meta.retx;
    header.p = shape.is_probe_answer;
    header.req = pdc.state == PdcState::kCloseReq ? wire::AckReq::kClose
                 : rx.stored > 0                  ? wire::AckReq::kClear
                                                  : wire::AckReq::kNone;
    header.ack_psn_offset = shape.is_probe_answer ? static_cast<std::int16_t>(shape.opaque)
                                                  : static_cast<std::int16_t>(ack_offset);
    header.cack_psn = rx.cack;
    header.spdcid = pdc.id;
    header.dpdcid = pdc.peer_id;
    if constexpr (kHasSack<H>) {
      header.mpr = static_cast<std::uint8_t>(rx.granted / 128);
      // [PDS 10.3] From CACK on, unless the PSN to be shown lies further out. A Probe says where it wants it to begin.
      Psn base = rx.cack + 1;
      const std::int32_t ahead = shape.sack_near.distance_from(rx.cack);
      const bool is_in_window = ahead > 0 && ahead <= static_cast<std::int32_t>(rx.granted);
      if (is_in_window && shape.is_probe_answer)
        base = shape.sack_near;
      else if (is_in_window && ahead > 64)
        base = shape.sack_near - 63;
      header.sack_psn_offset = static_cast<std::int16_t>(base.distance_from(rx.cack));
      header.sack_bitmap =
          rx.tracker != nullptr ? rx.tracker->window64(RxTracker::kReceived, base) : 0;
      header.ooo_count = static_cast<std::uint16_t>(std::min<std::uint32_t>(rx.above_edge, 0xfffe));
    }
    if constexpr (requires { header.rcvd_bytes; }) {
      header.service_time = cc::service_time_units(now - shape.meta.arrived);
      header.rcvd_bytes = cc::rcvd_units(static_cast<ByteCount>(rx.rcvd_bytes));
    }
    if constexpr (requires { header.rcv_cwnd_pend; }) {
      if (has_slowed_) [[unlikely]] {
        const cc::WindowAdvice advice = window_advice_for(pdc);
        header.rcv_cwnd_pend = advice.penalty;
        header.restore_cwnd = advice.restore;
      }
    }
    if constexpr (requires { header.credit; }) header.credit = credit_.units_for(pdc);
    header.flag_epsn = shape.expected_psn.has_value();
    wire::emit(header, packet.prepend(H::kSize));
    return static_cast<unsigned>(header.type);
  };
  unsigned type = 0;
  // A source that never spoke of credit may be one with a window, which needs the count of bytes. One with both gets credit in control
  // packets. [CC 3.8]
  const bool speaks_of_credit = rx.credit_source != base::kNoIndex;
  if (shape.expected_psn) {  // only a plain ACK has room for it [WIRE 4.7]
    wire::PdsExpectedPsn tail;
    tail.expected_psn = *shape.expected_psn;
    wire::emit(tail, packet.append(wire::PdsExpectedPsn::kSize));
    type = finish(std::type_identity<wire::PdsAck>{});
  } else if (env_.sends_credit_state && !env_.sends_nscc_state && speaks_of_credit)
    type = finish(std::type_identity<wire::PdsAckCcCredit>{});
  else if (env_.sends_nscc_state || env_.sends_credit_state)
    type = finish(std::type_identity<wire::PdsAckCcNscc>{});
  else if (rx.cack == rx.max_rcvd && limits_.window == config_.default_mpr * 128u)
    type = finish(std::type_identity<wire::PdsAck>{});
  else
    type = finish(std::type_identity<wire::PdsAckCcNscc>{});

  trace_.emit(now, EventId::kAckSent, pdc.id, shape.ack_psn, rx.cack.value(), type);
  pdc.active_at = now;
  const bool is_long = packet.size() >= config_.trimmable_ack_size && config_.use_trimming;
  out.packet = std::move(packet);
  out.destination = pdc.peer;
  out.entropy = shape.meta.entropy;
  out.plane = shape.meta.plane;
  out.tos.value = is_long ? env_.data_tos(false) : env_.control_tos();
  return Built::kPacket;
}

}  // namespace uet::pds
