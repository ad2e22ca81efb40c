/// One random world, written out: everything that a seed decides, so that it can be shrunk and
/// printed.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "apps/sim/attack_plan.h"
#include "apps/sim/secure_plan.h"
#include "fep/fep.h"
#include "sim/fabric_config.h"
#include "sim/faults.h"

namespace uet::sim {

enum class SwarmOp : std::uint8_t {
  kSend,
  kTaggedSend,
  kWrite,
  kRead,
  kRudiWrite,
  kRudiRead,
  kDatagram,
  kCount
};
std::string_view name_of(SwarmOp op);

/// How a message travels.
enum class SwarmMode : std::uint8_t { kRud, kRod, kRudi, kUud, kCount };
inline constexpr std::size_t kSwarmModeCount = static_cast<std::size_t>(SwarmMode::kCount);
std::string_view name_of(SwarmMode mode);

/// One operation, and for sends the receive that will take it.
struct PlannedOp {
  std::uint32_t id = 0;  ///< also its tag and header data
  SwarmOp kind = SwarmOp::kSend;
  HostId from = 0, to = 0;
  std::uint32_t bytes = 0;
  SimTime at;
  SimTime receive_at;               ///< sends: when the receive is posted
  std::uint32_t receive_after = 0;  ///< then, and when the receive of this operation is complete
  std::uint32_t receive_bytes = 0;  ///< sends: its buffer; may be too short for tagged ones
  std::optional<ses::PeekAction> peek;  ///< tagged sends: the receiver looks for it before
  /// One of a burst of sends that can be put off: so long after it and its receive are posted its sender cancels it.
  std::optional<SimSpan> cancel_after;
  bool inject = false, completion_may_wait = false, delivery_complete = false, fence = false,
       wants_data = true;

  static constexpr std::uint32_t kShortInject = 256;
  bool is_long_inject() const { return inject && bytes > kShortInject; }
  static constexpr std::uint32_t kLongest = 64 * 1024;  ///< of all but long READs
  bool is_cancelled() const { return cancel_after.has_value(); }
  bool is_long_read() const { return kind == SwarmOp::kRead && bytes > kLongest; }
  /// Has one receive of its own.
  bool is_send() const { return kind == SwarmOp::kSend || kind == SwarmOp::kTaggedSend; }
  bool is_datagram() const { return kind == SwarmOp::kDatagram; }
  bool is_rudi() const { return kind == SwarmOp::kRudiWrite || kind == SwarmOp::kRudiRead; }
  bool is_read() const { return kind == SwarmOp::kRead || kind == SwarmOp::kRudiRead; }
  /// Reaches a piece of its target's region.
  bool has_slot() const { return !is_send() && !is_datagram(); }
};

/// What is done to a world besides packet faults.
enum class Trouble : std::uint8_t {
  kCrash,
  kClockJump,
  kPoolExhausted,
  kSlowHost,
  kPause,
  kPartition,
  kTinyWindow,
  kPsnWrap,
  kTinyTables,
  kPlaneOutage,  ///< one port of one host
  kDeadPlane,    ///< all hosts
  kCount
};
inline constexpr std::size_t kTroubleCount = static_cast<std::size_t>(Trouble::kCount);
std::string_view name_of(Trouble trouble);

struct PlannedTrouble {
  Trouble kind = Trouble::kCrash;
  HostId host = 0;
  SimTime at, until;
  unsigned plane = 0;
  bool is_of_plane() const { return kind == Trouble::kPlaneOutage || kind == Trouble::kDeadPlane; }
};

/// Where the limits and times of the endpoints come from.
enum class Profile : std::uint8_t {
  kOwn,       ///< short times, so that everything happens soon
  kSpec,      ///< the specification's defaults
  kSoftware,  ///< what an endpoint made from settings has when none is set
  kCount
};
std::string_view name_of(Profile profile);

struct SwarmPlan {
  std::uint64_t seed = 0;
  Profile profile = Profile::kOwn;
  FabricConfig fabric;
  fep::FepConfig fep;
  std::vector<bool> ordered;  ///< hosts whose endpoints ask for ordered sends
  /// Hosts that spray ordered sends and restore their order; empty: none. Those that only claim to restore it refuse them.
  std::vector<bool> sprays, claims_to_restore;
  // By host, empty in worlds without rendezvous: who fetches, and who says so.
  std::vector<bool> fetches, claims_to_fetch;
  std::vector<bool> defers;          ///< by host, empty in worlds without: sends can be put off
  std::uint64_t overflow_bytes = 0;  ///< in such worlds: the store of the same world without
  /// Sends whose completion may wait. The settings that this needs are those of real endpoints; what the same world has without.
  bool is_patient = false;
  base::Duration hasty_tail_loss_time, hasty_reorder_window;
  bool hasty_tail_loss_asks = false;
  std::vector<bool> multi_receive;  ///< hosts that take untagged messages in multi-receive buffers
  std::vector<std::uint32_t> pool_packets;
  FaultProfile faults;
  SimTime faults_end;  ///< from then on the fabric is perfect
  std::vector<PlannedTrouble> troubles;
  std::vector<PlannedOp> ops;
  AttackPlan attack;
  SecurePlan secure;

