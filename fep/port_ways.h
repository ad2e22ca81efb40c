/// Remembers for a while what the port says about the ways to destinations.
#pragma once

#include <vector>

#include "lib/net/port.h"
#include "ses/ways.h"

namespace uet::fep {

using base::Duration;
using base::Instant;

/// A fixed number of places, one for each destination by its hash: destinations that share a place ask
/// the port more often, nothing else happens.
class PortWays final : public ses::Ways {
 public:
  /// `payload_mtu` is the most that any way gets.
  PortWays(net::Port& port, std::uint32_t payload_mtu);

  std::uint32_t payload_towards(Instant now, const net::FabricAddress& destination) override {
    return look_up(now, destination).payload;
  }
  bool stays_on_host(Instant now, const net::FabricAddress& destination) override {
    return look_up(now, destination).stays_on_host;
  }

 private:
  static constexpr std::size_t kPlaces = 1024;
  /// A way that changed, or about which ICMP told something, is seen after so long.
  static constexpr Duration kFresh = Duration::from_ms(500);

  struct Place {
    net::FabricAddress destination;
    std::uint32_t payload = 0;
    bool stays_on_host = false;
    Instant ask_at;
  };

  const Place& look_up(Instant now, const net::FabricAddress& destination) {
    static_assert((kPlaces & (kPlaces - 1)) == 0);
    Place& place = places_[destination.hash() & (kPlaces - 1)];
    if (place.destination != destination || now >= place.ask_at) ask(now, destination, place);
    return place;
  }
  void ask(Instant now, const net::FabricAddress& destination, Place& place);

  net::Port& port_;
  std::uint32_t payload_mtu_;
  std::size_t largest_packet_;
  std::vector<Place> places_;
};

}  // namespace uet::fep
