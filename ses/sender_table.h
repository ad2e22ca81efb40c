/// What every peer has taken of the receiver's pools: none gets all of any. Also which of them are refused for now.
/// [SES 2.5, decisions 106, 107]
#pragma once

#include <initializer_list>

#include "ses/gate.h"
#include "ses/read_return.h"
#include "ses/rx_message.h"
#include "ses/stream.h"

namespace uet::ses {

/// What a peek at an endpoint has met of a source: a message whose first packet has not come.
struct PeekShade {
  std::uint64_t peek = 0;       ///< its number; of others it says nothing
  std::uint32_t initiator = 0;  ///< whose later messages it must not see
  bool is_of_all = false;       ///< of more than one: those of the whole address
};

/// One source address, at one endpoint (or, with endpoint 0, at all of them).
struct Sender : Pooled,
                boost::intrusive::unordered_set_base_hook<
                    boost::intrusive::link_mode<boost::intrusive::normal_link>> {
  EndpointId endpoint = 0;
  net::FabricAddress address;
  ListHook idle_hook;
  bool rests_with_streams = false;
  std::uint32_t users = 0;  ///< everything below that is not at rest

  // At all endpoints.
  MessageList live;       ///< messages being received, oldest first
  MessageList discarded;  ///< messages that failed, and whose packets may still come
  std::uint32_t messages = 0;
  std::uint32_t unproven_messages =
      0;               ///< of these, in its name: it had not proved itself when they began
  ReturnList waiting;  ///< for a place with the carrier
  ListHook turn_hook;  ///< while any waits
  std::uint32_t returns = 0;
  std::uint32_t returns_carried = 0;
  std::size_t copy_bytes = 0;

  // At one endpoint.
  OverflowUse overflow;
  std::array<Gate, 2> gates;
  PeekShade shade;
  std::int64_t refused_at_ns = 0;  ///< last, in loop time
  HeaderList headers;
  HeaderList to_fetch;       ///< rendezvous whose rest waits for a place among the READs
  ListHook fetch_turn_hook;  ///< while any waits
  std::uint32_t fetches = 0;
  std::uint32_t deferred = 0;      ///< messages that were put off, and that no receive has taken
  bool has_served = false;         ///< a READ that it invited
  std::int64_t fetched_at_ns = 0;  ///< when READs began or brought something, in loop time
  UnexpectedList reports;          ///< of delivery, that wait for a place with the carrier
  ListHook report_turn_hook;       ///< while any waits
  bool has_report_turn = false;    ///< one of them may go when there is a place
  std::uint32_t reports_carried = 0;
  std::uint32_t reports_open = 0;  ///< waiting and carried
  OverflowUse held;                ///< messages that came before their turn
  StreamList streams;              ///< last used first
};

/// The rule of all shares: who holds `held` of a pool may take another place while it holds no more than `factor` times what is
/// free. One source alone gets factor / (factor + 1) of the pool; n of them leave 1 / (n * factor + 1) free for the next.
constexpr bool has_share(std::uint64_t held, std::uint64_t free, std::uint64_t factor = 1) {
  return held <= factor * free;
}

class SenderTable {
 public:
  /// What a sender was refused under, and where its streams stand, is forgotten only when it rests for `memory`: packets of an older generation are gone by
  /// then.
  SenderTable(std::uint32_t max, std::uint32_t max_streams, base::Duration memory,
              const base::HashKey& hash_key);
  ~SenderTable();

  Sender* find(EndpointId endpoint, const net::FabricAddress& address);
  /// Null when all places are taken by senders that hold something. What a sender left at one endpoint may stay there for as long as
  /// the user likes, so such records take half of the places at most, and those of sources that have proved nothing an eighth: the
  /// others are for what every message of several packets needs.
  Sender* find_or_make(EndpointId endpoint, const net::FabricAddress& address, std::int64_t loop_ns,
                       bool is_proven);
  void hold(Sender& sender);
  /// At the last one the sender rests, and gives its place up when another one needs it.
  void unhold(Sender& sender);

  /// A sender at rest rests anew.
  Stream* find_stream(Sender& sender, std::uint32_t id, bool tagged);
  /// Null when there are too many, and the sender has none that could make place. The sender is held.
  Stream* open_stream(Sender& sender, std::uint32_t id, bool tagged, std::uint32_t expected,
                      std::int64_t loop_ns);

  std::size_t size() const { return pool_.in_use(); }
  std::size_t longest_chain() const { return ses::longest_chain(by_key_); }

 private:
  struct Key {
    EndpointId endpoint;
    const net::FabricAddress& address;
  };
  struct Hash {
    const base::HashKey* hash_key;
    std::size_t operator()(const Sender& s) const { return s.address.hash(*hash_key, s.endpoint); }
    std::size_t operator()(const Key& k) const { return k.address.hash(*hash_key, k.endpoint); }
  };
  struct Equal {
    bool operator()(const Sender& a, const Sender& b) const {
      return a.endpoint == b.endpoint && a.address == b.address;
    }
    bool operator()(const Key& k, const Sender& s) const {
      return k.endpoint == s.endpoint && k.address == s.address;
    }
  };
  using Set = boost::intrusive::unordered_set<Sender, boost::intrusive::hash<Hash>,
                                              boost::intrusive::equal<Equal>,
                                              boost::intrusive::power_2_buckets<true>>;
  using IdleList =
      boost::intrusive::list<Sender,
                             boost::intrusive::member_hook<Sender, ListHook, &Sender::idle_hook>>;

  bool may_forget(const Sender& sender, std::int64_t loop_ns) const;
  bool has_place(EndpointId endpoint, bool is_proven, std::int64_t loop_ns);
  bool forget_idle(std::int64_t loop_ns, std::initializer_list<IdleList*> lists);
  bool forget_idle(std::int64_t loop_ns);
  bool is_quiet(const Stream& stream, std::int64_t loop_ns) const;
  bool close_quiet_stream(Sender& sender, std::int64_t loop_ns);
  void rest_anew(Sender& sender);
  IdleList& idle_list_of(Sender& sender);

  const base::HashKey& hash_key_;
  base::Duration memory_;
  ChunkedPool<Sender> pool_;
  ChunkedPool<Stream> streams_;
  std::unique_ptr<Set::bucket_type[]> buckets_;
  Set by_key_;
  std::size_t at_endpoints_ = 0;  ///< records of one endpoint
  // Longest at rest first. Those with streams are remembered for a while, and must not stand before others.
  IdleList idle_, idle_at_endpoints_, idle_with_streams_;
};

using FetchTurnList = boost::intrusive::list<
    Sender, boost::intrusive::member_hook<Sender, ListHook, &Sender::fetch_turn_hook>>;
using ReportTurnList = boost::intrusive::list<
    Sender, boost::intrusive::member_hook<Sender, ListHook, &Sender::report_turn_hook>>;
using TurnList =
    boost::intrusive::list<Sender,
                           boost::intrusive::member_hook<Sender, ListHook, &Sender::turn_hook>>;

}  // namespace uet::ses
