/// The source side of RUDI: packets outstanding by pkt_id, and a window per peer. [PDS 17.2]
#pragma once

#include <algorithm>
#include <boost/intrusive/list.hpp>

#include "lib/base/fixed_pool.h"
#include "lib/base/rng.h"
#include "lib/net/fabric_address.h"
#include "pds/message.h"
#include "pds/pdc.h"

namespace uet::pds {

struct RudiPeer;

/// One packet sent and not answered.
struct RudiPacket {
  std::uint32_t pkt_id = 0;
  std::uint32_t segment = 0;
  Message* message = nullptr;
  RudiPeer* peer = nullptr;
  std::uint8_t rto_cnt = 0;
  std::uint8_t nack_cnt = 0;
  std::uint8_t trim_cnt = 0;
  std::uint8_t times_sent = 0;
  bool is_in_flight = false;  ///< in its peer's list of these, paused or not
  bool is_paused =
      false;  ///< of those: it did not get through, and is sent again when its timer expires
  Instant sent_at;
  Duration unanswered;  ///< that its timeouts add up to since a NACK, or since it left first
  Timer timer{Timer::Kind::kRudi, this};
  boost::intrusive::list_member_hook<>
      hook;  ///< in its peer's resend list, or its list of packets in flight
};
using RudiPacketList =
    boost::intrusive::list<RudiPacket,
                           boost::intrusive::member_hook<
                               RudiPacket, boost::intrusive::list_member_hook<>, &RudiPacket::hook>,
                           boost::intrusive::constant_time_size<false>>;

/// Everything on its way to one peer. RUDI has no PDC and no window of its own, so we pace it:
/// additive increase with each answer, halved on loss, at most RUDI_Max_Outstanding.
struct RudiPeer {
  net::FabricAddress address;
  std::uint32_t outstanding = 0;
  std::uint32_t in_network = 0;  ///< of those, in flight and not paused
  double window = 16;
  Instant last_cut;
  Instant heard_at;
  Instant busy_since;
  MessageQueue queue;  ///< messages with unsent segments
  RudiPacketList resend;
  RudiPacketList in_flight;
  std::uint32_t index_next = 0;
  boost::intrusive::list_member_hook<> hook;  ///< in the round robin of peers
};
using RudiPeerList = boost::intrusive::list<
    RudiPeer,
    boost::intrusive::member_hook<RudiPeer, boost::intrusive::list_member_hook<>, &RudiPeer::hook>,
    boost::intrusive::constant_time_size<false>>;

class RudiTable {
 public:
  RudiTable(std::uint32_t peers, std::uint32_t packets, base::Rng& rng)
      : peers_(peers),
        index_(peers_, peers),
        packets_(packets),
        ids_(new std::uint32_t[packets]),
        live_(new bool[packets]()) {
    // The low bits name the slot; the rest starts anywhere and steps once per use, so that an id
    // comes back only after the slot was used 2^(32 - bits) times. [PDS 17.2: unpredictable start,
    // not reused for long]
    while ((std::uint32_t{1} << slot_bits_) < packets) ++slot_bits_;
    for (std::uint32_t i = 0; i < packets; ++i) ids_[i] = rng.next_u32();
  }

  RudiPeer* find_peer(const net::FabricAddress& address) {
    return index_.find(address.hash(), [&](const RudiPeer& p) { return p.address == address; });
  }
  RudiPeer* add_peer(const net::FabricAddress& address) {
    RudiPeer* peer = peers_.acquire();
    if (peer == nullptr) return nullptr;
    peer->address = address;
    index_.insert(address.hash(), *peer);
    order_.push_back(*peer);
    return peer;
  }
  void remove_peer(RudiPeer& peer) {
    order_.erase(order_.iterator_to(peer));
    index_.erase(peer.address.hash(), peer);
    peers_.release(&peer);
  }

  RudiPacket* add_packet() {
    RudiPacket* packet = packets_.acquire();
    if (packet == nullptr) return nullptr;
    const std::uint32_t slot = packets_.index_of(packet);
    packet->pkt_id = (++ids_[slot] << slot_bits_) | slot;
    live(slot) = true;
    return packet;
  }
  RudiPacket* find_packet(std::uint32_t pkt_id) {
    const std::uint32_t slot = pkt_id & ((std::uint32_t{1} << slot_bits_) - 1);
    if (slot >= packets_.capacity() || !live(slot)) return nullptr;
    RudiPacket& packet = packets_.at(slot);
    return packet.pkt_id == pkt_id ? &packet : nullptr;
  }
  void remove_packet(RudiPacket& packet) {
    live(packets_.index_of(&packet)) = false;
    packets_.release(&packet);
  }

  RudiPeerList& peers() { return order_; }
  std::uint32_t peer_count() const { return peers_.in_use(); }
  /// At the end: takes everything off all lists, so that timers and hooks go away unlinked.
  void clear() {
    for (RudiPeer& peer : order_) {
      peer.queue.clear();
      peer.resend.clear();
      peer.in_flight.clear();
    }
    order_.clear();
  }
  std::uint32_t outstanding() const { return packets_.in_use(); }

 private:
  bool& live(std::uint32_t slot) { return live_[slot]; }
  base::FixedPool<RudiPeer> peers_;
  base::PoolIndex<RudiPeer, &RudiPeer::index_next> index_;
  RudiPeerList order_;
  base::FixedPool<RudiPacket> packets_;
  std::unique_ptr<std::uint32_t[]> ids_;
  std::unique_ptr<bool[]> live_;
  unsigned slot_bits_ = 0;
};

}  // namespace uet::pds
