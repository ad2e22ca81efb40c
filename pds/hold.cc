// Option: a ROD destination holds packets behind a gap instead of dropping them. Same bytes on the
// wire, one retransmission instead of a window of them. [PDS 17.1, 20.1]

#include "pds/engine.h"

namespace uet::pds {

namespace {
// ROD packets follow one path, so packets behind a gap mean that it is lost; a few are waited for
// in case the path changed.
constexpr std::uint32_t kHeldBeforeNack = 3;
// Of the NACKs that one packet may draw.
constexpr unsigned kReportsAtOnce = 16;

std::size_t hash_of(std::uint32_t owner, Psn psn) {
  return mix(std::uint64_t{owner} << 32 | psn.value());
}
}  // namespace

/// Takes the packet over. False when it cannot be held: then the usual answer is right.
bool Engine::hold(Instant now, Pdc& pdc, const Arrival& in) {
  if (in.packet == nullptr || in.is_control) return false;
  const std::uint32_t owner = table_.slot_of(pdc);
  if (is_held(pdc, in.psn)) {
    trace_.drop(now, DropReason::kDuplicate, in.body.size(), pdc.id, in.psn);
    return true;
  }
  // Held packets may not take the buffers that receiving the missing one, and answering, need.
  if (pool_.available() < pool_.capacity() / 2) return false;
  HeldPacket* held = held_.acquire();
  if (held == nullptr) return false;
  held->owner = owner;
  held->arrival = in;
  held->packet = std::move(*in.packet);
  held->arrival.packet = nullptr;
  held_index_.insert(hash_of(owner, in.psn), *held);
  RxHalf& rx = pdc.rx;
  ++rx.held;
  rx.held_last = rx.held == 1 ? in.psn : serial_max(rx.held_last, in.psn);
  report_gaps(now, pdc, in.meta);
  return true;
}

bool Engine::is_held(const Pdc& pdc, Psn psn) {
  const std::uint32_t owner = table_.slot_of(pdc);
  return held_index_.find(hash_of(owner, psn), [&](const HeldPacket& h) {
    return h.owner == owner && h.arrival.psn == psn;
  }) != nullptr;
}

/// Names every missing PSN that enough later ones have overtaken: once when it is overtaken, and again in rounds, since its copy
/// may be lost too. The source knows by the time whether that copy can have arrived.
void Engine::report_gaps(Instant now, Pdc& pdc, const RxMeta& meta) {
  RxHalf& rx = pdc.rx;
  if (rx.held < kHeldBeforeNack) return;
  if (now - rx.last_ooo_nack >= gap_round(pdc)) begin_gap_round(now, pdc);
  report_gaps_before(now, pdc, meta, rx.held_last - (kHeldBeforeNack - 1));
}

/// A source that asks has nothing more to send before it knows what is missing, so nothing more will overtake.
void Engine::report_all_gaps(Instant now, Pdc& pdc, const RxMeta& meta) {
  if (pdc.rx.held == 0) return;
  begin_gap_round(now, pdc);
  report_gaps_before(now, pdc, meta, pdc.rx.held_last);
}

void Engine::begin_gap_round(Instant now, Pdc& pdc) {
  pdc.rx.last_ooo_nack = now;
  pdc.rx.gaps_reported = pdc.rx.edge;
}

void Engine::report_gaps_before(Instant now, Pdc& pdc, const RxMeta& meta, Psn end) {
  RxHalf& rx = pdc.rx;
  unsigned reports = 0;
  const unsigned most = pdc.is_unproven() ? 1 : kReportsAtOnce;  // one packet draws one
  for (Psn psn = serial_max(rx.gaps_reported, rx.edge) + 1; psn.is_before(end) && reports < most;
       ++psn) {
    rx.gaps_reported = psn;
    if (is_held(pdc, psn)) continue;
    ++reports;
    wire::PdsNack header;
    header.nack_code = NackCode::kRcvrInferLoss;
    header.nack_psn = psn;
    header.m = meta.ecn;
    // A target PDC that has accepted nothing may be gone the next moment: its identifier must not be learnt.
    header.spdcid = pdc.is_initiator || rx.has_accepted ? pdc.id : 0;
    header.dpdcid = pdc.peer_id;
    nacks_.add(now, pdc.peer, meta, header, header.spdcid != 0);
  }
}

/// The destination does not know the round trip. The configured one is a fair guess, and a round too early is answered by the source.
Duration Engine::gap_round(const Pdc& pdc) const {
  return std::min(round_trip(pdc, config_), congestions_.config().config_base_rtt);
}

/// Delivers what has become in order.
void Engine::deliver_held(Instant now, Pdc& pdc) {
  const PdcRef ref = pdc.ref();
  const std::uint32_t owner = table_.slot_of(pdc);
  while (pdc.rx.held > 0) {
    const Psn psn = pdc.rx.edge + 1;
    HeldPacket* held = held_index_.find(hash_of(owner, psn), [&](const HeldPacket& h) {
      return h.owner == owner && h.arrival.psn == psn;
    });
    if (held == nullptr) return;
    const Arrival arrival = held->arrival;
    const net::Packet packet = std::move(held->packet);  // keeps the bytes of `arrival` alive
    drop_held(pdc, *held);
    deliver(now, pdc, arrival);
    if (!table_.is_alive(ref) || pdc.rx.edge != psn)
      return;  // gone, or refused: the source sends it again
  }
}

void Engine::drop_held(Pdc& pdc, HeldPacket& held) {
  held_index_.erase(hash_of(held.owner, held.arrival.psn), held);
  held_.release(&held);
  --pdc.rx.held;
}

void Engine::release_held(Pdc& pdc) {
  const std::uint32_t owner = table_.slot_of(pdc);
  for (Psn psn = pdc.rx.cack + 1; pdc.rx.held > 0 && psn.is_at_or_before(pdc.rx.held_last); ++psn) {
    HeldPacket* held = held_index_.find(hash_of(owner, psn), [&](const HeldPacket& h) {
      return h.owner == owner && h.arrival.psn == psn;
    });
    if (held != nullptr) drop_held(pdc, *held);
  }
}

}  // namespace uet::pds
