/// The parts that open, keep and end PDCs, built as an engine builds them but without one: nothing comes in or leaves unless a test
/// does it.
#pragma once

#include "pds/life.h"
#include "tests/pds/parts.h"

namespace uet::pds::test {

struct Life {
  explicit Life(const PdsConfig& config = {}, const cc::CcConfig& cc_config = {})
      : shared(config, cc_config, facts_of_port(), pool, rng, trace, ses),
        sending(env, scheduler),
        receiving(env, pdcs, scheduler, nacks, congestions.config(), sending.window),
        acks(env, receiving.kept, receiving.credit),
        life(shared, sending.window, receiving, acks) {}

  static TxMessage message_to(std::uint32_t peer, MessageToken token = 1) {
    TxMessage message;
    message.token = token;
    message.destination = address_of(peer);
    return message;
  }
  static Arrival packet_from(std::uint32_t peer, std::uint16_t spdcid, Psn psn) {
    Arrival in;
    in.source = address_of(peer);
    in.spdcid = spdcid;
    in.psn = psn;
    in.meta.bytes = 100;
    return in;
  }

  Pdc* initiator(std::uint32_t peer, Instant now = kNow) {
    return lifecycle.open_initiator(now, message_to(peer));
  }
  /// An initiator PDC whose target has answered.
  Pdc& established(std::uint32_t peer, Instant now = kNow) {
    Pdc& pdc = *initiator(peer, now);
    liveness.learn_peer(now, pdc, 77);
    return pdc;
  }
  /// A target PDC of a peer that has proved nothing, and that has sent nothing that counts.
  Pdc& target(std::uint32_t peer, std::uint16_t spdcid = 5, Instant now = kNow,
              Psn start = Psn(500)) {
    return lifecycle.open_target(now, packet_from(peer, spdcid, start), start,
                                 PdcInput::kSynAccepted);
  }
  /// The same after its first packet, which SES has answered; `guaranteed`: its response is kept.
  Pdc& served(std::uint32_t peer, std::uint16_t spdcid = 5, Instant now = kNow,
              bool guaranteed = false) {
    Pdc& pdc = target(peer, spdcid, now);
    deliver(pdc, pdc.start, now, guaranteed);
    return pdc;
  }
  void deliver(Pdc& pdc, Psn psn, Instant now = kNow, bool guaranteed = false) {
    Answer answer;
    answer.guaranteed = guaranteed;
    answer.response.next_hdr = 4;
    pdc.rx.has_delivered = true;
    receiver.accept(now, pdc, packet_of(pdc, psn), answer);
  }
  static Arrival packet_of(const Pdc& pdc, Psn psn) {
    Arrival in;
    in.source = pdc.peer;
    in.spdcid = pdc.peer_id;
    in.psn = psn;
    in.meta.bytes = 100;
    return in;
  }
  Pdc& proven(std::uint32_t peer, std::uint16_t spdcid = 5, Instant now = kNow) {
    Pdc& pdc = served(peer, spdcid, now);
    liveness.prove(now, pdc);
    return pdc;
  }
  /// One message of a packet: queued, or with its packet sent.
  Message& submit(Pdc& pdc, MessageToken token = 1) {
    Message& message = messages.add(message_to(2, token));
    message.pdc = &pdc;
    pdc.tx.queue.push_back(message);
    ++pdc.tx.queued;
    return message;
  }
  Psn send(Pdc& pdc, MessageToken token = 1) {
    Message& message = submit(pdc, token);
    pdc.tx.queue.pop_front();
    const Psn psn = pdc.tx.next;
    TxRecord& record = *window.records().add(pdc.tx.ring, psn);
    record.message = &message;
    record.move(TxEvent::kSent);
    ++pdc.tx.next;
    ++pdc.tx.unacked;
    ++message.next_segment;
    ++message.unanswered;
    return psn;
  }
  /// A control packet of the PDC that was sent, and not answered yet.
  TxRecord& send_control(Pdc& pdc) {
    TxRecord& record = *window.records().add(pdc.tx.ring, pdc.tx.next);
    record.move(TxEvent::kSent);
    ++pdc.tx.next;
    ++pdc.tx.unacked;
    return record;
  }
  /// The NACK that would leave next.
  std::optional<NackCode> take_nack(Instant now = kNow) {
    net::TxPacket out;
    if (!nacks.poll(now, out)) return std::nullopt;
    return wire::decode<wire::PdsNack>(std::as_const(out.packet).bytes().data()).nack_code;
  }

  net::HeapPacketPool pool{64, 4200};
  base::Rng rng{1};
  base::Trace trace;
  SilentSes ses;
  Shared shared;
  // By their own names.
  Environment& env = shared.env;
  Scheduler& scheduler = shared.scheduler;
  PdcStates& states = shared.states;
  NackQueue& nacks = shared.nacks;
  PdcTable& pdcs = shared.pdcs;
  CongestionTable& congestions = shared.congestions;
  MessageTable& messages = shared.messages;
  SendingHalf sending;
  ReceivingHalf receiving;
  AckBuilder acks;
  pds::Life life;
  SendWindow& window = sending.window;
  ProofRequests& proofs = receiving.proofs;
  Openings& openings = receiving.openings;
  KeptResponses& kept = receiving.kept;
  Receiver& receiver = receiving.receiver;
  ReorderBuffer& reorder = receiving.reorder;
  CreditGrants& credit = receiving.credit;
  Lifecycle& lifecycle = life.lifecycle;
  Closing& closing = life.closing;
  Admission& admission = life.admission;
  Liveness& liveness = life.liveness;
};

}  // namespace uet::pds::test
