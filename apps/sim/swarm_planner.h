/// Draws a world from its seed.
///
///   swarm_plan.cc          fabric, endpoints, faults, troubles, operations
///   swarm_plan_hostile.cc  attackers, and what worlds with attackers have besides
///   swarm_mask.cc          what can be left out of a world, and its description
///   secure_plan.cc         keys, and an attacker who has none on the links
#pragma once

#include <array>
#include <cstdint>
#include <utility>

#include "apps/sim/swarm_plan.h"
#include "lib/base/rng.h"

namespace uet::sim {

/// Field of the profile that switches each fault on. kPartition is a trouble, not a probability: null.
double* probability(FaultProfile& p, Fault f);

class Planner {
 public:
  explicit Planner(std::uint64_t seed)
      : rng_(seed ^ 0x73776172'6d000000ULL),
        more_(seed ^ 0x6d6f7265'00000000ULL),
        single_(seed ^ 0x72756469'75756400ULL),
        planes_(seed ^ 0x706c616e'65730000ULL),
        claims_(seed ^ 0x636c6169'6d730000ULL),
        hostile_(seed ^ 0x686f7374'696c6500ULL),
        secure_(seed ^ 0x73656375'72650000ULL),
        late_secure_(seed ^ 0x73657276'65720000ULL),
        spray_(seed ^ 0x73707261'79000000ULL),
        rendezvous_(seed ^ 0x72656e64'657a0000ULL),
        deferrals_(seed ^ 0x64656665'72000000ULL),
        programs_(seed ^ 0x70726f67'72616d00ULL),
        patience_(seed ^ 0x70617469'656e6365ULL),
        ethernet_(seed ^ 0x65746865'726e6574ULL),
        long_injects_(seed ^ 0x6c6f6e67'696e6a00ULL),
        long_reads_(seed ^ 0x6c6f6e67'72656164ULL),
        cancels_(seed ^ 0x63616e63'656c7300ULL) {
    plan_.seed = seed;
  }

  SwarmPlan plan(bool with_hostile, bool with_secure, bool with_servers) {
    choose_fabric();
    choose_endpoint();
    choose_faults();
    choose_troubles();
    choose_ops();
    choose_more();
    choose_single_packets();
    choose_planes();
    if (with_hostile) choose_hostile();
    remember_long_enough();
    if (with_secure) choose_security(with_servers);
    choose_spray();
    choose_rendezvous();
    choose_deferrals();
    choose_programs();
    choose_patience();
    choose_ethernet();
    choose_long_injects();
    choose_long_reads();
    choose_cancels();
    return std::move(plan_);
  }

 private:
  template <typename T, std::size_t N>
  T one_of(const std::array<T, N>& choices) {
    return choices[rng_.below(N)];
  }
  SimTime within(SimSpan span) {
    return SimTime::from_ps(
        static_cast<std::int64_t>(rng_.unit() * static_cast<double>(span.ps())));
  }
  HostId any_host() { return rng_.below(plan_.fabric.hosts); }

  void choose_fabric();
  void choose_endpoint();
  void choose_faults();
  void choose_troubles();
  void choose_ops();
  void choose_more();
  void limit_multi_receives();
  void choose_single_packets();
  void choose_planes();
  void remember_long_enough();
  void choose_spray();
  void choose_rendezvous();
  void choose_deferrals();
  void choose_programs();
  void choose_patience();
  void choose_ethernet();
  void choose_long_injects();
  void choose_long_reads();
  void choose_cancels();

  // swarm_plan_hostile.cc
  void choose_hostile();
  void choose_profile();
  void choose_attack();
  void choose_episode(AttackKind kind);
  void choose_baits();
  void choose_late_ops();
  /// Of the stream of hostile worlds.
  SimSpan part_of(SimSpan span) {
    return SimSpan::from_ps(
        static_cast<std::int64_t>(hostile_.unit() * static_cast<double>(span.ps())));
  }
  std::uint32_t choose_size();

  // secure_plan.cc
  void choose_security(bool with_servers);
  void choose_servers();

  base::Rng rng_;
  // For what was added later: older draws, and so the worlds of named seeds, stay.
  base::Rng more_, single_, planes_, claims_, hostile_, secure_, late_secure_, spray_, rendezvous_,
      deferrals_, programs_, patience_, ethernet_, long_injects_, long_reads_, cancels_;
  SwarmPlan plan_;
  SimSpan busy_{};  ///< operations start within this
  bool small_tables_ =
      false;  ///< of a profile: a flood fills them with hundreds of packets instead of thousands
};

}  // namespace uet::sim
