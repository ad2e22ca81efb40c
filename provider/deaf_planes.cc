#include "provider/deaf_planes.h"

#include <string>

#include "lib/net/port_name.h"

namespace uet::provider {
namespace {

std::string what_to_do(const std::string& plane) {
  const std::string cables =
      ": do both ends have it as this plane, in the same VLAN and cabled to the same fabric?";
  if (!net::is_udp_port(plane)) return cables;
  return cables +
         " Strict reverse path filtering drops what comes by an interface that the route back does "
         "not use: sysctl net.ipv4.conf.all.rp_filter=2 at both ends";
}

}  // namespace

void DeafPlanes::look(const net::Port& port, Remarks& remarks) {
  const unsigned count = port.facts().planes;
  if (count < 2) return;
  std::array<net::PlaneCounters, net::kMaxPlanes> counters{};
  std::uint64_t received = 0;
  for (unsigned p = 0; p < count; ++p) {
    counters[p] = port.plane_counters(p);
    received += counters[p].received;
  }
  const auto names = net::planes_of(port.facts().name);
  for (unsigned p = 0; p < count; ++p) {
    const net::PlaneCounters& is = counters[p];
    const std::uint64_t others = received - is.received;
    Plane& plane = planes_[p];
    ++plane.looks_since_told;
    if (is.received != plane.received || !is.is_up) {
      plane.sent = is.sent;
      plane.received = is.received;
      plane.others = others;
    }
    const std::uint64_t sent = is.sent - plane.sent, by_others = others - plane.others;
    const bool is_deaf = sent >= kSentToTell && by_others >= kOthersToTell;
    if (!is_deaf || plane.looks_since_told < kLooksBetweenWarnings) continue;
    plane.looks_since_told = 0;
    const std::string name = names.size() == count ? names[p] : port.facts().name;
    remarks.push_back("plane " + std::to_string(p) + " (" + name + ") has a link and sent " +
                      std::to_string(sent) +
                      " packets, but received none while the others received " +
                      std::to_string(by_others) + what_to_do(name));
  }
}

}  // namespace uet::provider
