#include "pds/tx_data.h"

#include "lib/base/planted.h"
#include "pds/nominal.h"

namespace uet::pds {

using base::planted;
using base::PlantedBug;

DataSender::Work DataSender::next_work(Instant now, Pdc& pdc, Psn& psn) {
  TxHalf& tx = pdc.tx;
  // No answer came to a whole burst: whether there is a target can be asked with one packet at a time.
  if (pdc.is_unanswered && tx.unacked > tx.rtx_count + tx.paused_count) [[unlikely]]
    return Work::kNone;
  if (tx.rtx_count > 0) {
    // In PSN order; the search goes on where the last one ended.
    for (psn = tx.rtx_from; psn.is_before(tx.next); ++psn) {
      const TxRecord& record = tx_blocks_.at(tx.ring, psn);
      if (record.state() == TxState::kQueued && record.message != nullptr) break;
    }
    UET_DCHECK(psn.is_before(tx.next));
    tx.rtx_from = psn;
    return window_.allows(pdc, psn) ? Work::kResend : Work::kNone;
  }
  if (tx.queue.empty() || pdc.is_unproven()) return Work::kNone;
  // ROD: nothing new before what a paused packet waits for, it would be dropped anyway. [PDS 17.1] And nothing new before a packet
  // that was refused for want of a place: answers beyond a gap cannot be cleared, so it would keep the place from what is in the gap.
  if (tx.places_wanted > 0 || (pdc.is_rod() && tx.paused_count > 0)) return Work::kNone;
  if (!window_.may_take_psn(pdc)) {
    if (tx.unacked == 0) clear_.wait_for_psn(now, pdc);
    return Work::kNone;
  }
  return Work::kNew;
}

ByteCount DataSender::nominal_of_next(const Pdc& pdc, Work work, Psn psn) const {
  if (work == Work::kResend)
    return static_cast<ByteCount>(tx_blocks_.at(pdc.tx.ring, psn).cc.nominal_bytes);
  return nominal_of(env_, pdc, pdc.tx.queue.front(), pdc.tx.queue.front().next_segment);
}

// A message asks for those before it well before a Probe would. Without Probes every message asks for itself.
Duration DataSender::patience_of(const PdsConfig& config) {
  constexpr int kShare = 4;
  return config.tail_loss_asks ? config.tail_loss_time / kShare : Duration{};
}

// The same as send() does with each of them. What is the same for all is looked at once: nothing that arrives or expires comes
// between them.
std::size_t DataSender::send_run(Instant now, Pdc& pdc, ByteCount nominal, const Planes& planes,
                                 std::span<net::TxPacket> out) {
  TxHalf& tx = pdc.tx;
  Congestion& congestion = tx.cc.of(tx.queue.front());
  cc::Ccc& ccc = *congestion.ccc;
  const PdcRef ref = pdc.ref();
  const bool asks_always = config_.enb_ack_per_pkt || loss_.is_losing(now, pdc);
  const std::uint8_t allowed =
      congestion.sprayed ? ccc.worthwhile_planes(now, planes.free) : planes.up;
  const Instant deadline = now + window_.rto(pdc, 0);
  const std::uint8_t tos = env_.data_tos(false);
  std::uint32_t psns_left = window_.psns_left(pdc);
  std::size_t n = 0;
  for (bool may_go_on = true; may_go_on && n < out.size(); ++n) {
    net::Packet packet = pool_.allocate();
    if (!packet) break;
    // From here on nothing can fail: PSN, record and message state change together. [PDS 7.1]
    Message& message = tx.queue.front();
    const Psn psn = tx.next;
    TxRecord* const record = tx_blocks_.add(tx.ring, psn);
    UET_CHECK(record != nullptr);
    record->message = &message;
    record->segment = message.next_segment;
    record->deadline = deadline;
    record->move(TxEvent::kSent);
    const SegmentInfo info =
        upper_.emit_segment(message.request.token, record->segment, ref, psn, packet);
    const std::size_t size = packet.full_size();
    const ByteCount announced = nominal;
    nominal = env_.nominal_bytes(congestion.request_header_bytes + size);
    if (announced != nominal) ccc.on_new_data(now, nominal - announced);
    const bool may_wait = message.request.ack_may_wait;
    const bool ends_message = note_sent(tx, message, announced);
    const bool asks_at_end =
        ends_message && tx.asking.at_end(now, may_wait, tx.queue.empty(), patience_);
    --psns_left;

    const bool ccc_asks =
        ccc.send_new(now, record->cc, tx.share, nominal, allowed, ends_message && !asks_at_end);
    const bool has_more = !tx.queue.empty();
    const bool has_psn = psns_left > 0 && tx_blocks_.can_add(tx.ring, tx.next);
    if (has_more) nominal = nominal_of_next(pdc, Work::kNew, psn);
    may_go_on = has_more && has_psn && ccc.may_send(nominal);
    // What stops here is not to wait for coalescing.
    const bool is_stopped = !has_psn || (has_more && !may_go_on);
    const bool ask = asks_always || ccc_asks || is_stopped || asks_at_end;
    tx.asking.on_sent(now, psn, ask, ends_message);
    prepend_plain(pdc, static_cast<NextHdr>(info.next_hdr), psn, ask, packet);
    trace_.emit(now, EventId::kRequestSent, pdc.id, psn, packet.full_size(), record->cc.entropy);
    net::TxPacket& to = out[n];
    to.packet = std::move(packet);
    to.destination = pdc.peer;
    to.entropy = record->cc.entropy;
    to.plane = record->cc.plane;
    to.tos.value = tos;
  }
  if (n > 0) {
    loss_.watch_sent(now, pdc, deadline);
    note_request_left(now, pdc);
  }
  return n;
}

// True when it was the last one of its message.
bool DataSender::note_sent(TxHalf& tx, Message& message, ByteCount announced) {
  tx.backlog -= announced;
  ++tx.next;
  ++tx.unacked;
  ++message.next_segment;
  --tx.queued_segments;
  ++message.unanswered;
  if (!message.is_fully_sent()) return false;
  tx.queue.pop_front();
  --tx.queued;
  return true;
}

// What else a Request says: its CLEAR needs no packet of its own.
void DataSender::note_request_left(Instant now, Pdc& pdc) {
  pdc.tx.has_credit_exemption = false;
  pdc.tx.clear_owed = false;
  Scheduler::stop_timer(pdc, PdcTimer::kClear);
  pdc.active_at = now;
}

Built DataSender::send(Instant now, Pdc& pdc, Work work, Psn psn, const Planes& planes,
                       net::TxPacket& out) {
  TxHalf& tx = pdc.tx;
  const bool resend = work == Work::kResend;
  Message& message = resend ? *tx_blocks_.at(tx.ring, psn).message : tx.queue.front();
  Congestion& congestion = tx.cc.of(message);
  cc::Ccc& ccc = *congestion.ccc;
  net::Packet packet = pool_.allocate();
  if (!packet) return Built::kNoBuffer;

  // From here on nothing can fail: PSN, record and message state change together. [PDS 7.1]
  TxRecord* record = nullptr;
  if (resend) {
    record = &tx_blocks_.at(tx.ring, psn);
    SendWindow::move(tx, *record, TxEvent::kSent);
    tx.note_in_flight(psn);
  } else {
    psn = tx.next;
    record = tx_blocks_.add(tx.ring, psn);
    UET_CHECK(record != nullptr);
    record->message = &message;
    record->segment = message.next_segment;
    record->move(TxEvent::kSent);
  }
  UET_DCHECK(planted(PlantedBug::kWindowIgnored) ||
             static_cast<std::uint32_t>(psn.distance_from(tx.cack)) <= tx.mp_range);
  std::uint32_t segment = record->segment;
  if (planted(PlantedBug::kWrongSegmentResent) && resend && segment > 0) --segment;
  const SegmentInfo info =
      upper_.emit_segment(message.request.token, segment, pdc.ref(), psn, packet);
  const ByteCount nominal =
      env_.nominal_bytes(congestion.request_header_bytes + packet.full_size());

  bool ack_request = resend || config_.enb_ack_per_pkt || loss_.is_losing(now, pdc);
  bool ends_message = false;
  bool last_may_wait = false;
  if (resend) {
    LossRecovery::note_repeat(now, pdc, psn);
  } else {
    const ByteCount announced = nominal_of(env_, pdc, message, record->segment);
    if (announced != nominal) ccc.on_new_data(now, nominal - announced);
    // A target that is not known yet cannot be asked later.
    const bool may_wait = message.request.ack_may_wait && pdc.state != PdcState::kCreating;
    ends_message = note_sent(tx, message, announced);
    const bool asks_at_end =
        ends_message && tx.asking.at_end(now, may_wait, tx.queue.empty(), patience_);
    last_may_wait = ends_message && !asks_at_end;
    ack_request = ack_request || asks_at_end ||
                  !window_.may_take_psn(pdc);  // nothing may follow: do not wait for coalescing
  }
  // Ordered packets wait for their port; only when it has lost its link they take another.
  const std::uint8_t allowed =
      congestion.sprayed ? ccc.worthwhile_planes(now, planes.free) : planes.up;
  const cc::SendParams params =
      ccc.next_send(now, resend ? &record->cc : nullptr, nominal, allowed, last_may_wait);
  ccc.on_send(now, record->cc, tx.share, nominal, params, resend);
  if (pdc.is_unanswered) [[unlikely]]
    ccc.leave_out(record->cc, tx.share);
  ack_request = ack_request || params.ack_request ||
                (!tx.queue.empty() && !ccc.may_send(nominal_of_next(pdc, Work::kNew, psn)));
  // The ACK of a packet that is sent again tells of all that left before.
  tx.asking.on_sent(now, resend ? tx.next - 1 : psn, ack_request, ends_message);

  const bool with_syn = pdc.state == PdcState::kCreating;
  prepend_request(pdc, ccc, static_cast<NextHdr>(info.next_hdr), psn, ack_request, resend,
                  params.credit_target, packet);
  if (with_syn) {
    pdc.was_syn_resent = pdc.was_syn_resent || record->sent_with_syn;
    pdc.last_syn_sent = now;
  } else if (resend && record->sent_with_syn) {
    pdc.was_syn_resent = true;
  }
  record->sent_with_syn = record->sent_with_syn || with_syn;
  loss_.arm_retransmit(now, pdc, *record);
  note_request_left(now, pdc);
  if (env_.sends_credit_state) scheduler_.on_congestion_timer(now, congestion);

  if (resend) ++pdc.tx.resent;
  trace_.emit(now, resend ? EventId::kPacketRetransmitted : EventId::kRequestSent, pdc.id, psn,
              resend ? record->rto_cnt : packet.full_size(), params.entropy);
  out.packet = std::move(packet);
  out.destination = pdc.peer;
  out.entropy = params.entropy;
  out.plane = params.plane;
  out.tos.value = env_.data_tos(resend);
  return Built::kPacket;
}

namespace {

template <typename H>
void fill_common(H& h, bool rod, bool cc, NextHdr next, Psn psn, bool ar, bool retx,
                 std::int16_t clear, std::uint16_t spdcid) {
  using wire::PdsType;
  h.type = cc ? (rod ? PdsType::kRodCcReq : PdsType::kRudCcReq)
              : (rod ? PdsType::kRodReq : PdsType::kRudReq);
  h.next_hdr = next;
  h.retx = retx;
  h.ar = ar;
  h.clear_psn_offset = clear;
  h.psn = psn;
  h.spdcid = spdcid;
}

}  // namespace

Psn DataSender::clear_of(const Pdc& pdc) {
  return planted(PlantedBug::kClearNeverRefreshed) ? pdc.start - 1 : pdc.tx.clear_psn();
}

void DataSender::prepend_plain(const Pdc& pdc, NextHdr next, Psn psn, bool ar,
                               net::Packet& packet) {
  wire::PdsRequest header;
  fill_common(header, pdc.is_rod(), false, next, psn, ar, false,
              static_cast<std::int16_t>(clear_of(pdc).distance_from(psn)), pdc.id);
  header.dpdcid = pdc.peer_id;
  wire::emit(header, packet.prepend(wire::PdsRequest::kSize));
}

// Ids, syn and CLEAR are those of the moment, also when the packet is sent again. [PDS 8]
void DataSender::prepend_request(const Pdc& pdc, const cc::Ccc& ccc, NextHdr next, Psn psn, bool ar,
                                 bool retx, const std::optional<std::uint32_t>& credit_target,
                                 net::Packet& packet) {
  const auto clear = static_cast<std::int16_t>(clear_of(pdc).distance_from(psn));
  const bool syn = pdc.state == PdcState::kCreating;
  const auto offset = static_cast<std::uint16_t>(psn.distance_from(pdc.start));
  const auto finish = [&](auto header, bool cc) {
    fill_common(header, pdc.is_rod(), cc, next, psn, ar, retx, clear, pdc.id);
    if constexpr (requires { header.psn_offset; }) header.psn_offset = offset;
    if constexpr (requires { header.dpdcid; }) header.dpdcid = pdc.peer_id;
    if constexpr (requires { header.ccc_id; }) {
      header.ccc_id = ccc.id();
      header.credit_target = credit_target.value_or(0);
    }
    wire::emit(header, packet.prepend(decltype(header)::kSize));
  };
  if (ccc.carries_credit()) {
    if (syn)
      finish(wire::PdsRequestCcSyn{}, true);
    else
      finish(wire::PdsRequestCc{}, true);
  } else {
    if (syn)
      finish(wire::PdsRequestSyn{}, false);
    else
      finish(wire::PdsRequest{}, false);
  }
}

}  // namespace uet::pds
