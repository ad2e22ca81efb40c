/// Known peers: the AV entries of all endpoints of this FEP, one object for each address and job.
#pragma once

#include <array>
#include <optional>
#include <unordered_map>

#include "ses/chunked_pool.h"
#include "ses/send_stream.h"
#include "ses/ses.h"

namespace uet::ses {

struct Flow;

/// SEND and TAGGED resources are separate at the target, so what is known about them is kept apart.
/// [SES 2.3]
enum class Space : std::uint8_t { kUntagged = 0, kTagged = 1 };

struct Peer : Pooled {
  PeerId id = 0;
  Address address;
  std::optional<std::uint32_t> job;  ///< what is sent to it goes in this one; else the endpoint's
  std::uint32_t users = 0;           ///< add_peer() less remove_peer(): 0 means no new operations
  std::uint32_t holds = 0;           ///< operations, receives and flows that refer to it
  std::array<std::uint8_t, 2> generation{};  ///< of the peer's RI, by space [SES 2.5]
  std::array<SendStream, 2> streams;         ///< by space
  bool refuses_rendezvous = false;           ///< it said that it does not fetch
  bool takes_rendezvous = false;             ///< it has taken one
  bool lacks_room = false;  ///< for messages without a receive, as far as its last answers say
  Flow* flows = nullptr;    ///< one per local endpoint with operations towards it

  SendStream& stream_of(Space s) { return streams[static_cast<std::size_t>(s)]; }
  std::uint8_t& generation_of(Space s) { return generation[static_cast<std::size_t>(s)]; }
};

class PeerTable {
 public:
  explicit PeerTable(std::uint32_t max) : pool_(max, 64) {}

  PostResult<PeerId> add(const Address& address, std::optional<std::uint32_t> job = {});
  void remove(PeerId id);
  /// The peer, if new operations may name it.
  Peer* find(PeerId id);
  const Peer* find(PeerId id) const { return const_cast<PeerTable*>(this)->find(id); }
  /// Who sent a message: a peer of this job, or of none that was named. 0 when unknown.
  PeerId find_source(const Source& source) const;

  void hold(Peer& peer) { ++peer.holds; }
  void unhold(Peer& peer);

  std::size_t size() const { return pool_.in_use(); }

 private:
  static constexpr unsigned kIndexBits = 20;
  /// [SES 2.3] The job is part of what names an endpoint, so what is known of one is kept for each.
  struct Name {
    Address address;
    std::optional<std::uint32_t> job;
    bool operator==(const Name&) const = default;
  };
  struct NameHash {
    std::size_t operator()(const Name& name) const;
  };

  void forget(Peer& peer);

  ChunkedPool<Peer> pool_;
  std::unordered_map<Name, Peer*, NameHash> by_name_;
  std::unordered_multimap<std::size_t, Peer*> by_source_;
};

}  // namespace uet::ses
