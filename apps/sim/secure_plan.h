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
  kCount
};
inline constexpr std::size_t kSecureAttackCount = static_cast<std::size_t>(SecureAttack::kCount);
std::string_view name_of(SecureAttack attack);

struct SecurePlan {
  bool is_on = false;
  tss::DomainConfig domain;          ///< as it is in the beginning; each host has an SSI of its own
  std::uint32_t rotate_packets = 0;  ///< a rotation begins after so many sealed packets; 0: never
  SimSpan skew;                      ///< hosts switch to a new key within this
  double attack_rate = 0;            ///< attacks for each packet of an honest host
  SimSpan attack_delay;              ///< the longest time until a recorded packet is used
  bool forgets = false;    ///< no tombstones, no quarantine: security alone keeps copies out
  std::uint64_t seed = 0;  ///< of keys and of the attacker
};

/// The SSI of a host.
constexpr std::uint32_t ssi_of(HostId host) {
  return 0x0051'0000 + host;
}

std::string describe(const SecurePlan& plan);

}  // namespace uet::sim
