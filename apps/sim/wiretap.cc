#include "apps/sim/wiretap.h"

#include <algorithm>

#include "lib/wire/codec.h"

namespace uet::sim {

using wire::PdsType;

namespace {

/// Packets of a forged opening that its target may have acknowledged.
constexpr std::int32_t kAnswered = 64;

/// A read, a fetching atomic, or a question whether a message was delivered.
bool asks_for_data(std::span<const std::uint8_t> bytes) {
  const auto type = static_cast<PdsType>(bytes[0] >> 3);
  const bool has_cc = type == PdsType::kRodCcReq || type == PdsType::kRudCcReq;
  if (!has_cc && type != PdsType::kRodReq && type != PdsType::kRudReq) return false;
  const std::size_t ses = has_cc ? wire::PdsRequestCc::kSize : wire::PdsRequest::kSize;
  if (bytes.size() <= ses) return false;
  const auto opcode = static_cast<wire::SesOpcode>(bytes[ses] & 0x3f);
  return opcode == wire::SesOpcode::kRead || opcode == wire::SesOpcode::kFetchingAtomic ||
         opcode == wire::SesOpcode::kTsendFetchAtomic || opcode == wire::SesOpcode::kAwaitDelivery;
}

}  // namespace

void Wiretap::on_delivered(const Frame& frame) {
  const auto bytes = frame.rx.packet.bytes();
  const HostId from = host_of(frame.rx.source);
  if (from != frame.source) {  // forged
    if (from < honest_hosts_) return note_forged(bytes);
    ++ghost_packets_;
    ghost_bytes_ += bytes.size();
    ghost_questions_ += asks_for_data(bytes) ? 1 : 0;
    return;
  }
  if (from >= honest_hosts_ || frame.trimmed || bytes.size() < wire::PdsRequest::kSize + 4) return;
  Heard h{.from = from, .to = frame.destination, .tos = frame.rx.tos};
  switch (static_cast<PdsType>(bytes[0] >> 3)) {
    case PdsType::kRodReq:
    case PdsType::kRodCcReq:
      h.is_rod = true;
      [[fallthrough]];
    case PdsType::kRudReq:
    case PdsType::kRudCcReq: {
      const auto r = wire::decode<wire::PdsRequest>(bytes.data());
      h.is_request = true;
      h.from_id = r.spdcid;
      h.to_id = r.syn ? std::uint16_t{0} : r.dpdcid;
      h.psn = r.psn;
      break;
    }
    case PdsType::kAck:
    case PdsType::kAckCc:
    case PdsType::kAckCcx: {
      const auto a = wire::decode<wire::PdsAck>(bytes.data());
      h.from_id = a.spdcid;
      h.to_id = a.dpdcid;
      h.psn = a.cack_psn;
      break;
    }
    default:
      break;
  }
  h.bytes.assign(bytes.begin(), bytes.end() - 4);  // without the CRC, which is put on again
  if (heard_.size() < kKept)
    heard_.push_back(std::move(h));
  else
    heard_[next_++ % kKept] = std::move(h);
}

void Wiretap::note_forged(std::span<const std::uint8_t> bytes) {
  if (bytes.size() < wire::PdsRequest::kSize) return;
  const auto type = static_cast<PdsType>(bytes[0] >> 3);
  if (type != PdsType::kRodReq && type != PdsType::kRudReq && type != PdsType::kRodCcReq &&
      type != PdsType::kRudCcReq)
    return;
  if (!wire::decode<wire::PdsRequest>(bytes.data()).syn) return;
  const auto opening = wire::decode<wire::PdsRequestSyn>(bytes.data());
  const base::Psn start = opening.psn - opening.psn_offset;
  if (forged_starts_.size() < kOpeningsKept)
    forged_starts_.push_back(start);
  else
    forged_starts_[next_start_++ % kOpeningsKept] = start;
}

bool Wiretap::has_forged_opening(base::Psn cack) const {
  return std::ranges::any_of(forged_starts_, [&](base::Psn start) {
    const std::int32_t beyond = cack.distance_from(start - 1);
    return beyond >= 0 && beyond < kAnswered;
  });
}

}  // namespace uet::sim
