/// Plays one random world and watches it.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "apps/sim/swarm_plan.h"

namespace uet::sim {

struct SwarmCounters {
  FaultCounters faults{};
  std::array<std::uint64_t, kTroubleCount> troubles{};
  std::array<std::uint64_t, static_cast<std::size_t>(SwarmOp::kCount)> ops{};
  std::array<std::uint64_t, kSwarmModeCount> modes{};
  std::uint64_t bytes = 0, completions = 0, failed_ops = 0, retransmissions = 0, nacks = 0,
                timeouts = 0, pdcs = 0;
  std::uint64_t events = 0;
  std::uint64_t truncated = 0, restarts = 0;
  std::uint64_t multi_received = 0, peeked = 0, claimed = 0, discarded = 0,
                cancelled = 0;                                           ///< messages
  std::uint64_t datagrams = 0, datagrams_lost = 0, datagram_copies = 0;  ///< by the receiver
  std::uint64_t hostile = 0, attack_packets = 0;
  std::array<std::uint64_t, kAttackKindCount> attacks{};
  std::array<std::uint64_t, static_cast<std::size_t>(Profile::kCount)> profiles{};
  std::uint64_t secured = 0, sealed_packets = 0, rotations = 0, link_attack_packets = 0,
                counters_lost = 0;
  std::array<std::uint64_t, kSecureModeCount> secure_modes{};  ///< worlds
  std::array<std::uint64_t, kSecureAttackCount> link_attacks{};
  std::uint64_t excused = 0;  ///< broken promises where attackers imitate all packets

  void add(const SwarmCounters& other);
};

struct SwarmResult {
  std::string failure;      ///< empty: every checker is content
  std::string last_events;  ///< after a failure: what each host saw last
  SwarmCounters counters;
  std::uint64_t fingerprint = 0;
  double virtual_ms = 0;
};

/// Deterministic. Checks:
/// - every operation completes exactly once, and every receive that gets a message does too
/// - with success unless its peer or its own host crashed; with the right length and the right
/// bytes
/// - nothing is delivered twice, later than its completion, or past the end of its buffer
/// - except: RUDI writes may land again, so their bytes must be right from completion to the end; datagrams may be lost, and
/// come twice where the network makes copies, but each copy must be whole
/// - ordered endpoints deliver in order
/// - all this among honest hosts; where attackers see and imitate all packets, only what hostile_world.h checks
/// - all this, and what secure_world.h checks, in secured worlds, whatever attackers see: once an operation is complete nothing of
/// it is delivered again, also by a host that started again
/// - once faults end everything completes within seconds, and then every packet, message and PDC
/// goes back to its pool
///
/// `recorded_events`: how many of its last events each host remembers for a failure report. A world that does not end, in
/// events or in wall time, has failed.
SwarmResult run_world(const SwarmPlan& plan, std::size_t recorded_events = 40);

}  // namespace uet::sim
