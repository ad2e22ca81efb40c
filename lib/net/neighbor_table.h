/// Who is behind an on-link address: the state machine shared by ARP and Neighbor Discovery. Knows
/// addresses, MACs and deadlines; builds no message and touches no device.
#pragma once

#include <boost/intrusive/list.hpp>
#include <boost/intrusive/set.hpp>
#include <boost/intrusive/unordered_set.hpp>
#include <vector>

#include "lib/base/hash_key.h"
#include "lib/base/units.h"
#include "lib/net/fabric_address.h"
#include "lib/net/frame_device.h"
#include "lib/net/waiting_room.h"

namespace uet::net {

using base::Duration;
using base::Instant;

struct NeighborConfig {
  std::size_t max_neighbors = 4096;
  std::size_t max_waiting = 512;       ///< packets waiting, all neighbors together
  std::size_t max_waiting_each = 128;  ///< packets waiting for one neighbor
  /// After an answer; then it is asked again, while in use. Nothing tells us that packets do not reach a neighbor any more, so one that
  /// moved without a word is lost for as long.
  Duration reachable_time = Duration::from_seconds(5);
  /// Doubles with each attempt. No probe comes sooner after a question.
  Duration retry_first = Duration::from_ms(100);
  Duration retry_max = Duration::from_seconds(1);
  unsigned attempts = 5;                        ///< broadcasts before giving up: about 3 s
  unsigned probes = 3;                          ///< unicasts to a known MAC before broadcasting
  Duration hold_down = Duration::from_ms(500);  ///< no new attempt so soon after giving up
  /// In a full table a neighbor that was not used for so long makes room.
  Duration idle_time = Duration::from_seconds(1);
};

enum class NeighborState : std::uint8_t {
  kFree,
  kResolving,    ///< asked by broadcast; packets wait
  kReachable,    ///< MAC known; probed at the first use after `confirm_by`
  kProbing,      ///< MAC known and used, but old or not confirmed: asked by unicast
  kUnreachable,  ///< gave up a moment ago; packets are dropped at once
};

/// Why a host says where an address is.
enum class Claim : std::uint8_t {
  kNews,      ///< unasked, or another host asked
  kQuestion,  ///< it asks for us
  kAnswer,    ///< addressed to us, as answers are. Whether we asked is for the table to know
};

struct Neighbor : boost::intrusive::unordered_set_base_hook<>,
                  boost::intrusive::set_base_hook<>,
                  boost::intrusive::list_base_hook<> {
  FabricAddress address;
  MacAddress mac{};
  NeighborState state = NeighborState::kFree;
  bool was_used = false;      ///< since the marks were taken off
  bool has_answered = false;  ///< said once where it is
  bool is_asked = false;      ///< a question of ours has no answer yet
  bool is_disputed = false;   ///< its MAC took the place of another one and is not confirmed
  std::uint8_t attempts = 0;  ///< solicitations sent in this state
  Instant deadline;           ///< of the state, when it has one
  Instant confirm_by;         ///< reachable: use after this starts probing
  Instant may_probe_at;       ///< no probe before this
  WaitingQueue waiting;

  bool has_mac() const {
    return state == NeighborState::kReachable || state == NeighborState::kProbing;
  }
};

/// A fixed number of neighbors. Every packet with a forged source on our link makes us answer to an address that no host has, so in a full
/// table questions that were never answered make room for each other, the oldest first: an honest neighbor answers long before its turn
/// comes. Only while they have less than half of the table does one that was not used for `idle_time` make room; one in use never does.
/// One thread.
class NeighborTable {
 public:
  /// `hash_key` is this table's own: hosts on the link choose the addresses in it.
  NeighborTable(const NeighborConfig& config, const base::HashKey& hash_key);
  ~NeighborTable();

