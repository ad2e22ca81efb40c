#include "fep/port_ways.h"

#include <algorithm>

#include "fep/fep.h"

namespace uet::fep {

PortWays::PortWays(net::Port& port, std::uint32_t payload_mtu)
    : port_(port),
      payload_mtu_(payload_mtu),
      largest_packet_(net::largest_ip_packet(port.facts())),
      places_(kPlaces) {}

std::uint32_t PortWays::payload_towards(Instant now, const net::FabricAddress& destination) {
  static_assert((kPlaces & (kPlaces - 1)) == 0);
  Place& place = places_[destination.hash() & (kPlaces - 1)];
  if (place.destination != destination || now >= place.ask_at)
    place = {destination, ask(now, destination), now + kFresh};
  return place.payload;
}

/// A way that carries whatever the port does takes the payload MTU as it was chosen, which may be fitted
/// more tightly than the rule does.
std::uint32_t PortWays::ask(Instant now, const net::FabricAddress& destination) {
  const std::size_t carries = port_.path_mtu(now, destination);
  if (carries >= largest_packet_) return payload_mtu_;
  return std::min(payload_mtu_, payload_mtu_for(carries));
}

}  // namespace uet::fep
