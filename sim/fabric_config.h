/// Sizes, speeds and thresholds of a simulated fabric, and the numbers that follow from them.
#pragma once

#include <cstdint>
#include <optional>

#include "lib/base/units.h"
#include "sim/output_queue.h"
#include "sim/sim_time.h"

namespace uet::sim {

/// A fat tree without oversubscription from switches with `radix` ports: leaf-spine (2 tiers,
/// radix^2/2 hosts) or three tiers (radix^3/4 hosts).
struct FatTree {
  std::uint32_t tiers = 2;
  std::uint32_t radix = 8;

  constexpr std::uint32_t hosts_per_leaf() const { return radix / 2; }
  constexpr std::uint32_t leaves() const { return tiers == 2 ? radix : radix * radix / 2; }
  constexpr std::uint32_t hosts() const { return leaves() * hosts_per_leaf(); }
  /// Three tiers only.
  constexpr std::uint32_t leaves_per_pod() const { return radix / 2; }
  constexpr std::uint32_t pods() const { return radix; }
  constexpr std::uint32_t aggregations() const { return tiers == 2 ? 0 : radix * radix / 2; }
  /// Switches of the top tier: spines or cores.
  constexpr std::uint32_t tops() const { return tiers == 2 ? radix / 2 : radix * radix / 4; }
  constexpr std::uint32_t longest_hops() const { return tiers == 2 ? 4 : 6; }
  /// Links that a packet between two different hosts passes.
  std::uint32_t hops(std::uint32_t from, std::uint32_t to) const;

  /// The smallest tree with room for `hosts`. Without `tiers`: the tree whose size is exact, else
  /// two tiers while its switches have at most 64 ports.
  static FatTree for_hosts(std::uint32_t hosts, std::optional<std::uint32_t> tiers);
};

struct FabricConfig {
  FatTree tree;
  std::uint32_t hosts = 32;  ///< in use; at most tree.hosts()
  /// Fabrics side by side, each a whole tree; every host has a port into each.
  std::uint32_t planes = 1;
  base::BitRate host_rate() const { return base::BitRate::from_bps(link_rate.bps() * planes); }
  base::BitRate link_rate = base::BitRate::from_gbps(100);
  SimSpan hop_delay = SimSpan::from(base::Duration::from_us(1));
  std::uint32_t mtu_payload = 4086;
  bool trimming = true;
  bool mark_last_hop = true;  ///< off with receiver credit
  // 0: as derived below.
  std::int64_t queue_bytes = 0, ecn_low_bytes = 0, ecn_high_bytes = 0;

  std::uint32_t packet_bytes() const { return mtu_payload + WireModel::kModelHeader; }
  /// Round trip of one full packet and its 64-byte answer over the longest idle path.
  SimSpan base_rtt() const;
  /// Packets of one bandwidth-delay product, rounded up.
  std::int64_t bdp_packets() const;
  QueueConfig switch_queue(bool last_hop) const;
  /// Bytes that a receiver may gather before it acknowledges: 16 KiB, but less where a window of
  /// 1.5 times the shortest path's bandwidth-delay product would run out before.
  std::uint32_t ack_trigger() const;
  /// Smallest sensible retransmission timeout: a fixed part and six times the drain time of a
  /// queue.
  SimSpan rto_min() const;
};

}  // namespace uet::sim
