#include "pds/rudi.h"

#include <cstring>

#include "lib/base/planted.h"
#include "pds/backoff.h"

namespace uet::pds {

Rudi::Rudi(Environment& env, Scheduler& scheduler, MessageTable& messages, FailedMessages& failed,
           Backpressure& room, NackQueue& nacks, base::Ring<net::TxPacket>& built)
    : Part(env),
      wheel_(scheduler.wheel()),
      messages_(messages),
      failed_(failed),
      room_(room),
      nacks_(nacks),
      built_(built),
      table_(config_.rudi_max_peers, config_.rudi_max_peers * config_.rudi_max_outstanding,
             env.rng) {}

// --- Source

RudiPeer* Rudi::peer_for(const net::FabricAddress& address) {
  RudiPeer* peer = table_.find_peer(address);
  return peer != nullptr ? peer : table_.add_peer(address);
}

void Rudi::release_if_idle(RudiPeer& peer) {
  if (peer.outstanding == 0 && peer.queue.empty()) table_.remove_peer(peer);
}

SubmitResult Rudi::submit(Instant now, const TxMessage& request) {
  RudiPeer* peer = peer_for(request.destination);
  if (peer == nullptr) return room_.again();
  if (peer->outstanding == 0 && peer->queue.empty()) peer->busy_since = now;
  Message& message = messages_.add(request);
  message.rudi = peer;
  peer->queue.push_back(message);
  trace_.emit(now, EventId::kMessageQueued, 0, {}, request.segments, request.payload_bytes);
  return SubmitResult::kQueued;
}

bool Rudi::poll(Instant now, net::TxPacket& out) {
  RudiPeerList& peers = table_.peers();
  for (std::size_t left = table_.peer_count(); left > 0; --left) {
    RudiPeer& peer = peers.front();
    peers.pop_front();
    peers.push_back(peer);
    const auto window = std::min(static_cast<std::uint32_t>(peer.window),
                                 std::uint32_t{config_.rudi_max_outstanding});
    if (peer.in_network >= window) continue;
    if (!peer.resend.empty()) return send(now, peer.resend.front(), out);
    if (peer.queue.empty() || peer.outstanding >= window) continue;
    RudiPacket* packet = table_.add_packet();
    if (packet == nullptr) return false;
    Message& message = peer.queue.front();
    packet->message = &message;
    packet->peer = &peer;
    packet->segment = message.next_segment;
    peer.resend.push_back(*packet);
    ++peer.outstanding;
    ++message.next_segment;
    ++message.unanswered;
    if (message.is_fully_sent()) peer.queue.pop_front();
    return send(now, *packet, out);  // without a buffer it stays first in line
  }
  return false;
}

/// `packet` is in its peer's list of packets to send.
bool Rudi::send(Instant now, RudiPacket& packet, net::TxPacket& out) {
  net::Packet bytes = pool_.allocate();
  if (!bytes) return false;
  RudiPeer& peer = *packet.peer;
  peer.resend.erase(peer.resend.iterator_to(packet));
  peer.in_flight.push_back(packet);
  packet.is_in_flight = true;
  ++peer.in_network;
  const SegmentInfo info = upper_.emit_segment(packet.message->request.token, packet.segment,
                                               PdcRef{}, Psn(packet.pkt_id), bytes);
  wire::PdsRudi header;
  header.type = wire::PdsType::kRudiReq;
  header.next_hdr = static_cast<NextHdr>(info.next_hdr);
  header.retx = packet.times_sent > 0;
  header.pkt_id = packet.pkt_id;
  wire::emit(header, bytes.prepend(wire::PdsRudi::kSize));
  if (packet.times_sent < 255) ++packet.times_sent;
  packet.sent_at = now;
  packet.is_paused = false;
  wheel_.schedule(packet.timer, now + rto(packet));
  trace_.emit(now, header.retx ? EventId::kPacketRetransmitted : EventId::kRequestSent, 0,
              Psn(packet.pkt_id), header.retx ? packet.rto_cnt : bytes.size());
  out.packet = std::move(bytes);
  out.destination = peer.address;
  // Any path will do: spread packets over all of them. [PDS 3]
  out.entropy = Environment::any_entropy(base::mix(packet.pkt_id));
  out.plane = net::kAnyPlane;
  out.tos.value = env_.data_tos(header.retx);
  return true;
}

Duration Rudi::rto(const RudiPacket& packet) const {
  const Duration first = config_.rto_init_time;
  return longer_each_time(first, packet.rto_cnt, 0,
                          std::min(kLongestRto, std::max(config_.rto_max, first)));
}

void Rudi::leave_network(RudiPacket& packet) {
  if (packet.is_in_flight && !packet.is_paused) --packet.peer->in_network;
}

void Rudi::queue_resend(RudiPacket& packet) {
  RudiPeer& peer = *packet.peer;
  wheel_.cancel(packet.timer);
  leave_network(packet);
  peer.in_flight.erase(peer.in_flight.iterator_to(packet));
  packet.is_in_flight = false;
  peer.resend.push_back(packet);
}

/// A packet that did not get through is sent again after `wait`.
void Rudi::pause(Instant now, RudiPacket& packet, Duration wait) {
  leave_network(packet);
  packet.is_paused = true;
  wheel_.schedule(packet.timer, now + wait);
}

namespace {

/// Once per round: a burst of losses is one event.
void cut_window(Instant now, RudiPeer& peer, const RudiPacket& packet) {
  if (packet.sent_at < peer.last_cut) return;
  peer.window = std::max(1.0, peer.window / 2);
  peer.last_cut = now;
}

}  // namespace

void Rudi::on_timer(Instant now, RudiPacket& packet) {
  if (packet.is_paused) return queue_resend(packet);
  trace_.emit(now, EventId::kTimeout, 0, Psn(packet.pkt_id), packet.rto_cnt);
  if (config_.is_timeout_limit(packet.rto_cnt))
    return fail(now, *packet.message, PdsError::kRtoExhausted);
  RudiPeer& peer = *packet.peer;
  if (env_.end_of_patience(now, std::max(peer.heard_at, peer.busy_since)) <= now)
    return give_up(now, peer);
  // It answers others, and never this one.
  packet.unanswered = packet.unanswered + rto(packet);
  if (config_.peer_timeout > Duration{} && packet.unanswered >= config_.peer_timeout)
    return fail(now, *packet.message, PdsError::kRtoExhausted);
  if (packet.rto_cnt < 63) ++packet.rto_cnt;
  cut_window(now, peer, packet);
  queue_resend(packet);
}

/// Takes an answered packet off every list.
void Rudi::finish(RudiPacket& packet) {
  RudiPeer& peer = *packet.peer;
  wheel_.cancel(packet.timer);
  leave_network(packet);
  RudiPacketList& list = packet.is_in_flight ? peer.in_flight : peer.resend;
  list.erase(list.iterator_to(packet));
  --peer.outstanding;
  table_.remove_packet(packet);
}

/// Forgets a message and all its packets; its peer may go with it.
void Rudi::abort(Message& message) {
  RudiPeer& peer = *message.rudi;
  for (RudiPacketList* list : {&peer.in_flight, &peer.resend}) {
    for (auto at = list->begin(); at != list->end();) {
      RudiPacket& packet = *at++;
      if (packet.message == &message) finish(packet);
    }
  }
  if (message.hook.is_linked()) peer.queue.erase(peer.queue.iterator_to(message));
  messages_.forget(message);
  release_if_idle(peer);
}

// There is no PDC to fail: other messages go on. [PDS 17.2]
void Rudi::fail(Instant now, Message& message, PdsError error) {
  const MessageToken token = message.request.token;
  abort(message);
  upper_.on_message_error(now, token, error);
}

/// Nothing more goes to a peer that is silent: what waits behind the packet that found it out would find out the same, each after
/// an RTO of its own.
void Rudi::give_up(Instant now, RudiPeer& peer) {
  for (Message& message : peer.queue) message.rudi = nullptr;
  failed_.add(peer.queue);
  for (RudiPacketList* list : {&peer.in_flight, &peer.resend}) {
    while (!list->empty()) {
      Message& message = *list->front().message;
      finish(list->front());
      message.rudi = nullptr;
      if (!message.hook.is_linked()) failed_.add(message);
    }
  }
  table_.remove_peer(peer);
  failed_.report(now, PdsError::kPeerSilent);
}

void Rudi::on_response(Instant now, const net::RxPacket& rx) {
  const auto bytes = rx.packet.bytes();
  if (bytes.size() < wire::PdsRudi::kSize)
    return trace_.drop(now, DropReason::kTruncated, bytes.size());
  if (env_.is_trimmed(rx)) return trace_.drop(now, DropReason::kTrimmed, bytes.size());
  const auto h = wire::decode<wire::PdsRudi>(bytes.data());
  if (h.next_hdr < NextHdr::kResponse || h.next_hdr > NextHdr::kResponseDataSmall)
    return trace_.drop(now, DropReason::kBadNextHeader, bytes.size());
  RudiPacket* packet = table_.find_packet(h.pkt_id);
  if (packet == nullptr || packet->peer->address != rx.source)
    return trace_.drop(now, DropReason::kUnknownPktId, bytes.size(), 0, Psn(h.pkt_id));
  RudiPeer& peer = *packet->peer;
  Message& message = *packet->message;
  const MessageToken token = message.request.token;
  const std::uint32_t segment = packet->segment;
  peer.heard_at = now;
  const double most = config_.rudi_max_outstanding;
  peer.window =
      h.m ? peer.window : std::min(most, peer.window + 1.0 / std::max(1.0, peer.window) * 4);
  if (h.m) cut_window(now, peer, *packet);
  finish(*packet);
  if (--message.unanswered == 0 && message.is_fully_sent()) messages_.forget(message);
  release_if_idle(peer);
  trace_.emit(now, EventId::kAckReceived, 0, Psn(h.pkt_id));
  upper_.on_response(now, token, segment, static_cast<std::uint8_t>(h.next_hdr),
                     bytes.subspan(wire::PdsRudi::kSize));
}

void Rudi::on_nack(Instant now, const net::RxPacket& rx, const wire::PdsNack& nack) {
  const auto drop = [&](DropReason reason) {
    trace_.drop(now, reason, rx.packet.size(), nack.dpdcid, nack.nack_psn);
  };
  if (nack.spdcid != 0 || nack.dpdcid != 0) return drop(DropReason::kMalformedNack);
  RudiPacket* packet = table_.find_packet(nack.nack_psn.value());
  if (packet == nullptr || packet->peer->address != rx.source)
    return drop(DropReason::kUnknownPktId);
  if (packet->is_paused || !packet->timer.is_armed()) return drop(DropReason::kStaleNack);
  packet->peer->heard_at = now;
  packet->unanswered = Duration{};
  trace_.emit(now, EventId::kNackReceived, 0, nack.nack_psn,
              static_cast<std::uint64_t>(nack.nack_code));
  env_.nack_counts.add(NackWay::kReceived, nack.nack_code, {});
  switch (nack.nack_code) {
    case NackCode::kTrimmed:
    case NackCode::kTrimmedLasthop:
      cut_window(now, *packet->peer, *packet);
      if (packet->trim_cnt < 255) ++packet->trim_cnt;
      if (packet->trim_cnt <= kTrimsAnsweredAtOnce) return queue_resend(*packet);
      return pause(now, *packet,
                   longer_each_time(config_.nack_retx_time, packet->trim_cnt,
                                    kTrimsAnsweredAtOnce + 1, config_.rto_max));
    case NackCode::kNoPktBuffer:
    case NackCode::kNoResource:
    case NackCode::kNoSesMsgAvail:
      if (packet->nack_cnt < 255) ++packet->nack_cnt;
      if (config_.is_above_nack_limit(packet->nack_cnt))
        return fail(now, *packet->message, PdsError::kNackExhausted);
      return pause(now, *packet, config_.nack_retx_time);
    default:
      return drop(DropReason::kReservedNack);
  }
}

// --- Target

// No state: a duplicate is executed again and answered again. [PDS 17.2]
void Rudi::on_request(Instant now, const net::RxPacket& rx) {
  const auto bytes = rx.packet.bytes();
  if (bytes.size() < wire::PdsRudi::kSize)
    return trace_.drop(now, DropReason::kTruncated, bytes.size());
  const auto h = wire::decode<wire::PdsRudi>(bytes.data());
  if (h.next_hdr < NextHdr::kRequestSmall || h.next_hdr > NextHdr::kRequestStd)
    return trace_.drop(now, DropReason::kBadNextHeader, bytes.size());
  if (base::planted(base::PlantedBug::kRudiRepeatIgnored) && h.retx) return;
  const RxMeta meta = env_.meta_of(now, rx);
  const auto tell = [&](Refusal refusal) { nacks_.tell_rudi(now, rx.source, meta, h, refusal); };
  const auto refuse = [&](Refusal refusal) {
    trace_.drop(now, rule_of(refusal).reason, bytes.size());
    tell(refusal);
  };
  if (env_.is_trimmed(rx))
    return refuse(trimmed_refusal(rx.tos.dscp() == config_.dscp_trimmed_last_hop));
  if (built_.is_full()) return refuse(Refusal::kNoRoomForReply);
  net::Packet reply = pool_.allocate();
  if (!reply) return refuse(Refusal::kNoBuffer);
  RxRequest request;
  request.mode = Mode::kRudi;
  request.next_hdr = static_cast<std::uint8_t>(h.next_hdr);
  request.source = rx.source;
  request.bytes = bytes.subspan(wire::PdsRudi::kSize);
  const Answer answer = upper_.on_request(now, request);
  if (answer.kind == Answer::Kind::kRefuse) return tell(Refusal::kNoRoomInSes);
  if (answer.kind != Answer::Kind::kRespond)
    return trace_.drop(now, DropReason::kTableRefused, bytes.size());
  trace_.emit(now, EventId::kRequestDelivered, 0, Psn(h.pkt_id), bytes.size());
  const SesResponse& response = answer.response;
  if (response.header_bytes + response.data.size() > reply.tailroom())
    return trace_.drop(now, DropReason::kTooLarge, bytes.size());
  if (response.header_bytes > 0)
    std::memcpy(reply.append(response.header_bytes), response.header.data(), response.header_bytes);
  if (!response.data.empty())
    std::memcpy(reply.append(response.data.size()), response.data.data(), response.data.size());
  wire::PdsRudi header;
  header.type = wire::PdsType::kRudiResp;
  header.next_hdr = static_cast<NextHdr>(response.next_hdr != 0 ? response.next_hdr : 4);
  header.m = meta.ecn;
  header.retx = h.retx;
  header.pkt_id = h.pkt_id;
  wire::emit(header, reply.prepend(wire::PdsRudi::kSize));
  net::TxPacket out;
  out.packet = std::move(reply);
  out.destination = rx.source;
  out.entropy = rx.entropy;
  out.plane = rx.plane;
  out.tos.value = env_.control_tos();
  built_.push(std::move(out));
}

}  // namespace uet::pds
