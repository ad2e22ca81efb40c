/// An attacker on every link of a secured world: it has all packets and no key. It replays, splices and changes what it
/// recorded, holds packets back so that others overtake them, and must deliver nothing.
#pragma once

#include <array>
#include <vector>

#include "apps/sim/attack_packets.h"
#include "apps/sim/secure_plan.h"
#include "sim/fabric.h"

namespace uet::sim {

class LinkAttacker {
 public:
  /// Everything must outlive it, and the events that it puts into the world.
  LinkAttacker(Simulation& simulation, Fabric& fabric, const SecurePlan& plan, HostId hosts);

  /// An honest host sends; part of these draw an attack soon, or later.
  void on_sent(const Frame& frame);
  /// A packet is about to reach its host. True: it comes later.
  bool take(Frame* frame);
  /// All that is kept comes again, in order. Returns when the last of it is there.
  SimTime replay_everything();

  std::uint64_t packets() const { return packets_; }
  const std::array<std::uint64_t, kSecureAttackCount>& attacks() const { return attacks_; }

 private:
  /// A packet that was on a link.
  struct Recorded {
    HostId from = 0, to = 0;
    AttackBytes bytes;
    net::FabricAddress source;
    std::uint16_t entropy = 0;
    net::TosByte tos;
    std::uint8_t plane = 0;
  };
  static constexpr std::size_t kKept = 512;  ///< any of a world's packets may be among them
  static constexpr std::uint64_t kMaxAttacks = 3000;  ///< of one world, without the last replay

  void record(const Frame& frame);
  void attack();
  bool change(SecureAttack how, Recorded& packet);
  void inject(const Recorded& packet);
  SimSpan any_delay();
  const Recorded& any_recorded() {
    return recorded_[rng_.below(static_cast<std::uint32_t>(recorded_.size()))];
  }
  std::uint32_t any_place(const Recorded& packet) {
    return rng_.below(static_cast<std::uint32_t>(packet.bytes.size()));
  }

  Simulation& simulation_;
  Fabric& fabric_;
  const SecurePlan& plan_;
  const HostId hosts_;
  base::Rng rng_, hold_rng_;
  std::vector<Recorded> recorded_;
  std::uint64_t seen_ = 0, planned_ = 0, packets_ = 0;
  bool is_releasing_ = false;
  std::array<std::uint64_t, kSecureAttackCount> attacks_{};
};

}  // namespace uet::sim
