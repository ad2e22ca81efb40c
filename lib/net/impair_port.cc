#include "lib/net/impair_port.h"

#include <algorithm>
#include <cstring>

namespace uet::net {

using base::DropReason;
using base::Duration;
using base::Instant;

namespace {

// Long enough for a few packets of any real link to pass, short against every timeout.
constexpr Duration kReorderHold = Duration::from_us(100);
constexpr std::size_t kBurst = 32;
// Different dice for the two directions, whatever the seed.
constexpr std::uint64_t kTxSeedTwist = 0x7478'7478'7478'7478;

/// The latest of a heap is at the front when this says "later".
constexpr auto kLater = [](const auto& a, const auto& b) {
  return a.due != b.due ? a.due > b.due : a.order > b.order;
};

}  // namespace

ImpairPort::ImpairPort(std::unique_ptr<Port> inner, const ImpairConfig& config, base::Trace& trace)
    : PortWrapper(std::move(inner)),
      trace_(trace),
      rx_{.what = config.rx, .rng = base::Rng(config.seed), .counters = {}, .held = {}},
      tx_{.what = config.tx,
          .rng = base::Rng(config.seed ^ kTxSeedTwist),
          .counters = {},
          .held = {}} {
  // One more than the limit: a duplicate of the last packet held.
  rx_.held.reserve(kMaxHeld + 1);
  tx_.held.reserve(kMaxHeld + 1);
}

Instant ImpairPort::next_deadline() const {
  return std::min({inner().next_deadline(), rx_.next_due(), tx_.next_due()});
}

void ImpairPort::on_deadline(Instant now) {
  if (inner().next_deadline() <= now) inner().on_deadline(now);
  flush_tx(now);
}

/// Rolls the dice for loss and corruption. False: the packet is gone.
template <typename P>
bool ImpairPort::survives(Instant now, Direction<P>& direction, P& packet) {
  if (direction.rng.chance(direction.what.loss)) {
    ++direction.counters.lost;
    trace_.drop(now, DropReason::kImpaired, packet.packet.size());
    if (tap_ != nullptr) tap_->on_lost(now, packet);
    packet.packet.reset();
    return false;
  }
  if (packet.packet.size() != 0 && direction.rng.chance(direction.what.corrupt)) {
    ++direction.counters.corrupted;
    const std::uint32_t bit =
        direction.rng.below(static_cast<std::uint32_t>(packet.packet.size() * 8));
    packet.packet.data()[bit / 8] ^= static_cast<std::uint8_t>(1u << (bit % 8));
  }
  return true;
}

/// 0: goes at once.
template <typename P>
Duration ImpairPort::hold_time(Direction<P>& direction) {
  Duration time = direction.what.delay;
  if (direction.what.jitter > Duration())
    time += Duration::from_ns(static_cast<std::int64_t>(
        direction.rng.unit() * static_cast<double>(direction.what.jitter.ns())));
  if (direction.rng.chance(direction.what.reorder)) {
    ++direction.counters.reordered;
    time += kReorderHold;
  }
  if (direction.held.size() >= kMaxHeld) return Duration();
  if (time > Duration()) ++direction.counters.delayed;
  return time;
}

template <typename P>
void ImpairPort::hold(Instant due, Direction<P>& direction, P packet) {
  direction.held.push_back(Held<P>{due, direction.order++, std::move(packet)});
  std::push_heap(direction.held.begin(), direction.held.end(), kLater);
}

template <typename P>
P ImpairPort::take_due(Direction<P>& direction) {
  std::pop_heap(direction.held.begin(), direction.held.end(), kLater);
  P packet = std::move(direction.held.back().packet);
  direction.held.pop_back();
  return packet;
}

/// A null packet when the pool is empty.
template <typename P>
P ImpairPort::copy_of(const P& original) {
  P copy;
  copy.packet = inner().pool().allocate();
  if (!copy.packet) return copy;
  const auto bytes = original.packet.bytes();
  std::memcpy(copy.packet.append(bytes.size()), bytes.data(), bytes.size());
  copy.destination = original.destination;
  copy.entropy = original.entropy;
  copy.tos = original.tos;
  if constexpr (requires { copy.source; }) copy.source = original.source;
  if constexpr (requires { copy.entropy_reserved; })
    copy.entropy_reserved = original.entropy_reserved;
  if constexpr (requires { copy.plane; }) copy.plane = original.plane;
  return copy;
}

std::size_t ImpairPort::receive(Instant now, std::span<RxPacket> out) {
  std::size_t n = 0;
  while (n < out.size() && rx_.next_due() <= now) out[n++] = take_due(rx_);
  while (n < out.size()) {
    std::array<RxPacket, kBurst> burst;
    const std::size_t want = std::min(kBurst, out.size() - n);
    const std::size_t got = inner().receive(now, {burst.data(), want});
    for (std::size_t i = 0; i < got; ++i) {
      RxPacket& rx = burst[i];
      if (!survives(now, rx_, rx)) continue;
      if (rx_.rng.chance(rx_.what.duplicate) && rx_.held.size() < kMaxHeld) {
        if (RxPacket copy = copy_of(rx); copy.packet) {
          ++rx_.counters.duplicated;
          hold(now + hold_time(rx_), rx_, std::move(copy));
        }
      }
      const Duration time = hold_time(rx_);
      if (time > Duration())
        hold(now + time, rx_, std::move(rx));
      else
        out[n++] = std::move(rx);
    }
    if (got < want) break;
  }
  // Duplicates without delay come right behind.
  while (n < out.size() && rx_.next_due() <= now) out[n++] = take_due(rx_);
  return n;
}

std::size_t ImpairPort::send(Instant now, std::span<TxPacket> in) {
  flush_tx(now);
  std::size_t n = 0;
  while (n < in.size()) {
    // What the port inside cannot take waits in the heap, so every packet offered here is taken: dice are rolled once.
    if (tx_.held.size() >= kMaxHeld) break;
    TxPacket& tx = in[n++];
    tx.packet.keep_borrowed();
    if (!survives(now, tx_, tx)) continue;
    if (tx_.rng.chance(tx_.what.duplicate)) {
      if (TxPacket copy = copy_of(tx); copy.packet) {
        ++tx_.counters.duplicated;
        hold(now + hold_time(tx_), tx_, std::move(copy));
      }
    }
    hold(now + hold_time(tx_), tx_, std::move(tx));
  }
  flush_tx(now);
  return n;
}

/// Sends what is due. What the port inside does not take stays due.
void ImpairPort::flush_tx(Instant now) {
  while (tx_.next_due() <= now) {
    std::array<TxPacket, kBurst> burst;
    std::array<Instant, kBurst> dues;
    std::size_t count = 0;
    while (count < kBurst && tx_.next_due() <= now) {
      dues[count] = tx_.next_due();
      burst[count++] = take_due(tx_);
    }
    const std::size_t taken = inner().send(now, {burst.data(), count});
    for (std::size_t i = taken; i < count; ++i) hold(dues[i], tx_, std::move(burst[i]));
    if (taken < count) return;
  }
}

const ImpairPort* impairment_of(const Port& port) {
  const Port* at = &port;
  while (at != nullptr) {
    if (const auto* impairment = dynamic_cast<const ImpairPort*>(at)) return impairment;
    const auto* wrapper = dynamic_cast<const PortWrapper*>(at);
    at = wrapper != nullptr ? &wrapper->inner() : nullptr;
  }
  return nullptr;
}

}  // namespace uet::net
