#include "pds/tx_control.h"

#include "lib/base/planted.h"

namespace uet::pds {

using base::planted;
using base::PlantedBug;

/// What a control packet says beside what its PDC says.
struct ControlSender::Shape {
  ControlType type;
  Psn psn{};  ///< only of those that name one
  std::uint32_t payload = 0;
  bool ar = false;
  bool retx = false;
  std::uint16_t opaque = 0;
};

Built ControlSender::poll(Instant now, net::TxPacket& out) {
  while (!scheduler_.control().empty()) {
    Pdc& pdc = scheduler_.control().front();
    Built built = acks_.has_ack_to_send(pdc) ? acks_.build(now, pdc, out) : Built::kNothing;
    if (built == Built::kNothing && pdc.pending_control != 0) built = build_control(now, pdc, out);
    if (built == Built::kNoBuffer) return built;
    scheduler_.control().pop_front();
    if (built == Built::kPacket) {
      // What stays pending without being sendable (a window that is closed) comes back with the
      // event that opens it.
      if (acks_.has_ack_to_send(pdc) || pdc.pending_control != 0)
        scheduler_.control().push_back(pdc);
      return built;
    }
  }
  return Built::kNothing;
}

Built ControlSender::build_control(Instant now, Pdc& pdc, net::TxPacket& out) {
  if (pdc.is_unproven()) {
    // Grants come again with the proof; questions for it do not.
    if (ProofRequests::is_awaited(pdc))
      pdc.pending_control = static_cast<std::uint16_t>(pdc.pending_control & kSendProbe);
    if (pdc.unasked >= ProofRequests::allowance(pdc)) pdc.pending_control = 0;
    if (pdc.pending_control == 0) return Built::kNothing;
    const Built built = build_pending_control(now, pdc, out);
    if (built == Built::kPacket && pdc.unasked < UnprovenPdcs::kMostUnasked) ++pdc.unasked;
    return built;
  }
  return build_pending_control(now, pdc, out);
}

Built ControlSender::build_pending_control(Instant now, Pdc& pdc, net::TxPacket& out) {
  // Before the peer's PDCID is known only packets that carry syn can be sent. [PDS 6.1]
  const bool is_known = pdc.peer_id != 0;
  const auto pending = [&](unsigned bit) { return (pdc.pending_control & bit) != 0; };
  const auto done = [&](unsigned bit) {
    pdc.pending_control = static_cast<std::uint16_t>(pdc.pending_control & ~bit);
  };
  const auto simple = [&](unsigned bit, const Shape& shape) {
    const Built built = emit_control(now, pdc, shape, out);
    if (built == Built::kPacket) done(bit);
    return built;
  };
  TxHalf& tx = pdc.tx;
  if (pending(kResendControl)) {
    const Built built = resend_sequenced(now, pdc, out);
    if (built != Built::kNothing) return built;
  }
  if (pending(kSendAckRequests) && is_known) {
    const Built built = send_ack_request(now, pdc, out);
    if (built != Built::kNothing) return built;
    done(kSendAckRequests);
  }
  if (pending(kSendClear) && is_known) {
    tx.clear_owed = false;
    Scheduler::stop_timer(pdc, PdcTimer::kClear);
    const Psn clear = planted(PlantedBug::kClearNeverRefreshed) ? pdc.start - 1 : tx.clear_psn();
    const Built built =
        simple(kSendClear, {.type = ControlType::kClearCommand, .payload = clear.value()});
    if (built == Built::kPacket) tx.commanded = clear;
    return built;
  }
  if (pending(kSendClearRequest) && is_known)
    return simple(kSendClearRequest, {.type = ControlType::kClearRequest,
                                      .payload = receiver_.highest_stored(pdc).value()});
  if (pending(kSendProbe) && is_known) {
    // The answer to either question proves the peer.
    const bool is_repeated = pdc.is_unproven() && tx.probe.is_open;
    const auto opaque =
        is_repeated ? tx.probe.opaque : static_cast<std::uint16_t>(env_.rng.next_u32());
    const Built built = simple(kSendProbe, {.type = ControlType::kProbe,
                                            .payload = (tx.cack + 1).value(),
                                            .ar = true,
                                            .opaque = opaque});
    if (built == Built::kPacket) {
      tx.probe = {.sent_at = now, .opaque = opaque, .is_open = true};
      tx.asking.cover(tx.next - 1);
    }
    return built;
  }
  if (const Congestion* congestion = tx.cc.if_any();
      pending(kSendCreditRequest) && is_known && congestion != nullptr) {
    const std::uint32_t payload =
        std::uint32_t{congestion->ccc->id()} << 24 | (tx.credit_demand & 0xff'ffff);
    const Built built =
        simple(kSendCreditRequest, {.type = ControlType::kCreditRequest, .payload = payload});
    if (built == Built::kPacket && tx.credit_asked_at <= pdc.heard_at) watch_credit(now, pdc);
    return built;
  }
  if (pending(kSendCredit) && is_known)
    return simple(kSendCredit, {.type = ControlType::kCredit, .payload = pdc.rx.credit << 8});
  constexpr std::pair<unsigned, ControlType> kSequenced[] = {
      {kSendNoop, ControlType::kNoop}, {kSendClose, ControlType::kCloseCommand}};
  for (const auto& [bit, type] : kSequenced) {
    if (!pending(bit)) continue;
    const bool is_close = type == ControlType::kCloseCommand;
    if (is_close && !is_known) continue;
    const ControlType real = is_close && !pdc.is_initiator ? ControlType::kCloseRequest : type;
    const Built built = send_sequenced(now, pdc, real, out);
    if (built == Built::kPacket) done(bit);
    return built;
  }
  return Built::kNothing;
}

/// A control packet that consumes a PSN. kNothing when the window is closed: the event that opens
/// it asks again.
Built ControlSender::send_sequenced(Instant now, Pdc& pdc, ControlType type, net::TxPacket& out) {
  TxHalf& tx = pdc.tx;
  if (!window_.may_take_psn(pdc)) {
    if (tx.unacked == 0) clear_.wait_for_psn(now, pdc);  // [PDS 20.35]
    return Built::kNothing;
  }
  const Psn psn = tx.next;
  const Built built = emit_control(now, pdc, {.type = type, .psn = psn, .ar = true}, out);
  if (built != Built::kPacket) return built;
  TxRecord* record = tx_blocks_.add(tx.ring, psn);
  UET_CHECK(record != nullptr);
  record->control = type;
  record->cc.leave(now, false);
  SendWindow::move(tx, *record, TxEvent::kSent);
  ++tx.next;
  ++tx.unacked;
  if (pdc.state == PdcState::kCreating) {
    record->sent_with_syn = true;
    pdc.last_syn_sent = now;
  }
  if (type == ControlType::kCloseCommand) {
    pdc.close_psn = psn;
    pdc.has_close_psn = true;
    states_.change(now, pdc, PdcInput::kCloseSent);
  }
  loss_.arm_retransmit(now, pdc, *record);
  return built;
}

Built ControlSender::resend_sequenced(Instant now, Pdc& pdc, net::TxPacket& out) {
  TxHalf& tx = pdc.tx;
  bool more = false;
  Built built = Built::kNothing;
  for (Psn psn = tx.left_edge; psn.is_before(tx.next); ++psn) {
    TxRecord& record = tx_blocks_.at(tx.ring, psn);
    if (record.state() != TxState::kQueued || record.message != nullptr) continue;
    if (built == Built::kPacket || !window_.allows(pdc, psn)) {
      more = true;
      break;
    }
    built =
        emit_control(now, pdc, {.type = record.control, .psn = psn, .ar = true, .retx = true}, out);
    if (built != Built::kPacket) return built;
    SendWindow::move(tx, record, TxEvent::kSent);
    record.cc.leave(now, true);
    LossRecovery::note_repeat(now, pdc, psn);
    if (record.sent_with_syn) pdc.was_syn_resent = true;
    if (pdc.state == PdcState::kCreating) pdc.last_syn_sent = now;
    ++tx.resent;
    trace_.emit(now, EventId::kPacketRetransmitted, pdc.id, psn, record.rto_cnt);
    loss_.arm_retransmit(now, pdc, record);
  }
  if (!more)
    pdc.pending_control = static_cast<std::uint16_t>(pdc.pending_control & ~kResendControl);
  return built;
}

Built ControlSender::send_ack_request(Instant now, Pdc& pdc, net::TxPacket& out) {
  TxHalf& tx = pdc.tx;
  // In PSN order; the search goes on where the last one ended.
  for (tx.ask_from = serial_max(tx.ask_from, tx.left_edge); tx.ask_from.is_before(tx.ask_end);
       ++tx.ask_from) {
    TxRecord& record = tx_blocks_.at(tx.ring, tx.ask_from);
    if (!is_ask_due(record.state())) continue;
    const Built built = emit_control(now, pdc,
                                     {.type = ControlType::kAckRequest,
                                      .psn = tx.ask_from,
                                      .ar = true,
                                      .retx = record.rto_cnt > 1},
                                     out);
    if (built != Built::kPacket) return built;
    SendWindow::move(tx, record, TxEvent::kAsked);
    return built;
  }
  return Built::kNothing;
}

// Credit comes on any PDC of the CCC, and a target that does not know this one says nothing: so its silence is watched.
void ControlSender::watch_credit(Instant now, Pdc& pdc) {
  pdc.tx.credit_asked_at = now;
  const Instant due = now + window_.rto(pdc, 0);
  if (due < pdc.deadline(PdcTimer::kLiveness)) scheduler_.set_timer(pdc, PdcTimer::kLiveness, due);
}

/// Control packets take any path, each time another: on a fixed one that is dead, credits and requests would be lost for
/// ever and the flow would stop.
std::uint16_t ControlSender::control_entropy() {
  return Environment::any_entropy(env_.rng.next_u32());
}

Built ControlSender::emit_control(Instant now, Pdc& pdc, const Shape& shape, net::TxPacket& out) {
  net::Packet packet = pool_.allocate();
  if (!packet) return Built::kNoBuffer;
  const auto finish = [&](auto header) {
    header.ctl_type = shape.type;
    header.isrod = pdc.is_rod();
    header.retx = shape.retx;
    header.ar = shape.ar;
    header.probe_opaque = shape.opaque;
    header.psn = shape.psn;
    header.spdcid = pdc.id;
    if constexpr (requires { header.dpdcid; })
      header.dpdcid = pdc.peer_id;
    else
      header.psn_offset = static_cast<std::uint16_t>(shape.psn.distance_from(pdc.start));
    header.payload = shape.payload;
    wire::emit(header, packet.append(decltype(header)::kSize));
  };
  if (pdc.peer_id == 0)
    finish(wire::PdsControlSyn{});
  else
    finish(wire::PdsControl{});
  trace_.emit(now, EventId::kControlSent, pdc.id, shape.psn, static_cast<std::uint64_t>(shape.type),
              shape.payload);
  // Repeated to a peer that is gone, it must not keep the PDC.
  if (shape.type != ControlType::kClearRequest) pdc.active_at = now;
  out.packet = std::move(packet);
  out.destination = pdc.peer;
  // The first question for proof follows the ACK that says who asks.
  const bool is_first = pdc.is_unproven() && pdc.unasked == 0;
  out.entropy = is_first ? pdc.rx.last_meta.entropy : control_entropy();
  out.plane = is_first ? pdc.rx.last_meta.plane : net::kAnyPlane;
  out.tos.value = env_.control_tos();
  return Built::kPacket;
}

}  // namespace uet::pds
