/// The source side of RUDI: packets outstanding by pkt_id, and a window per peer. [PDS 17.2]
#pragma once

#include <algorithm>
#include <bit>
#include <boost/intrusive/list.hpp>

#include "lib/base/fixed_pool.h"
#include "lib/base/rng.h"
#include "lib/base/zeroed_array.h"
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
        by_id_mask_(2 * std::bit_ceil(std::max(packets, 1u)) - 1),
        by_id_(std::size_t{by_id_mask_} + 1),
        last_id_(rng.next_u32()),
        id_step_(rng.next_u32() | 1) {
    // As many draws as packets: what is drawn behind them decides the worlds that seeds of uet-sim name.
    for (std::uint32_t i = 2; i < packets; ++i) (void)rng.next_u32();
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

  /// Its id comes from anywhere and in odd steps, so that it comes back when all 2^32 had their turn: not sooner than after 2^31
  /// packets, since a turn passes where the place of an id is taken, and more than half of the places are free. [PDS 17.2]
  RudiPacket* add_packet() {
    RudiPacket* packet = packets_.acquire();
    if (packet == nullptr) return nullptr;
    do last_id_ += id_step_;
    while (place_of(last_id_) != 0);
    packet->pkt_id = last_id_;
    place_of(last_id_) = packets_.index_of(packet) + 1;
    return packet;
  }
  RudiPacket* find_packet(std::uint32_t pkt_id) {
    const std::uint32_t place = place_of(pkt_id);
    if (place == 0) return nullptr;
    RudiPacket& packet = packets_.at(place - 1);
    return packet.pkt_id == pkt_id ? &packet : nullptr;
  }
  void remove_packet(RudiPacket& packet) {
    place_of(packet.pkt_id) = 0;
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
  /// The packet whose id has these low bits, plus 1; 0: none.
  std::uint32_t& place_of(std::uint32_t pkt_id) { return by_id_[pkt_id & by_id_mask_]; }
  base::FixedPool<RudiPeer> peers_;
  base::PoolIndex<RudiPeer, &RudiPeer::index_next> index_;
  RudiPeerList order_;
  base::FixedPool<RudiPacket> packets_;
  std::uint32_t by_id_mask_;
  base::ZeroedArray<std::uint32_t> by_id_;
  std::uint32_t last_id_;
  std::uint32_t id_step_;
};

}  // namespace uet::pds
