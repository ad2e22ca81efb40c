#include "fep/port_ways.h"

#include <algorithm>

#include "fep/fep.h"

namespace uet::fep {

PortWays::PortWays(net::Port& port, std::uint32_t payload_mtu)
    : port_(port),
      payload_mtu_(payload_mtu),
      largest_packet_(net::largest_ip_packet(port.facts())),
      places_(kPlaces) {}

/// A way that carries whatever the port does takes the payload MTU as it was chosen, which may be fitted
/// more tightly than the rule does.
void PortWays::ask(Instant now, const net::FabricAddress& destination, Place& place) {
  const net::Way way = port_.way_to(now, destination);
  const bool carries_all = way.ip_mtu >= largest_packet_;
  place = {
      .destination = destination,
      .payload = carries_all ? payload_mtu_ : std::min(payload_mtu_, payload_mtu_for(way.ip_mtu)),
      .stays_on_host = way.stays_on_host,
      .ask_at = now + kFresh};
}

}  // namespace uet::fep
