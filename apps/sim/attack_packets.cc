#include "apps/sim/attack_packets.h"

#include <algorithm>
#include <utility>

#include "apps/sim/attack_plan.h"
#include "lib/wire/codec.h"
#include "ses/sequence.h"

namespace uet::sim {

using base::Psn;
using wire::ControlType;
using wire::NackCode;
using wire::NextHdr;
using wire::PdsType;
using wire::SesOpcode;

namespace {

template <typename H>
AttackBytes packet_of(const H& header) {
  AttackBytes out(H::kSize);
  wire::emit(header, out.data());
  return out;
}

template <typename H>
void append(AttackBytes& out, const H& header) {
  const std::size_t at = out.size();
  out.resize(at + H::kSize);
  wire::emit(header, out.data() + at);
}

template <typename H>
H addressed(const MessagePiece& p) {
  H h;
  h.opcode = p.opcode;
  h.dc = p.dc;
  h.rel = true;
  h.hd = p.hd;
  h.eom = p.eom;
  h.som = p.som;
  h.message_id = p.message_id;
  h.job_id = p.job;
  h.resource_index = p.index;
  h.buffer_offset = p.buffer_offset;
  h.mkey_match = p.key_or_tag;
  h.request_length = p.total;
  return h;
}

constexpr std::uint64_t kStrangeTag = std::uint64_t{1}
                                      << 40;  // no receive of any world asks for it
constexpr std::uint32_t kJobOfWorlds = 1;

}  // namespace

void Conversation::note_peer_psn(Psn psn) {
  recent[recents++ % recent.size()] = psn;
  if (!has_heard || psn.is_after(newest)) newest = psn;
  has_heard = true;
}

void append_piece(AttackBytes& out, const MessagePiece& piece) {
  if (piece.som) {
    auto h = addressed<wire::SesStandardFirst>(piece);
    h.header_data = 0x5ca1ab1e;
    append(out, h);
  } else {
    auto h = addressed<wire::SesStandardNext>(piece);
    h.payload_length = static_cast<std::uint16_t>(piece.bytes);
    h.message_offset = piece.offset;
    append(out, h);
  }
  for (std::uint32_t i = 0; i < piece.carried; ++i) out.push_back(attack_byte(piece.offset + i));
}

// --- Packets that mean what they say -------------------------------------------------------------

AttackBytes AttackPackets::opening(Conversation& c, const MessagePiece* body) {
  const Psn psn = c.next;
  c.next = c.next + 1;
  const auto offset = static_cast<std::uint16_t>(psn.distance_from(c.start));
  if (body == nullptr && rng_.chance(0.5)) {
    wire::PdsControlSyn h;
    h.ctl_type = ControlType::kNoop;
    h.isrod = c.is_rod;
    h.ar = true;
    h.psn = psn;
    h.spdcid = c.own_id;
    h.psn_offset = offset;
    return packet_of(h);
  }
  wire::PdsRequestSyn h;
  h.type = c.is_rod ? PdsType::kRodReq : PdsType::kRudReq;
  h.next_hdr = body != nullptr ? NextHdr::kRequestStd : NextHdr::kNone;
  h.ar = true;
  h.clear_psn_offset = -1;
  h.psn = psn;
  h.spdcid = c.own_id;
  h.psn_offset = offset;
  AttackBytes out = packet_of(h);
  if (body != nullptr) append_message(out, *body);
  return out;
}

AttackBytes AttackPackets::request(Conversation& c, const MessagePiece* body) {
  if (c.peer_id == 0 && !c.is_target) return opening(c, body);
  const Psn psn = c.next;
  c.next = c.next + 1;
  return request_at(c, psn, body);
}

AttackBytes AttackPackets::request_at(const Conversation& c, Psn psn, const MessagePiece* body) {
  wire::PdsRequest h;
  h.type = c.is_rod ? PdsType::kRodReq : PdsType::kRudReq;
  h.next_hdr = body != nullptr ? NextHdr::kRequestStd : NextHdr::kNone;
  h.ar = rng_.chance(0.7);
  h.retx = rng_.chance(0.1);
  h.clear_psn_offset = static_cast<std::int16_t>(c.start.distance_from(psn) - 1);
  h.psn = psn;
  h.spdcid = c.own_id;
  h.dpdcid = c.peer_id;
  AttackBytes out = packet_of(h);
  if (body != nullptr) append_message(out, *body);
  return out;
}

AttackBytes AttackPackets::honest_ack(const Conversation& c, Psn psn) {
  wire::PdsAckCcNscc h;
  h.cack_psn = psn;
  h.spdcid = c.own_id;
  h.dpdcid = c.peer_id;
  h.mpr = 8;
  return packet_of(h);
}

AttackBytes AttackPackets::control(const Conversation& c, ControlType type, Psn psn,
                                   std::uint32_t payload) {
  wire::PdsControl h;
  h.ctl_type = type;
  h.isrod = c.is_rod;
  h.ar = rng_.chance(0.5);
  h.retx = rng_.chance(0.1);
  h.probe_opaque = static_cast<std::uint16_t>(rng_.next_u32());
  h.psn = psn;
  h.spdcid = c.own_id;
  h.dpdcid = c.peer_id;
  h.payload = payload;
  return packet_of(h);
}

AttackBytes AttackPackets::nack(const Conversation& c, NackCode code, Psn psn,
                                std::uint32_t payload) {
  wire::PdsNack h;
  h.nack_code = code;
  h.nack_psn = psn;
  h.spdcid = c.own_id;
  h.dpdcid = c.peer_id;
  h.payload = payload;
  h.retx = rng_.chance(0.2);
  h.m = rng_.chance(0.1);
  return packet_of(h);
}

// --- Choices --------------------------------------------------------------------------------------

Psn AttackPackets::any_peer_psn(const Conversation& c) {
  if (!c.knows_psns) return Psn(rng_.next_u32());
  const Psn newest = c.has_heard ? c.newest : c.start;
  switch (rng_.below(12)) {
    case 0:
      return c.start;
    case 1:
      return newest + 1;
    case 2:
      return newest + static_cast<std::int32_t>(rng_.below(1100));
    case 3:
      return newest - static_cast<std::int32_t>(rng_.below(1100));
    case 4:
      return Psn(rng_.next_u32());
    case 5:
      return newest - (1 << 30);
    case 6:
      return c.start - 1;
    case 7:
      return c.next;
    default:
      if (c.recents == 0) return newest;
      return c.recent[rng_.below(std::min<std::uint32_t>(c.recents, c.recent.size()))];
  }
}

Psn AttackPackets::any_own_psn(const Conversation& c) {
  if (!c.knows_psns) return Psn(rng_.next_u32());
  switch (rng_.below(10)) {
    case 0:
      return c.start;
    case 1:
      return c.next - 1;
    case 2:
      return c.next + static_cast<std::int32_t>(rng_.below(40));
    case 3:
      return c.start + static_cast<std::int32_t>(1020 + rng_.below(8));
    case 4:
      return c.start - static_cast<std::int32_t>(rng_.below(1100));
    case 5:
      return Psn(rng_.next_u32());
    case 6:
      return c.start + static_cast<std::int32_t>(rng_.below(1024));
    default:
      return c.next;
  }
}

/// [decision 141] Of one of a few streams, in an order that no initiator has.
void AttackPackets::append_message(AttackBytes& out, MessagePiece piece) {
  const bool tagged = piece.opcode == SesOpcode::kTaggedSend;
  if (numbers_ != nullptr && (tagged || piece.opcode == SesOpcode::kSend) &&
      numbers_->chance(0.5)) {
    const bool is_far = numbers_->chance(0.05);
    ses::SequenceField place;
    place.stream = 1 + numbers_->below(numbers_->chance(0.9) ? 3 : 100);
    place.number = is_far ? numbers_->next_u32() & ses::kNumberMask : numbers_->below(200);
    place.behind = static_cast<std::uint16_t>(numbers_->below(numbers_->chance(0.9) ? 20 : 65536));
    piece.buffer_offset = place.pack();
    piece.opcode = tagged ? SesOpcode::kSequencedTsend : SesOpcode::kSequencedSend;
    if (numbers_->chance(0.1)) {
      piece.opcode = tagged ? SesOpcode::kSequencedTgap : SesOpcode::kSequencedGap;
      piece.total = piece.bytes = piece.carried = piece.offset = 0;
      piece.som = piece.eom = true;
    }
  }
  if (append_rendezvous(out, piece)) return;
  append_piece(out, piece);
}

/// [decision 142] Says of what it left behind what may be true or not.
bool AttackPackets::append_rendezvous(AttackBytes& out, MessagePiece piece) {
  const bool tagged = piece.opcode == SesOpcode::kTaggedSend;
  const bool is_send = tagged || piece.opcode == SesOpcode::kSend;
  if (rendezvous_ == nullptr || !is_send || !rendezvous_->chance(0.33)) return false;
  base::Rng& rng = *rendezvous_;
  piece.opcode = tagged ? SesOpcode::kRendezvousTsend : SesOpcode::kRendezvousSend;
  wire::ExtRendezvous ext;
  ext.eager_length = rng.chance(0.5) ? 0 : rng.chance(0.8) ? piece.total : rng.next_u32();
  ext.read_pid_on_fep = static_cast<std::uint16_t>(rng.below(rng.chance(0.8) ? 1 : 4096));
  ext.read_resource_index = static_cast<std::uint16_t>(rng.below(rng.chance(0.8) ? 3 : 4096));
  ext.read_offset = rng.chance(0.8) ? 0 : rng.next_u64();
  ext.read_memory_key = rng.next_u64();
  if (ext.eager_length == 0) {
    piece.bytes = piece.carried = piece.offset = 0;
    piece.som = piece.eom = true;
  }
  const std::uint32_t carried = std::exchange(piece.carried, 0);
  append_piece(out, piece);
  append(out, ext);
  for (std::uint32_t i = 0; i < carried; ++i) out.push_back(attack_byte(piece.offset + i));
  if (rng.chance(0.05)) out.pop_back();
  return true;
}

std::uint16_t AttackPackets::any_id(std::uint16_t right) {
  if (rng_.chance(0.92)) return right;
  return rng_.chance(0.5) ? std::uint16_t{0} : static_cast<std::uint16_t>(rng_.next_u32());
}

std::uint16_t AttackPackets::any_offset(std::uint16_t right) {
  constexpr std::array<std::uint16_t, 6> kOffsets = {0, 1, 0x7fff, 0x8000, 0xffff, 1023};
  return rng_.chance(0.6) ? right : one_of(kOffsets);
}

NackCode AttackPackets::any_nack_code() {
  const auto codes = wire::enum_entries<NackCode>();
  if (rng_.chance(0.05)) return static_cast<NackCode>(rng_.below(256));
  return static_cast<NackCode>(codes[rng_.below(static_cast<std::uint32_t>(codes.size()))].value);
}

std::uint32_t AttackPackets::any_length() {
  switch (rng_.below(9)) {
    case 0:
      return 0;
    case 1:
      return 1 + rng_.below(64);
    case 2:
      return 15 + rng_.below(4);
    case 3:
      return mtu_ - 1 + rng_.below(3);
    case 4:
      return mtu_ * (1 + rng_.below(6)) + rng_.below(2);
    case 5:
      return rng_.next_u32();
    case 6:
      return mtu_ * (1 + rng_.below(6));
    default:
      return rng_.below(mtu_);
  }
}

MessagePiece AttackPackets::good_read(std::uint32_t bytes) {
  MessagePiece p;
  p.opcode = SesOpcode::kRead;
  p.total = bytes;
  p.bytes = std::min(bytes, mtu_);
  p.eom = bytes <= mtu_;
  p.message_id = static_cast<std::uint16_t>(1 + rng_.below(0xffff));
  p.key_or_tag = Lure::kKey;
  return p;
}

MessagePiece AttackPackets::any_piece() {
  constexpr std::array kOpcodes = {SesOpcode::kSend,          SesOpcode::kTaggedSend,
                                   SesOpcode::kTaggedSend,    SesOpcode::kWrite,
                                   SesOpcode::kRead,          SesOpcode::kRead,
                                   SesOpcode::kRead,          SesOpcode::kMsgError,
                                   SesOpcode::kNoOp,          SesOpcode::kDeferrableTsend,
                                   SesOpcode::kDeferrableRtr, SesOpcode::kAtomic,
                                   SesOpcode::kSend,          SesOpcode::kWrite};
  MessagePiece p;
  p.opcode = rng_.chance(0.97) ? one_of(kOpcodes) : static_cast<SesOpcode>(rng_.below(64));
  p.message_id =
      static_cast<std::uint16_t>(rng_.chance(0.8) ? 1 + rng_.below(6) : rng_.below(0x10000));
  const bool is_read = p.opcode == SesOpcode::kRead;
  const bool is_rma = is_read || p.opcode == SesOpcode::kWrite;
  p.total = any_length();
  const std::uint32_t pieces = p.total / mtu_ + (p.total % mtu_ != 0 || p.total == 0 ? 1 : 0);
  const std::uint32_t piece = rng_.below(std::min(pieces, 6u) + 1);
  p.som = piece == 0;
  p.offset = p.som ? 0 : std::min(piece, pieces - 1) * mtu_;
  p.bytes = std::min(mtu_, p.total - std::min(p.total, p.offset));
  p.eom = std::uint64_t{p.offset} + p.bytes >= p.total;
  p.carried = is_read ? 0 : p.bytes;
  p.dc = rng_.chance(0.2);
  p.hd = rng_.chance(0.3) && !is_read;
  p.key_or_tag = is_rma ? Lure::kKey : Lure::kTag + rng_.below(4);
  if (is_rma && rng_.chance(0.2)) p.key_or_tag = kStrangeTag | rng_.next_u32();
  p.buffer_offset = is_rma && !rng_.chance(0.1) ? rng_.below(1024) : 0;
  if (rng_.chance(0.05)) p.buffer_offset = rng_.next_u64();
  if (rng_.chance(0.05)) p.som = !p.som;
  if (rng_.chance(0.05)) p.eom = !p.eom;
  if (rng_.chance(0.05)) p.carried = rng_.below(mtu_ + 1);
  if (rng_.chance(0.05)) p.bytes = rng_.below(0x4000);
  // What waits at the endpoint of honest messages may be disturbed, but its receives and its memory are not the attacker's.
  if (rng_.chance(0.15) && (is_read || p.opcode == SesOpcode::kTaggedSend)) {
    p.job = kJobOfWorlds;
    p.index = 1;
    p.key_or_tag = kStrangeTag | rng_.next_u32();
  } else if (rng_.chance(0.05)) {
    p.index = static_cast<std::uint16_t>(rng_.below(16));
    p.job = 2 + rng_.below(2);
  }
  return p;
}

// --- Any packet -----------------------------------------------------------------------------------

AttackBytes AttackPackets::any_request(Conversation& c) {
  const MessagePiece piece = any_piece();
  const MessagePiece* const body = rng_.chance(0.05) ? nullptr : &piece;
  if (rng_.chance(0.5)) return request(c, body);
  wire::PdsRequestCc h;
  const bool rod = rng_.chance(0.9) ? c.is_rod : !c.is_rod;
  const bool with_cc = rng_.chance(0.3);
  h.type = with_cc ? (rod ? PdsType::kRodCcReq : PdsType::kRudCcReq)
                   : (rod ? PdsType::kRodReq : PdsType::kRudReq);
  h.next_hdr = body != nullptr ? NextHdr::kRequestStd : NextHdr::kNone;
  if (rng_.chance(0.1)) h.next_hdr = static_cast<NextHdr>(rng_.below(16));
  h.ar = rng_.chance(0.5);
  h.retx = rng_.chance(0.3);
  h.psn = any_own_psn(c);
  h.clear_psn_offset = static_cast<std::int16_t>(
      any_offset(static_cast<std::uint16_t>(c.start.distance_from(h.psn) - 1)));
  h.spdcid = any_id(c.own_id);
  h.dpdcid = any_id(c.peer_id);
  h.syn = rng_.chance(0.1);  // then the identifier is read as an offset
  h.credit_target = rng_.next_u32();
  AttackBytes out = packet_of(h);
  if (!with_cc) out.resize(wire::PdsRequest::kSize);
  if (body != nullptr) append_message(out, *body);
  return out;
}

AttackBytes AttackPackets::any_control(Conversation& c) {
  const auto types = wire::enum_entries<ControlType>();
  const auto type = rng_.chance(0.97)
                        ? static_cast<ControlType>(
                              types[rng_.below(static_cast<std::uint32_t>(types.size()))].value)
                        : static_cast<ControlType>(rng_.below(16));
  const bool is_ours = rng_.chance(0.7);
  const Psn psn = is_ours ? any_own_psn(c) : any_peer_psn(c);
  const std::uint32_t payload = rng_.chance(0.5)   ? any_peer_psn(c).value()
                                : rng_.chance(0.5) ? any_own_psn(c).value()
                                                   : rng_.next_u32();
  if (is_ours && psn == c.next) c.next = c.next + 1;
  AttackBytes out = control(c, type, psn, payload);
  if (rng_.chance(0.05)) out[1] ^= 4;  // syn
  return out;
}

AttackBytes AttackPackets::any_nack(const Conversation& c) {
  const Psn psn = rng_.chance(0.9) ? any_peer_psn(c) : any_own_psn(c);
  std::uint32_t payload = 0;
  switch (rng_.below(4)) {
    case 0:
      payload = any_peer_psn(c).value();
      break;
    case 1:
      payload = psn.value();
      break;
    case 2:
      payload = rng_.next_u32();
      break;
    default:
      break;
  }
  return nack(c, any_nack_code(), psn, payload);
}

AttackBytes AttackPackets::any_ack(const Conversation& c) {
  wire::PdsAckCcNscc h;
  const auto form = rng_.below(4);
  h.type = form == 0 ? PdsType::kAck : form == 1 ? PdsType::kAckCcx : PdsType::kAckCc;
  h.m = rng_.chance(0.2);
  h.retx = rng_.chance(0.2);
  h.p = rng_.chance(0.1);
  h.req = static_cast<wire::AckReq>(rng_.below(4));
  h.cack_psn = any_peer_psn(c);
  h.ack_psn_offset = static_cast<std::int16_t>(any_offset(static_cast<std::uint16_t>(
      rng_.chance(0.5) ? 0 : any_peer_psn(c).distance_from(h.cack_psn))));
  h.spdcid = any_id(c.own_id);
  h.dpdcid = any_id(c.peer_id);
  h.cc_type = rng_.chance(0.9) ? static_cast<wire::CcType>(rng_.below(2))
                               : static_cast<wire::CcType>(rng_.below(16));
  h.mpr = static_cast<std::uint8_t>(rng_.chance(0.6) ? 8 : rng_.below(256));
  h.sack_psn_offset = static_cast<std::int16_t>(any_offset(1));
  h.sack_bitmap = rng_.chance(0.5) ? rng_.next_u64() : rng_.chance(0.5) ? 0 : ~std::uint64_t{0};
  h.service_time = static_cast<std::uint16_t>(rng_.chance(0.7) ? rng_.below(50) : rng_.next_u32());
  h.rcvd_bytes = rng_.next_u32();
  h.rcv_cwnd_pend = static_cast<std::uint8_t>(rng_.chance(0.8) ? 0 : rng_.below(128));
  h.restore_cwnd = rng_.chance(0.1);
  h.ooo_count = static_cast<std::uint16_t>(rng_.below(100));
  AttackBytes out = packet_of(h);
  if (form == 0) out.resize(wire::PdsAck::kSize);
  if (form == 1) out.resize(wire::PdsAckCcx::kSize);
  if (!rng_.chance(0.4)) return out;
  // A response, perhaps one with data that was never asked for.
  const auto next = static_cast<NextHdr>(4 + rng_.below(3));
  out[0] = static_cast<std::uint8_t>((out[0] & 0xf8) | static_cast<unsigned>(next) >> 1);
  out[1] = static_cast<std::uint8_t>((out[1] & 0x7f) | (static_cast<unsigned>(next) & 1) << 7);
  wire::SesResponseData r;
  r.opcode = static_cast<wire::ResponseOpcode>(rng_.below(4));
  r.list = static_cast<wire::ResponseList>(rng_.below(2));
  r.return_code = static_cast<wire::ReturnCode>(rng_.chance(0.4) ? 1 : rng_.below(64));
  r.message_id = static_cast<std::uint16_t>(rng_.below(16));
  r.job_id = kJobOfWorlds;
  r.read_request_message_id = static_cast<std::uint16_t>(rng_.below(16));
  r.payload_length = static_cast<std::uint16_t>(rng_.below(64));
  r.modified_length = any_length();
  r.message_offset = rng_.chance(0.5) ? 0 : any_length();
  append(out, r);
  if (next != NextHdr::kResponseData) out.resize(out.size() - 8);
  const std::uint32_t data = rng_.chance(0.5) ? r.payload_length : rng_.below(64);
  for (std::uint32_t i = 0; i < data; ++i) out.push_back(attack_byte(i));
  return out;
}

AttackBytes AttackPackets::any_single() {
  MessagePiece piece = any_piece();
  piece.message_id = 0;
  AttackBytes out;
  if (rng_.chance(0.6)) {
    wire::PdsRudi h;
    h.type = rng_.chance(0.6) ? PdsType::kRudiReq : PdsType::kRudiResp;
    h.next_hdr = h.type == PdsType::kRudiReq ? NextHdr::kRequestStd : NextHdr::kResponse;
    h.pkt_id = rng_.chance(0.5) ? rng_.below(1000) : rng_.next_u32();
    h.retx = rng_.chance(0.3);
    out = packet_of(h);
  } else {
    wire::PdsUud h;
    h.next_hdr = NextHdr::kRequestStd;
    if (rng_.chance(0.7)) piece.opcode = SesOpcode::kDatagramSend;
    out = packet_of(h);
  }
  // Datagrams of honest hosts go to job 1; these go to the lure.
  if (piece.job == kJobOfWorlds) piece.job = Lure::kJob;
  append_piece(out, piece);
  return out;
}

AttackBytes AttackPackets::any(Conversation& c) {
  const std::uint32_t kind = rng_.below(100);
  if (kind < 30) return any_request(c);
  if (kind < 52) return any_control(c);
  if (kind < 74) return any_nack(c);
  if (kind < 96) return any_ack(c);
  return any_single();
}

void AttackPackets::garble(AttackBytes& packet) {
  if (packet.empty()) return;
  switch (rng_.below(3)) {
    case 0:
      packet.resize(rng_.below(static_cast<std::uint32_t>(packet.size()) + 1));
      break;
    case 1:
      packet.resize(packet.size() + rng_.below(64), 0x11);
      break;
    default:  // in the PDS header only: one bit elsewhere could name a receive of an honest message
      packet[rng_.below(std::min<std::uint32_t>(static_cast<std::uint32_t>(packet.size()), 12))] ^=
          static_cast<std::uint8_t>(1u << rng_.below(8));
      break;
  }
}

}  // namespace uet::sim