  Neighbor* find(const FabricAddress& address);
  /// The neighbor that has to go before find_or_start() can start another, when packets wait for it: the caller takes them out. Null
  /// when there is nothing to do.
  Neighbor* in_the_way();
  /// The neighbor, or a new one that is due for its first solicitation; null when there is no room
  /// for it.
  Neighbor* find_or_start(Instant now, const FabricAddress& address);
  /// Called when a packet goes to a neighbor that has a MAC.
  void on_use(Instant now, Neighbor& neighbor) {
    if (!neighbor.was_used) neighbor.was_used = true;
    if (neighbor.state == NeighborState::kReachable && now >= neighbor.confirm_by) [[unlikely]]
      start_probing(now, neighbor);
  }
  /// A host said that `address` is at `mac`. A question may create a neighbor; any other claim only updates neighbors that we know. Every
  /// MAC is used, but only the answer to a question of ours confirms it, by unicast only from the MAC that was asked: any host on the link
  /// can claim an address, by mistake too, and one that does not answer there must not keep it. Returns the neighbor when it now has a
  /// MAC. [RFC 4861 7.2.3, 7.2.5]
  Neighbor* on_claim(Instant now, const FabricAddress& address, const MacAddress& mac, Claim claim);

  /// Another host may have a neighbor's address as well: one that is reachable is asked whether it is where it was.
  void on_doubt(Instant now, Neighbor& neighbor) {
    if (neighbor.state == NeighborState::kReachable) start_probing(now, neighbor);
  }

  enum class Step : std::uint8_t { kNone, kSolicit, kGiveUp };
  struct Due {
    Step step = Step::kNone;
    Neighbor* neighbor = nullptr;
  };
  /// What is due now; call until kNone. kSolicit: ask, by unicast when the neighbor has a MAC.
  /// kGiveUp: drop the packets that wait for it.
  Due next_due(Instant now);
  /// The device did not take the solicitation: it does not count, and is due again a little later.
  void on_solicit_refused(Instant now, Neighbor& neighbor);
  /// The link was away: no MAC can be trusted, so every neighbor is asked anew before being used again.
  void on_link_change(Instant now);
  Instant next_deadline() const {
    return timed_.empty() ? Instant::never() : timed_.begin()->deadline;
  }

  /// Changes whenever a Neighbor stops meaning the address it had: pointers kept by callers are
  /// void then.
  std::uint32_t generation() const { return generation_; }
  std::size_t size() const { return by_address_.size(); }
  std::size_t longest_chain() const;
  /// Neighbors that never answered.
  std::size_t unanswered() const { return unanswered_.size(); }
  const NeighborConfig& config() const { return config_; }

 private:
  struct AddressOf {
    using type = FabricAddress;
    const type& operator()(const Neighbor& n) const { return n.address; }
  };
  struct HashAddress {
    base::HashKey key;
    std::size_t operator()(const FabricAddress& a) const { return a.hash(key); }
  };
  struct SoonerFirst {
    bool operator()(const Neighbor& a, const Neighbor& b) const { return a.deadline < b.deadline; }
  };
  using ByAddress =
      boost::intrusive::unordered_set<Neighbor, boost::intrusive::key_of_value<AddressOf>,
                                      boost::intrusive::hash<HashAddress>,
                                      boost::intrusive::power_2_buckets<true>>;
  using OldestFirst = boost::intrusive::list<Neighbor>;
  using ByDeadline = boost::intrusive::multiset<Neighbor, boost::intrusive::compare<SoonerFirst>>;

  void enter(Neighbor& neighbor, NeighborState state, Instant deadline);
  void start_probing(Instant now, Neighbor& neighbor);
  void set_deadline(Neighbor& neighbor, Instant deadline);
  void remove(Neighbor& neighbor);
  Neighbor* add(const FabricAddress& address);
  void make_room(Instant now);
  Neighbor* idle_one(Instant now);
  unsigned probes_of(const Neighbor& neighbor) const;
  Duration retry_after(unsigned attempts) const;

  NeighborConfig config_;
  std::vector<Neighbor> neighbors_;
  std::vector<Neighbor*> free_;
  std::size_t hand_ =
      0;  ///< neighbors before it have been looked at since the marks were taken off
  Instant marks_taken_at_;
  std::uint32_t generation_ = 0;
  std::vector<ByAddress::bucket_type> buckets_;
  ByAddress by_address_;
  ByDeadline timed_;
  OldestFirst unanswered_;
};

}  // namespace uet::net
