/// Remembers for a while what the port says about the ways to destinations.
#pragma once

#include <algorithm>
#include <vector>

#include "lib/net/port.h"
#include "ses/ways.h"

namespace uet::fep {

using base::Duration;
using base::Instant;

/// A table with four places for destinations of the same hash. Where that is too few the table grows, to 2 MiB: enough for some
/// 20,000 peers at once. With more the port is asked more often, and nothing else happens.
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
  /// The same as it was known last, without a question to the port; false of others.
  bool is_known_on_host(const net::FabricAddress& destination) {
    const Place* const set = set_of(destination);
    return std::any_of(set, set + kInSet, [&](const Place& place) {
      return place.stays_on_host && place.destination == destination;
    });
  }

 private:
  static constexpr std::size_t kInSet = 4;
  static constexpr std::size_t kPlaces = 1024, kMostPlaces = 65536;
  /// A way that changed, or about which ICMP told something, is seen after so long.
  static constexpr Duration kFresh = Duration::from_ms(500);

  struct Place {
    net::FabricAddress destination;
    std::uint32_t payload = 0;
    bool stays_on_host = false;
    Instant ask_at;
  };

  Place* set_of(const net::FabricAddress& destination) {
    return &places_[(destination.hash() & (places_.size() / kInSet - 1)) * kInSet];
  }
  const Place& look_up(Instant now, const net::FabricAddress& destination) {
    Place* const set = set_of(destination);
    for (Place* place = set; place != set + kInSet; ++place)
      if (place->destination == destination)
        return now < place->ask_at ? *place : ask(now, destination, *place);
    return ask(now, destination, place_for(now, destination));
  }
  /// The place in its set that was asked for longest ago; before one is lost that is still fresh, the table grows.
  Place& place_for(Instant now, const net::FabricAddress& destination);
  bool grow();
  const Place& ask(Instant now, const net::FabricAddress& destination, Place& place);

  net::Port& port_;
  std::uint32_t payload_mtu_;
  std::size_t largest_packet_;
  std::vector<Place> places_;
};

}  // namespace uet::fep
