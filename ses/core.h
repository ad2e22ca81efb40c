/// What the sending and the receiving half of SES share.
#pragma once

#include <algorithm>

#include "ses/endpoint_table.h"
#include "ses/memory_table.h"
#include "ses/payload_sizes.h"
#include "ses/peer_table.h"
#include "ses/rendezvous.h"
#include "ses/tokens.h"
#include "ses/ways.h"

namespace uet::ses {

/// From what `rng` would say next, and leaves it where it is. Peers are told it for as long as the process lives: they must not see in it what others
/// are told later, so it is none of those numbers, but made of them in one direction.
inline std::uint32_t name_of_process(base::Rng rng) {
  base::Rng::Key key;
  for (auto& word : key) word = rng.next_u32();
  return base::Rng(key).next_u32() | 1;
}

struct Core {
  Core(const SesConfig& c, std::uint32_t mtu, net::FabricAddress own_address, base::Rng& r,
       base::Trace& t)
      : config(c),
        payload_mtu(mtu),
        rng(r),
        hash_key(r),
        process_name(name_of_process(r)),
        trace(t),
        iov_pool(c.max_sends + c.max_receives + c.max_memory_regions + c.max_fetches),
        endpoints(c.max_endpoints, own_address, c.ri_reuse, c.first_index),
        peers(c.max_peers),
        memory(c.max_memory_regions, iov_pool) {}

  /// What a peer may put into one packet, or ask for with one that is not of a wide READ.
  std::uint32_t largest_payload() const { return std::max(payload_mtu, kLargestPayload); }
  /// [SES 6.3] Decided by the length of the whole READ, so that all its packets go the same way.
  bool data_fits_acks(std::uint64_t length) const {
    return length <= config.max_ack_data || config.max_ack_data >= kLargestPayload;
  }
  /// What we put into the packets of a message of `length` bytes to `destination`. A message that fits any packet costs no
  /// question.
  std::uint32_t payload_towards(base::Instant now, const net::FabricAddress& destination,
                                std::uint64_t length) const {
    if (ways == nullptr || length <= kSmallestPayload || payload_mtu <= kSmallestPayload)
      return payload_mtu;
    return std::min(payload_mtu, ways->payload_towards(now, destination));
  }
  /// The same to a peer: no more than its address says that its device takes, and only what it knows. Between processes of one
  /// host there are no devices.
  std::uint32_t payload_to(base::Instant now, const Peer& peer, std::uint64_t length) const {
    const net::FabricAddress& destination = peer.address.fabric_address;
    std::uint32_t carried = payload_towards(now, destination, length);
    if (length <= kSmallestPayload) return carried;
    const std::uint32_t taken = said_payload(peer.address.fep_cap);
    if (taken < carried && (ways == nullptr || !ways->stays_on_host(now, destination)))
      carried = taken;
    return carried == kEthernetPayload && !knows_ethernet_payload(peer.address.fep_cap)
               ? kSmallestPayload
               : carried;
  }

  SesConfig config;
  std::uint32_t payload_mtu;  ///< the most that we put into one packet
  Ways* ways = nullptr;
  base::Rng& rng;
  const base::HashKey hash_key;  ///< of all tables whose keys peers choose
  /// By chance, not 0: what an address said before its process started anew is told apart. [decision 105]
  const std::uint32_t process_name;
  base::Trace& trace;
  pds::Carrier* carrier = nullptr;
  // What the two halves ask of each other. [decision 142]
  Fetcher* fetcher = nullptr;
  FetchSink* fetch_sink = nullptr;
  RegionReads* region_reads = nullptr;
  Restarts* restarts = nullptr;
  IovPool iov_pool;
  EndpointTable endpoints;
  PeerTable peers;
  MemoryTable memory;
  /// Above 0 while the carrier calls us: then nothing is asked of it that would change what it is
  /// walking over.
  int upcall_depth = 0;
};

/// Marks the time of an upcall.
class UpcallScope {
 public:
  explicit UpcallScope(Core& core) : core_(core) { ++core_.upcall_depth; }
  ~UpcallScope() { --core_.upcall_depth; }
  UpcallScope(const UpcallScope&) = delete;
  UpcallScope& operator=(const UpcallScope&) = delete;

 private:
  Core& core_;
};

/// Packets that a message of `length` bytes needs.
constexpr std::uint32_t segments_for(std::uint64_t length, std::uint32_t payload_mtu) {
  return length == 0 ? 1 : static_cast<std::uint32_t>((length + payload_mtu - 1) / payload_mtu);
}

}  // namespace uet::ses
