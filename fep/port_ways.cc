#include "fep/port_ways.h"

#include <algorithm>
#include <new>

#include "fep/fep.h"

namespace uet::fep {

PortWays::PortWays(net::Port& port, std::uint32_t payload_mtu)
    : port_(port),
      payload_mtu_(payload_mtu),
      largest_packet_(net::largest_ip_packet(port.facts())),
      places_(kPlaces) {}

/// What was known is asked for again. False without memory: the table stays as it is.
bool PortWays::grow() {
  try {
    places_ = std::vector<Place>(places_.size() * 2);
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

PortWays::Place& PortWays::place_for(Instant now, const net::FabricAddress& destination) {
  const auto oldest = [&] {
    Place* const set = set_of(destination);
    return std::min_element(set, set + kInSet,
                            [](const Place& a, const Place& b) { return a.ask_at < b.ask_at; });
  };
  Place* place = oldest();
  if (now < place->ask_at && places_.size() < kMostPlaces && grow()) place = oldest();
  return *place;
}

/// A way that carries whatever the port does takes the payload MTU as it was chosen, which may be fitted
/// more tightly than the rule does.
const PortWays::Place& PortWays::ask(Instant now, const net::FabricAddress& destination,
                                     Place& place) {
  const net::Way way = port_.way_to(now, destination);
  const bool carries_all = way.ip_mtu >= largest_packet_;
  place = {
      .destination = destination,
      .payload = carries_all ? payload_mtu_ : std::min(payload_mtu_, payload_mtu_for(way.ip_mtu)),
      .stays_on_host = way.stays_on_host,
      .ask_at = now + kFresh};
  return place;
}

}  // namespace uet::fep
