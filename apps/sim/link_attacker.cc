#include "apps/sim/link_attacker.h"

#include <algorithm>
#include <utility>

namespace uet::sim {

namespace {

constexpr std::uint8_t kDscpOfTrimmed = 26;

}  // namespace

LinkAttacker::LinkAttacker(Simulation& simulation, Fabric& fabric, const SecurePlan& plan,
                           HostId hosts)
    : simulation_(simulation),
      fabric_(fabric),
      plan_(plan),
      hosts_(hosts),
      rng_(plan.seed ^ 0x6c696e6b),
      hold_rng_(plan.seed ^ 0x686f6c64) {}

void LinkAttacker::on_sent(const Frame& frame) {
  if (plan_.attack_rate == 0) return;
  record(frame);
  if (planned_ >= kMaxAttacks || !rng_.chance(plan_.attack_rate)) return;
  ++planned_;
  simulation_.events.call_at(simulation_.now() + plan_.attack_lag + any_delay(),
                             [this] { attack(); });
}

/// Every packet has the same chance to be among those that are kept.
void LinkAttacker::record(const Frame& frame) {
  const std::uint64_t number = seen_++;
  std::size_t place = recorded_.size();
  if (place < kKept) {
    recorded_.emplace_back();
  } else {
    place = static_cast<std::size_t>(rng_.unit() * static_cast<double>(number + 1));
    if (place >= kKept) return;
  }
  const auto bytes = frame.rx.packet.bytes();
  Recorded& r = recorded_[place];
  r.from = frame.source;
  r.to = frame.destination;
  r.bytes.assign(bytes.begin(), bytes.end());
  r.source = frame.rx.source;
  r.entropy = frame.rx.entropy;
  r.tos = frame.rx.tos;
  r.plane = frame.rx.plane;
}

/// Held for up to four round trips: what left after it is there before.
bool LinkAttacker::take(Frame* frame) {
  if (is_releasing_ || !hold_rng_.chance(plan_.hold_rate)) return false;
  ++attacks_[static_cast<std::size_t>(SecureAttack::kHold)];
  const SimSpan longest = fabric_.config().base_rtt() * 4;
  const auto wait = static_cast<std::int64_t>(hold_rng_.unit() * static_cast<double>(longest.ps()));
  simulation_.events.call_at(simulation_.now() + SimSpan::from_ps(wait), [this, frame] {
    is_releasing_ = true;
    fabric_.port(frame->destination).sink(frame->rx.plane).on_frame(frame);
    is_releasing_ = false;
  });
  return true;
}

/// At once, within a few round trips, or when all that it belonged to is over.
SimSpan LinkAttacker::any_delay() {
  const SimSpan longest = rng_.chance(0.3)   ? SimSpan{}
                          : rng_.chance(0.5) ? fabric_.config().base_rtt() * 4
                                             : plan_.attack_delay;
  return SimSpan::from_ps(
      static_cast<std::int64_t>(rng_.unit() * static_cast<double>(longest.ps())));
}

void LinkAttacker::attack() {
  // Copies are what a receiver cannot tell from the original, so half of all are.
  const auto how = rng_.chance(0.5) ? SecureAttack::kReplay
                                    : static_cast<SecureAttack>(rng_.below(kCopyAttackCount));
  Recorded packet = any_recorded();
  if (!change(how, packet)) return;
  ++attacks_[static_cast<std::size_t>(how)];
  inject(packet);
}

/// False when nothing came of it.
bool LinkAttacker::change(SecureAttack how, Recorded& p) {
  switch (how) {
    case SecureAttack::kReplay:
      return true;
    case SecureAttack::kHold:
    case SecureAttack::kCount:
      return false;  // nothing that is done with a copy
    case SecureAttack::kReflect:
      p.to = rng_.chance(0.5) ? p.from : rng_.below(hosts_);
      return true;
    case SecureAttack::kFlip:
      p.bytes[any_place(p)] ^= static_cast<std::uint8_t>(1u << rng_.below(8));
      return true;
    case SecureAttack::kSplice: {
      const Recorded& other = any_recorded();
      const std::uint32_t head = any_place(p);
      if (other.bytes.size() <= head) return false;
      p.bytes.resize(head);
      p.bytes.insert(p.bytes.end(), other.bytes.begin() + head, other.bytes.end());
      return true;
    }
    case SecureAttack::kCut:
      p.bytes.resize(any_place(p));
      return true;
    case SecureAttack::kImpersonate:
      p.source = address_of(rng_.below(hosts_ + 2));
      return true;
    case SecureAttack::kReroute:
      p.entropy = static_cast<std::uint16_t>(rng_.next_u32());
      return true;
    case SecureAttack::kRemark: {
      const std::uint32_t draw = rng_.next_u32();
      p.tos.value = static_cast<std::uint8_t>(draw);
      if ((draw & 0x100) != 0) p.tos = net::TosByte::of(kDscpOfTrimmed, p.tos.ecn());
      return true;
    }
  }
  return false;
}

/// Into the last link of the way. It looks as if it came from where it says.
void LinkAttacker::inject(const Recorded& p) {
  if (p.to >= hosts_) return;  // to an attacker's own host
  net::Packet packet = simulation_.packets_pool.allocate();
  if (!packet) return;  // lost; the pool is shared by all frames and large
  std::copy(p.bytes.begin(), p.bytes.end(), packet.append(p.bytes.size()));
  Frame* frame = simulation_.frames.acquire();
  frame->rx.packet = std::move(packet);
  frame->rx.source = p.source;
  frame->rx.destination = address_of(p.to);
  frame->rx.entropy = p.entropy;
  frame->rx.tos = p.tos;
  frame->source = host_of(p.source);
  frame->destination = p.to;
  frame->flow = std::uint64_t{frame->source} << 32 | p.to;
  ++packets_;
  fabric_.port(p.to).sink(p.plane).on_frame(frame);
}

SimTime LinkAttacker::replay_everything() {
  SimTime at = simulation_.now();
  for (std::size_t i = 0; i < recorded_.size(); ++i) {
    at = at + SimSpan::from(base::Duration::from_us(1));
    simulation_.events.call_at(at, [this, i] { inject(recorded_[i]); });
  }
  return at;
}

}  // namespace uet::sim
