/// Keeps packets for neighbors that do not answer from filling the sending sockets. [decision 129]
#pragma once

#include <cstddef>

#include "lib/base/units.h"
#include "lib/net/fabric_address.h"
#include "lib/udp/udp_sockets.h"
#include "lib/udp/unresolved_neighbors.h"

namespace uet::udp {

/// Until ARP or Neighbor Discovery is answered the kernel keeps what is sent to a neighbor, for 3 s and up to 208 KiB, and
/// counts it for the socket that sent it: a few dead ones fill them all. A full device drains meanwhile, and that is how the two are told
/// apart. Costs nothing as long as no socket refuses packets for a millisecond.
class NeighborWatch {
 public:
  /// A device needs less than this for the next packet that it takes.
  static constexpr base::Duration kLookAfter = base::Duration::from_ms(1);
  /// What fills sockets that drain less than kDrains in this time is no device.
  static constexpr base::Duration kStuckAfter = base::Duration::from_ms(5);
  static constexpr std::size_t kDrains = 65536;  ///< 100 Mb/s
  /// How old what is known of neighbors may be that packets go to.
  static constexpr base::Duration kFresh = base::Duration::from_ms(50);
  /// Without a packet for one of them they are forgotten.
  static constexpr base::Duration kForgetAfter = base::Duration::from_seconds(1);
  /// So often in so long sockets are exchanged: bounds what packets fill the kernel's memory.
  static constexpr unsigned kMostExchanges = 8;
  static constexpr base::Duration kExchangePeriod = base::Duration::from_seconds(3);

  /// As for UnresolvedNeighbors.
  NeighborWatch(bool is_v4, unsigned interface_index, unsigned scope)
      : unresolved_(is_v4, interface_index, scope) {}

  /// A socket refused a packet.
  void on_held(base::Instant now);
  /// All that was refused is gone.
  void on_released() { look_at_ = base::Instant::never(); }
  bool is_due(base::Instant now) const { return now >= look_at_; }
  /// When it is due: finds out what the sockets are full of. Exchanges those that are full of packets for neighbors that do not answer.
  void look(base::Instant now, UdpSockets& sockets);

  /// Some neighbors are known not to answer.
  bool is_careful() const { return !unresolved_.is_empty(); }
  /// Whether a packet to `host` would stay in the kernel. Only while it is careful.
  bool keeps(base::Instant now, const net::FabricAddress& host);

 private:
  bool may_exchange(base::Instant now);

  UnresolvedNeighbors unresolved_;
  base::Instant look_at_ = base::Instant::never();
  std::size_t unsent_ = 0;  ///< by all sockets, at the last look; 0: this will be the first
  base::Instant known_at_;  ///< when the kernel was asked for neighbors
  base::Instant kept_at_;   ///< when a packet was for one of them
  base::Instant period_began_;
  unsigned exchanges_ = 0;  ///< since then
};

}  // namespace uet::udp
