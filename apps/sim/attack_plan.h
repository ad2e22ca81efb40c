/// What a hostile peer does in a random world: drawn from the world's seed, written out so that it can be shrunk and printed.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/frame.h"
#include "sim/sim_time.h"

namespace uet::sim {

/// What one episode consists of. Every episode has a random stream of its own, so leaving one out changes no other.
enum class AttackKind : std::uint8_t {
  kConverse,         ///< a PDC and then every packet type, in every state, with every PSN
  kHalfOpen,         ///< openings and silence, under own and under invented addresses
  kFloodRequests,    ///< requests that draw guaranteed answers, which nothing ever clears
  kFloodReads,       ///< READs: first packets only, wrong keys, or data that is never acknowledged
  kFloodUnexpected,  ///< messages and beginnings of messages that no receive waits for
  kPieces,  ///< pieces of messages: twice under two PSNs, left out, tiny last ones again and again
  kForge,   ///< packets under the addresses of other hosts
  kReplay,  ///< packets that were received or overheard, again
  kGarble,  ///< wrong lengths, flipped bits under a right CRC, the DSCP of trimmed packets
  kCount
};
inline constexpr std::size_t kAttackKindCount = static_cast<std::size_t>(AttackKind::kCount);
std::string_view name_of(AttackKind kind);

struct AttackEpisode {
  std::uint32_t id = 0;  ///< from 1
  AttackKind kind = AttackKind::kConverse;
  std::uint32_t attacker = 0;  ///< which of the world's
  HostId victim = 0;
  SimTime at;
  std::uint32_t packets = 0;  ///< about so many are sent
  SimSpan gap;                ///< between two of them, on average
  std::uint64_t seed = 0;
};

/// What an endpoint asks of the attacker, so that the attacker is a target too. Nothing is promised about its outcome. None of
/// these would be taken by an honest host if an attacker sent it on: no host has such a receive or such memory.
struct Bait {
  enum class Kind : std::uint8_t { kTaggedSend, kWrite, kRead };
  static constexpr std::uint64_t kTagOrKey = 0xba17'0000'0000;
  HostId from = 0;
  std::uint32_t attacker = 0;
  Kind kind = Kind::kTaggedSend;
  std::uint32_t bytes = 0;
  SimTime at;
};

/// What the attacker knows of others' PDCs when it forges their addresses.
enum class Sight : std::uint8_t {
  /// The right PDCIDs and no PSNs. A sweep over all 65,536 identifiers is played as the one packet that hits; the identifiers that
  /// targets give forged openings are not known, as that would be a sweep for each packet of a sweep. [decision 103]
  kBlind,
  /// All traffic. Without security it can put data into honest connections then, so little is promised: see `may_inject`.
  kAll,
};

struct AttackPlan {
  std::uint32_t attackers =
      0;  ///< 0: the world is an honest one. They are the last hosts of the fabric.
  Sight sight = Sight::kBlind;
  bool answers = true;      ///< what arrives at the attacker unasked draws packets as well
  bool rendezvous = false;  ///< sends of attackers may be rendezvous [decision 142]
  bool numbers = false;     ///< sends of attackers may be numbered ones [decision 141]
  SimTime end;              ///< from then on the attackers are silent
  std::vector<AttackEpisode> episodes;
  std::vector<Bait> baits;

  bool is_hostile() const { return attackers > 0; }
  bool has(AttackKind kind) const;
  /// Packets of honest hosts may be imitated to the last field: integrity and completion are not promised.
  bool may_inject() const {
    return sight == Sight::kAll && (has(AttackKind::kForge) || has(AttackKind::kReplay));
  }
};

/// Where attackers may send messages without taking a receive that an honest message needs: an endpoint of every honest host
/// with job, index and memory of its own.
struct Lure {
  static constexpr std::uint32_t kJob = 2;
  static constexpr std::uint16_t kIndex = 7;
  static constexpr std::uint64_t kKey = 9;
  static constexpr std::uint64_t kTag = 0x4c00;
  static constexpr std::size_t kMemoryBytes = 64 * 1024;
  static constexpr std::size_t kReceives = 16;
  static constexpr std::size_t kReceiveBytes = 16 * 1024;
};

/// The byte at offset `at` of every message that an attacker sends, so that a message which is delivered as complete has these.
constexpr std::uint8_t attack_byte(std::size_t at) {
  return static_cast<std::uint8_t>(1 + (at * 31 + (at >> 8) * 7) % 127);
}

std::string describe(const AttackPlan& plan);

}  // namespace uet::sim
