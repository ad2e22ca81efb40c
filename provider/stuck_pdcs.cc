#include "provider/stuck_pdcs.h"

#include <utility>

namespace uet::provider {
namespace {

std::uint32_t nacks_received(const pds::Pds::PdcView& pdc) {
  std::uint32_t sum = 0;
  for (const pds::NackCount& nack : pdc.nacks)
    if (nack.way == pds::NackWay::kReceived) sum += nack.count;
  return sum;
}

}  // namespace

void StuckPdcs::look(base::Instant now, fep::Fep& fep) {
  const std::uint64_t resent = fep.trace().count(base::EventId::kPacketRetransmitted);
  const bool is_any_resent = std::exchange(retransmitted_, resent) != resent;
  if (!is_any_resent && stuck_.empty()) {
    positions_.clear();
    looked_before_ = now;
    return;
  }
  std::unordered_map<std::uint16_t, StuckPdc> before;
  for (const StuckPdc& pdc : stuck_) before.emplace(pdc.id, pdc);
  stuck_.clear();
  // Retransmissions back off to more than the time between two looks: what nothing was sent again for is stuck as it was.
  const SignsOfPeers signs = is_any_resent ? read_signs(fep) : SignsOfPeers{};
  fep.pds().for_each_pdc([&](const pds::Pds::PdcView& pdc) {
    if (pdc.unacked == 0) return true;
    StuckPdc is{.peer = pdc.peer,
                .id = pdc.id,
                .cack = pdc.cack,
                .nacks = nacks_received(pdc),
                .resent = pdc.resent,
                .is_half_open = pdc.peer_id == 0,
                .is_closing = pdc.state == "CLOSE_ACK_WAIT"};
    const auto was = before.find(pdc.id);
    const bool is_stuck = was != before.end() && is.is_where(was->second);
    if (!is_any_resent) {
      if (is_stuck) stuck_.push_back(was->second);
      return true;
    }
    const auto seen = signs.find(pdc.peer);
    is.is_heard = seen != signs.end() && seen->second.is_heard;
    is.is_answered = seen != signs.end() && seen->second.is_answered;
    if (is_stuck) is.carry_on(was->second);
    stuck_.push_back(is);
    return true;
  });
  if (is_any_resent) looked_before_ = now;
}

void StuckPdc::carry_on(const StuckPdc& before) {
  is_resent = before.is_resent || resent != before.resent;
  resent = before.resent;
  looks = before.looks + 1;
  looks_heard = before.looks_heard + (is_heard ? 1 : 0);
  looks_answered = before.looks_answered + (is_answered ? 1 : 0);
}

/// What the peer sends by itself says nothing of our packets; an acknowledgement, a NACK, the answer to a Probe and an opening that it
/// has learnt of do.
StuckPdcs::SignsOfPeers StuckPdcs::read_signs(fep::Fep& fep) {
  SignsOfPeers signs;
  const Positions before = std::exchange(positions_, {});
  fep.pds().for_each_pdc([&](const pds::Pds::PdcView& pdc) {
    const Position is{
        .cack = pdc.cack, .nacks = nacks_received(pdc), .is_half_open = pdc.peer_id == 0};
    positions_.emplace(pdc.id, is);
    if (is.is_half_open) return true;
    Signs& of_peer = signs[pdc.peer];
    if (pdc.heard_at > looked_before_) of_peer.is_heard = true;
    const auto was = before.find(pdc.id);
    const bool has_moved = was != before.end() && was->second != is;
    if (has_moved || (pdc.is_probe_answered && pdc.probed_at > looked_before_))
      of_peer.is_answered = true;
    return true;
  });
  return signs;
}

}  // namespace uet::provider
