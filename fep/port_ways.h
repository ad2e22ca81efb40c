/// Remembers for a while what the port says about the ways to destinations.
#pragma once

#include <vector>

#include "lib/net/port.h"
#include "ses/carrier.h"

namespace uet::fep {

using base::Duration;
using base::Instant;

/// A fixed number of places, one for each destination by its hash: destinations that share a place ask
/// the port more often, nothing else happens.
class PortWays final : public ses::Ways {
 public:
  /// `payload_mtu` is the most that any way gets.
  PortWays(net::Port& port, std::uint32_t payload_mtu);

  std::uint32_t payload_towards(Instant now, const net::FabricAddress& destination) override;

 private:
  static constexpr std::size_t kPlaces = 1024;
  /// A way that changed, or about which ICMP told something, is seen after so long.
  static constexpr Duration kFresh = Duration::from_ms(500);

  struct Place {
    net::FabricAddress destination;
    std::uint32_t payload = 0;
    Instant ask_at;
  };

  std::uint32_t ask(Instant now, const net::FabricAddress& destination);

  net::Port& port_;
  std::uint32_t payload_mtu_;
  std::size_t largest_packet_;
  std::vector<Place> places_;
};

}  // namespace uet::fep