  /// Honest hosts are 0 to this; attackers follow.
  HostId hosts() const { return fabric.hosts - attack.attackers; }
  /// Packets of honest hosts may be imitated to the last field: integrity and completion are not promised.
  bool may_inject() const { return attack.may_inject() && !secure.is_on; }
  /// No fault and no trouble that may hold a message up.
  bool is_calm() const;
  bool has(Trouble kind) const;
  bool has(SwarmMode mode) const;
  bool crashes(HostId host) const;
  SwarmMode mode_of(const PlannedOp& op) const;
  bool sprays_order() const { return !sprays.empty(); }
  bool has_rendezvous() const { return !fetches.empty(); }
  bool has_deferrals() const { return !defers.empty(); }
  bool has_programs() const;
  bool is_sprayed(HostId from, HostId to) const {
    return sprays_order() && ordered[from] && sprays[from] && sprays[to];
  }
};

/// What is left out of a world: for --ops and --without, and for shrinking.
struct SwarmMask {
  std::set<std::uint32_t> ops;       ///< only these; empty: all
  std::set<SwarmMode> modes;         ///< only operations that travel like this; empty: all
  std::set<std::uint32_t> episodes;  ///< only these of the attackers'; empty: all
  /// Names of faults and troubles; "hostile": attackers, and everything that was added with them; "secure": keys, and the attacker on the links; "link-attacker"; "hold": packets that it holds back; "lost-counters"; "servers": server mode; "rotation"; "baits"; "planes": all planes but one; "spray-ordered": ordered sends by RUD; "rendezvous"; "deferrals": sends that can be put off; "programs": receives that wait for each other; "patience": completions that may wait; "ethernet"; "long-injects": of several packets; "long-reads": of more packets than are under way at a time; "cancels": sends that can be put off, and are taken back; "more": what choose_more() and choose_single_packets() added.
  std::set<std::string> without;
};

/// With everything that the seed decides but what `apply` leaves out. False plays the world as if there were no attackers, or no
/// security, or no server mode: the same as without "hostile", "secure" or "servers".
SwarmPlan plan_world(std::uint64_t seed, bool with_hostile = true, bool with_secure = true,
                     bool with_servers = true);
/// plan_world() with a mask applied.
SwarmPlan plan_world(std::uint64_t seed, const SwarmMask& mask);
/// By name, small or capital letters; false when there is none.
bool parse(std::string_view name, SwarmMode& mode);
void apply(const SwarmMask& mask, SwarmPlan& plan);
/// Names of the faults and troubles that a world has.
std::vector<std::string> ingredients(const SwarmPlan& plan);
/// Every name that SwarmMask::without takes.
std::vector<std::string> known_ingredients();
std::string describe(const SwarmPlan& plan);

}  // namespace uet::sim
