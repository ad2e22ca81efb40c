#include "tests/fuzz/conversations.h"

#include <utility>

#include "lib/wire/codec.h"

namespace uet::fuzz {

using base::Psn;
using wire::PdsType;

/// The first two bytes choose the conversation and the form; two seed the fields that make it harmful; then the fuzzer may set
/// any byte of the result itself.
Conversations::Packet Conversations::packet(Choices& in) {
  const std::uint8_t form = in.u8();
  const std::uint8_t which = in.u8();
  base::Rng fields(in.u16());
  sim::AttackPackets make(fields, mtu_);
  if (talks_.empty() || (which & 0xe0) == 0xe0) {
    Talk t;
    t.peer = which % peers_;
    t.c.is_rod = (which & 4) != 0;
    t.c.own_id = static_cast<std::uint16_t>(1 + fields.below(0xffff));
    t.c.start = t.c.next = Psn(fields.next_u32());
    remember(t);
  }
  Talk& t = talks_[which % talks_.size()];
  sim::AttackBytes bytes;
  const sim::MessagePiece piece = make.any_piece();
  const sim::MessagePiece read = make.good_read(1 + fields.below(4000));
  switch (form % 12) {
    case 0:
      bytes = make.opening(t.c, (form & 16) != 0 ? &piece : nullptr);
      break;
    case 1:
    case 2:
      bytes = make.request(t.c, &piece);
      break;
    case 3:
      bytes = make.request(t.c, &read);
      break;
    case 4:
      bytes = make.honest_ack(t.c, t.c.newest);
      break;
    case 5:
      bytes = make.any_ack(t.c);
      break;
    case 6:
      bytes = make.any_nack(t.c);
      break;
    case 7:
      bytes = make.any_control(t.c);
      break;
    case 8:
      bytes = make.nack(t.c, make.any_nack_code(), t.c.newest, t.c.newest.value());
      break;
    case 9:
      bytes = make.any_single();
      break;
    case 10: {
      const Bytes raw = in.bytes(in.u8());
      bytes.assign(raw.begin(), raw.end());
      break;
    }
    default:
      bytes = make.any_request(t.c);
      break;
  }
  for (unsigned changes = form >> 6; changes > 0 && !bytes.empty(); --changes) {
    const std::size_t at = in.u8() % bytes.size();
    bytes[at] = in.u8();
  }
  const bool is_trimmed = (form & 0x3f) == 0x3f;
  return {t.peer, std::move(bytes), is_trimmed};
}

Conversations::Talk* Conversations::find(std::size_t peer, std::uint16_t own_id) {
  for (Talk& t : talks_)
    if (t.peer == peer && t.c.own_id == own_id) return &t;
  return nullptr;
}

void Conversations::remember(const Talk& talk) {
  if (talks_.size() < kTalks)
    talks_.push_back(talk);
  else
    talks_[next_++ % kTalks] = talk;
}

void Conversations::learn(std::size_t peer, Bytes bytes) {
  if (bytes.size() < wire::PdsRequest::kSize) return;
  const auto type = static_cast<PdsType>(bytes[0] >> 3);
  if (type == PdsType::kAck || type == PdsType::kAckCc || type == PdsType::kAckCcx) {
    const auto a = wire::decode<wire::PdsAck>(bytes.data());
    if (Talk* t = find(peer, a.dpdcid); t != nullptr && a.spdcid != 0) t->c.peer_id = a.spdcid;
    return;
  }
  const bool is_request = type == PdsType::kRudReq || type == PdsType::kRodReq ||
                          type == PdsType::kRudCcReq || type == PdsType::kRodCcReq;
  if (!is_request && type != PdsType::kControl) return;
  const auto r = wire::decode<wire::PdsRequest>(bytes.data());
  const auto syn = wire::decode<wire::PdsRequestSyn>(bytes.data());
  Talk* t = r.syn ? nullptr : find(peer, r.dpdcid);
  if (r.syn) {
    for (Talk& known : talks_)
      if (known.peer == peer && known.c.is_target && known.c.peer_id == r.spdcid) t = &known;
    if (t == nullptr) {
      Talk fresh;
      fresh.peer = peer;
      fresh.c.is_target = true;
      fresh.c.is_rod = type == PdsType::kRodReq || type == PdsType::kRodCcReq;
      fresh.c.own_id = static_cast<std::uint16_t>(r.spdcid ^ 0x5555);
      if (fresh.c.own_id == 0) fresh.c.own_id = 1;
      fresh.c.start = fresh.c.next = r.psn - syn.psn_offset;
      remember(fresh);
      t = find(peer, fresh.c.own_id);
    }
  }
  if (t == nullptr) return;
  t->c.peer_id = r.spdcid;
  t->c.note_peer_psn(r.psn);
}

}  // namespace uet::fuzz
