/// The keys of a secured world, and what an attacker without any does on its links: drawn from the world's seed, written out so
/// that it can be shrunk and printed.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "sim/frame.h"
#include "sim/sim_time.h"
#include "tss/domain_config.h"

namespace uet::sim {

/// What is done with a packet that was on a link.
enum class SecureAttack : std::uint8_t {
  kReplay,       ///< it comes again, to the host that it was for
  kReflect,      ///< it comes to its sender, or to a third host
  kFlip,         ///< one bit of it is changed
  kSplice,       ///< its head with the rest of another
  kCut,          ///< its end is missing
  kImpersonate,  ///< it comes from another address
  kReroute,      ///< another path value
  kRemark,       ///< another DSCP and other ECN bits, also those of trimmed packets
  kHold,         ///< the packet itself is kept back, so that others overtake it
  kCount
};
inline constexpr std::size_t kSecureAttackCount = static_cast<std::size_t>(SecureAttack::kCount);
/// What is done with a copy; a packet is held on its way.
inline constexpr std::size_t kCopyAttackCount = static_cast<std::size_t>(SecureAttack::kHold);
std::string_view name_of(SecureAttack attack);

inline constexpr std::size_t kSecureModeCount = 3;
std::string_view name_of(tss::Mode mode);

struct SecurePlan {
  bool is_on = false;
  tss::DomainConfig domain;          ///< as it is in the beginning; each host has an SSI of its own
  std::uint32_t rotate_packets = 0;  ///< a rotation begins after so many sealed packets; 0: never
  SimSpan skew;                      ///< hosts switch to a new key within this
  double attack_rate = 0;            ///< attacks for each packet of an honest host
  double hold_rate = 0;              ///< of all packets, those that the attacker holds back
  SimSpan attack_lag;                ///< a recorded packet is used after this,
  SimSpan attack_delay;              ///< and so much more at most
  bool forgets = false;  ///< no tombstones, no quarantine: security alone keeps copies out
  /// A host that starts again has lost its counters, and sends under the same keys in a new epoch. [TSS 7.2]
  bool loses_counters = false;
  HostId servers = 0;      ///< server mode: hosts 0 to this; the others are their clients
  std::uint64_t seed = 0;  ///< of keys and of the attacker
};

/// Server mode: members of one kind have no key for each other.
constexpr bool are_strangers(const SecurePlan& plan, HostId a, HostId b) {
  return plan.servers > 0 && (a < plan.servers) == (b < plan.servers);
}

/// The SSI of a host.
constexpr std::uint32_t ssi_of(HostId host) {
  return 0x0051'0000 + host;
}

std::string describe(const SecurePlan& plan);

}  // namespace uet::sim
