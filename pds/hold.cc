// Option: a ROD destination holds packets behind a gap instead of dropping them. Same bytes on the
// wire, one retransmission instead of a window of them. [PDS 17.1, 20.1]

#include "pds/engine.h"

namespace uet::pds {

namespace {
// ROD packets follow one path, so packets behind a gap mean that it is lost; a few are waited for
// in case the path changed.
constexpr std::uint32_t kHeldBeforeNack = 3;

std::size_t hash_of(std::uint32_t owner, Psn psn) {
  return mix(std::uint64_t{owner} << 32 | psn.value());
}
}  // namespace

/// Takes the packet over. False when it cannot be held: then the usual answer is right.
bool Engine::hold(Instant now, Pdc& pdc, const Arrival& in) {
  if (in.packet == nullptr || in.is_control) return false;
  const std::uint32_t owner = table_.slot_of(pdc);
  const auto is_same = [&](const HeldPacket& h) {
    return h.owner == owner && h.arrival.psn == in.psn;
  };
  if (held_index_.find(hash_of(owner, in.psn), is_same) != nullptr) {
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
  if (rx.held < kHeldBeforeNack) return true;
  if (!rx.ooo_nack_armed && now - rx.last_ooo_nack < round_trip(pdc)) return true;
  rx.ooo_nack_armed = false;
  rx.last_ooo_nack = now;
  Arrival gap = in;
  gap.psn = rx.edge + 1;
  gap.retx = false;
  nack_for(now, gap, &pdc, NackCode::kRcvrInferLoss);
  return true;
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
