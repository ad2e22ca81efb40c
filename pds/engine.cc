#include "pds/engine.h"

namespace uet::pds {

Engine::Engine(const PdsConfig& config, const cc::CcConfig& cc_config, const net::PortFacts& facts,
               net::PacketPool& pool, base::Rng& rng, base::Trace& trace, Upper& upper)
    : shared_(config, cc_config, facts, pool, rng, trace, upper),
      rudi_(shared_.env, shared_.scheduler, shared_.messages, shared_.failed, shared_.room,
            shared_.nacks, shared_.built),
      uud_(shared_.env, shared_.messages, shared_.failed),
      sending_(shared_.env, shared_.scheduler),
      receiving_(shared_.env, shared_.pdcs, shared_.scheduler, shared_.nacks,
                 shared_.congestions.config(), sending_.window),
      acks_(shared_.env, receiving_.kept, receiving_.credit),
      controls_(shared_.env, shared_.scheduler, shared_.states, sending_, receiving_.receiver,
                acks_),
      sender_(shared_.env, shared_.scheduler, sending_),
      data_(shared_.env, shared_.scheduler, sending_.window, sender_),
      life_(shared_, sending_.window, receiving_, acks_),
      timers_(shared_.pdcs, shared_.scheduler, sending_, receiving_, rudi_, life_),
      opening_(shared_, receiving_, life_),
      sequenced_(shared_.env, shared_.pdcs, shared_.nacks, receiving_, acks_, life_, opening_),
      requests_(shared_.env, receiving_.credit, sequenced_),
      acks_in_(shared_.env, shared_.pdcs, shared_.messages, shared_.scheduler, sending_, life_),
      nacks_in_(shared_.env, shared_.pdcs, shared_.scheduler, sending_, rudi_, life_),
      controls_in_(shared_, sending_.clear, receiving_, life_, sequenced_),
      submission_(shared_, sending_.window, receiving_.proofs, life_, rudi_, uud_) {
  planes_.up = static_cast<std::uint8_t>((1u << facts.planes) - 1);
}

void Engine::on_packet(Instant now, net::RxPacket& rx) {
  using wire::PdsType;
  const auto bytes = std::as_const(rx.packet).bytes();
  if (bytes.size() < wire::PdsUud::kSize)
    return shared_.env.trace.drop(now, DropReason::kTruncated, bytes.size());
  const auto type = static_cast<PdsType>(bytes[0] >> 3);
  switch (type) {
    case PdsType::kRudReq:
    case PdsType::kRodReq:
      requests_.on_packet(now, rx, false);
      break;
    case PdsType::kRudCcReq:
    case PdsType::kRodCcReq:
      requests_.on_packet(now, rx, true);
      break;
    case PdsType::kAck:
    case PdsType::kAckCc:
    case PdsType::kAckCcx:
      acks_in_.on_packet(now, rx);
      break;
    case PdsType::kNack:
    case PdsType::kNackCcx:
      nacks_in_.on_packet(now, rx);
      break;
    case PdsType::kControl:
      controls_in_.on_packet(now, rx);
      break;
    case PdsType::kRudiReq:
      rudi_.on_request(now, rx);
      break;
    case PdsType::kRudiResp:
      rudi_.on_response(now, rx);
      break;
    case PdsType::kUudReq:
      uud_.on_packet(now, rx);
      break;
    case PdsType::kTss:  // the layer below removes it: one that arrives here was not expected
    default:
      return shared_.env.trace.drop(now, DropReason::kBadType, bytes.size());
  }
  shared_.room.settle(now);
}

bool Engine::has_only_acks() const {
  return shared_.scheduler.has_only_acks() && shared_.nacks.is_empty() &&
         shared_.built.is_empty() && uud_.is_idle() && rudi_.is_idle() &&
         !shared_.room.has_new_room() && !has_records_again();
}

// Control packets first: they are small, they open windows, and need no permission of congestion control.
std::size_t Engine::poll_transmit(Instant now, std::span<net::TxPacket> out,
                                  std::uint8_t free_planes) {
  planes_.free = free_planes;
  is_unpolled_ = false;
  bool lacks_buffer = false;
  if (has_records_again()) [[unlikely]]
    shared_.scheduler.wake_for_records(sending_.window.records().free_blocks());
  std::size_t sent = poll_control(now, out.front(), lacks_buffer) ? 1 : 0;
  if (lacks_buffer) return 0;
  if (sent == 0) sent = poll_data(now, out);
  shared_.room.settle(now);
  return sent;
}

bool Engine::poll_control(Instant now, net::TxPacket& out, bool& lacks_buffer) {
  if (!shared_.nacks.is_empty() && shared_.nacks.poll(now, out)) return true;
  if (!shared_.built.is_empty()) {
    out = shared_.built.pop();
    return true;
  }
  if (shared_.scheduler.control().empty()) return false;
  const Built control = controls_.poll(now, out);
  lacks_buffer = control == Built::kNoBuffer;
  return control == Built::kPacket;
}

// RUDI and UUD take turns with the PDCs, so that neither starves the other. Where they have nothing there are no turns.
std::size_t Engine::poll_data(Instant now, std::span<net::TxPacket> out) {
  if (uud_.is_idle() && rudi_.is_idle()) [[likely]]
    return data_.poll(now, planes_, out);
  rudi_turn_ = !rudi_turn_;
  net::TxPacket& one = out.front();
  if (rudi_turn_ && (uud_.poll(now, one) || rudi_.poll(now, one))) return 1;
  if (const std::size_t sent = data_.poll(now, planes_, out.first(1))) return sent;
  return !rudi_turn_ && (uud_.poll(now, one) || rudi_.poll(now, one)) ? 1 : 0;
}

// A plane went down or came back: its paths rest until one packet each has shown that they work. [CC 7.8]
void Engine::on_planes_changed(Instant now, std::uint8_t up) {
  planes_.up = up;
  shared_.congestions.for_each([&](Congestion& c) { c.ccc->on_planes_changed(now, up); });
}

void Engine::on_deadline(Instant now) {
  shared_.env.standstills.note_turn(next_deadline(), now);
  timers_.run(now);
  receiving_.credit.run(now);
  receiving_.openings.expire(now);
  life_.lifecycle.on_deadline(now);
  shared_.room.settle(now);
}

bool Engine::is_idle() const {
  return shared_.messages.size() == 0 && sending_.window.records().in_use() == 0 &&
         shared_.scheduler.control().empty() && shared_.nacks.is_empty() &&
         shared_.built.is_empty() && rudi_.outstanding() == 0 && shared_.states.closing() == 0 &&
         shared_.states.close_wanted() == 0;
}

Instant Engine::next_deadline() const {
  Instant next = shared_.scheduler.wheel().next_deadline();
  next = std::min(next, receiving_.credit.next_deadline());
  return std::min(next, life_.lifecycle.next_deadline());
}

Pds::Gauges Engine::gauges() const {
  Pds::Gauges g{};
  g.pdcs_open = shared_.pdcs.size();
  g.pdcs_half_open = shared_.states.half_open();
  g.outstanding_packets = sending_.window.records().in_use();
  g.queued_messages = shared_.messages.size();
  g.stored_responses = receiving_.kept.store().kept();
  g.tombstones = receiving_.openings.tombstones().size();
  g.rudi_outstanding = rudi_.outstanding();
  g.ccc_count = shared_.congestions.size();
  g.half_open_reaped = life_.closing.half_open_reaped();
  g.stored_unproven = receiving_.kept.of_unproven();
  g.clear_breaks = life_.closing.clear_breaks();
  g.pdcs_unproven = receiving_.openings.unproven().size();
  g.unproven_evicted = life_.admission.evicted();
  g.openings_remembered = receiving_.openings.ended_early().size();
  return g;
}

}  // namespace uet::pds
