#include <atomic>
#include <cerrno>
#include <cstdio>
#include <span>
#include <vector>

#include "lib/net/link_messages.h"
#include "lib/net/shared_ports.h"
#include "lib/udp/descriptor.h"
#include "lib/udp/local_addresses.h"
#include "lib/udp/udp_port.h"

namespace uet::udp {

using net::FabricAddress;
using net::UdpPortName;

namespace {

constexpr std::size_t kLoopbackMtu = 65536;
constexpr std::size_t kLargestIpPacket = 65535;
constexpr std::uint32_t kFirstSpare = 0x7f00'0002;  // 127.0.0.2
constexpr std::uint32_t kLastSpare = 0x7f00'00fe;   // 127.0.0.254

/// Where to bind.
struct Place {
  FabricAddress address;
  std::string interface;
  unsigned interface_index = 0;
  std::size_t mtu = 0;
};

bool check_request(const net::PortRequest& request, const UdpPortName& spec, std::string& error) {
  if (request.native_ip) {
    error = "the kernel-UDP port only speaks UDP; set FI_UET_ENCAP=udp or use a dpdk port";
  } else if (request.vlan != 0) {
    error = "the kernel-UDP port has no VLAN of its own; name a VLAN interface, e.g. udp:eth0.100";
  } else if (!spec.address.is_unspecified() && !request.address.is_unspecified() &&
             spec.address != request.address) {
    error = "two addresses are configured: " + spec.address.to_string() + " and " +
            request.address.to_string() + "; leave one out";
  } else if (!spec.interface.empty() && interface_index(spec.interface) == 0) {
    error =
        errno == ENODEV
            ? "no interface or address '" + spec.interface + "' on this host; `ip addr` lists them"
            : "cannot look for the interface " + spec.interface + ": " + error_text(errno);
  } else {
    return true;
  }
  return false;
}

/// A port at `wanted` has the MTU and the name of the interface there; one that is named beside it would be neither. Planes share one address.
bool check_place(const net::PortRequest& request, const UdpPortName& spec,
                 const FabricAddress& wanted, std::span<const LocalAddress> all,
                 std::string& error) {
  if (!net::is_unicast(wanted)) {
    error = wanted.to_string() + " is not a unicast address; set FI_UET_ADDR to one";
    return false;
  }
  if (request.planes > 1 || spec.interface.empty()) return true;
  std::string holder;
  for (const LocalAddress& a : all) {
    if (a.address != wanted.host() && !(a.is_loopback && wanted.is_loopback())) continue;
    if (a.interface == spec.interface) return true;
    holder = a.interface;
  }
  if (holder.empty()) return true;  // no interface has it: binding says so
  error = wanted.to_string() + " is an address of the interface " + holder + ", and not of " +
          spec.interface + "; leave one out";
  return false;
}

/// The interface that has `address`; the loopback for all of 127/8.
Place place_of(const FabricAddress& address, const std::string& interface,
               std::span<const LocalAddress> all) {
  Place place{.address = address, .interface = interface};
  for (const LocalAddress& a : all) {
    const bool fits = a.address == address.host() || (a.is_loopback && address.is_loopback());
    if (!fits || !(interface.empty() || a.interface == interface)) continue;
    place.interface = a.interface;
    place.interface_index = a.interface_index;
    break;
  }
  if (place.interface_index == 0) place.interface_index = interface_index(place.interface);
  place.mtu = interface_mtu(place.interface);
  if (place.mtu == 0) place.mtu = address.is_loopback() ? kLoopbackMtu : 1500;
  return place;
}

bool bind_at(const Place& place, const net::PortRequest& request, const UdpPortName& spec,
             UdpSockets& sockets, std::string& error) {
  const char* step = "";
  sockets = UdpSockets();
  if (open_sockets(UdpSocketsConfig{.address = place.address,
                                    .scope = place.interface_index,
                                    .port = place.address.udp_port_or(request.udp_port),
                                    .device = request.planes > 1 ? place.interface : "",
                                    .senders = spec.sockets,
                                    .merge = spec.merge},
                   sockets, step))
    return true;
  const int why = errno;
  const std::string address = place.address.host().to_string();
  const std::string port = std::to_string(place.address.udp_port_or(request.udp_port));
  if (why == EADDRINUSE &&
      closed_for(place.address.host(), place.address.udp_port_or(request.udp_port))) {
    error = "address in use: a child of this process, or another process, has UDP port " + port +
            " of " + address +
            ", which this process closed; end it, or take another address with FI_UET_ADDR";
  } else if (why == EADDRINUSE) {
    error =
        "address in use: this process or another one has UDP port " + port + " of " + address +
        "; give each endpoint its own address with FI_UET_ADDR (any of 127.0.0.2 to 127.0.0.254 "
        "works on one host)";
  } else if (why == EADDRNOTAVAIL) {
    error = "no interface of this host has the address " + address + "; `ip addr` lists them";
  } else if (why == EACCES) {
    error = "no permission to bind UDP port " + port + " of " + address;
  } else if (why == EPERM) {
    error = "no permission to tie a socket to " + place.interface +
            ": several planes need Linux 5.7 or CAP_NET_RAW";
  } else {
    error = "cannot " + std::string(step) + " on " + address + ": " + error_text(why);
  }
  errno = why;
  return false;
}

/// Where a process that names no address may be, in the order in which it takes the first that is free: at the primary address of `interface`,
/// or of the first one of this host; at a UDP port beside that of the process which has it; where no interface is named, at a spare loopback
/// address.
std::vector<Place> places(const net::PortRequest& request, const std::string& interface,
                          std::span<const LocalAddress> all) {
  std::vector<Place> out;
  const LocalAddress primary = primary_of(all, interface);
  if (!primary.interface.empty()) {
    out.push_back(place_of(primary.address, primary.interface, all));
    const bool shares = request.may_share && request.planes == 1 && primary.address.is_v4() &&
                        !primary.address.is_loopback();
    for (std::uint16_t i = 0; shares && i < net::kSharedPorts; ++i) {
      out.push_back(out.front());
      out.back().address = primary.address.with_udp_port(net::kFirstSharedPort + i);
    }
  }
  if (!interface.empty()) return out;
  const Place loopback = place_of(FabricAddress::from_v4(kFirstSpare), {}, all);
  for (std::uint32_t spare = kFirstSpare; spare <= kLastSpare; ++spare) {
    out.push_back(loopback);
    out.back().address = FabricAddress::from_v4(spare);
  }
  return out;
}

/// Once in a process. Where the network comes up later, the port keeps the address that it has.
void warn_of_loopback(const std::string& warning) {
  static std::atomic_flag is_said;
  if (is_said.test_and_set()) return;
  std::fprintf(stderr, "uet: %s\n", warning.c_str());
}

bool bind_somewhere(const net::PortRequest& request, const UdpPortName& spec, Place& place,
                    UdpSockets& sockets, std::string& error) {
  const FabricAddress wanted = spec.address.is_unspecified() ? request.address : spec.address;
  const auto listed = local_addresses();
  if (!wanted.is_unspecified()) {
    // Without the list: binding says whether the address can be had.
    const std::span<const LocalAddress> all =
        listed ? std::span<const LocalAddress>(*listed) : std::span<const LocalAddress>();
    if (!check_place(request, spec, wanted, all, error)) return false;
    place = place_of(wanted, spec.interface, all);
    return bind_at(place, request, spec, sockets, error);
  }
  if (!listed) {
    error = why_not_listed(listed.error());
    return false;
  }
  error = "interface " + spec.interface + " has no address; `ip addr add` gives it one";
  const std::vector<Place> candidates = places(request, spec.interface, *listed);
  for (const Place& candidate : candidates) {
    place = candidate;
    if (bind_at(place, request, spec, sockets, error)) {
      error.clear();  // why those before it were none
      if (spec.interface.empty() && place.address.is_loopback()) {
        const FabricAddress& first = candidates.front().address;
        warn_of_loopback(first.is_loopback() ? loopback_warning(place.address)
                                             : no_place_warning(first, place.address));
      }
      return true;
    }
    if (errno != EADDRINUSE) return false;
  }
  return false;
}

}  // namespace

std::unique_ptr<net::Port> open_udp_port(const net::PortRequest& request, base::Trace& trace,
                                         std::string& error) {
  UdpPortName spec;
  Place place;
  UdpSockets sockets;
  if (!net::parse_udp_port(request.spec, spec, error) || !check_request(request, spec, error) ||
      !bind_somewhere(request, spec, place, sockets, error)) {
    error = request.spec + ": " + error;
    return nullptr;
  }
  constexpr std::size_t kSmallestMtu = 1280;
  net::PortFacts facts;
  facts.name = "udp:" + (place.interface.empty() ? place.address.to_string() : place.interface);
  facts.address = place.address;
  facts.ip_mtu = place.mtu;
  // Without an interface of its own the port sends by whichever the kernel's routes name, over the loopback to
  // this host's own addresses.
  facts.path_mtu_max =
      request.planes > 1 ? std::min(place.mtu, kLargestIpPacket) : kLargestIpPacket;
  if (request.mtu != 0) {
    const std::size_t wanted = std::max(request.mtu, kSmallestMtu);
    facts.ip_mtu = std::min(facts.ip_mtu, wanted);
    facts.path_mtu_max = std::min(facts.path_mtu_max, wanted);
  }
  facts.link_rate = interface_rate(place.interface);
  facts.udp_port = request.udp_port;
  facts.receive_bytes = sockets.receive_bytes;
  if (sockets.can_merge) facts.run_packets = SendBatch::kRunPackets;
  if (spec.merge && !sockets.can_merge)
    std::fprintf(
        stderr,
        "uet: this kernel has no UDP_SEGMENT and UDP_GRO, port %s moves packets one by one\n",
        facts.name.c_str());
  return std::make_unique<UdpPort>(std::move(sockets), facts,
                                   UdpInterface{place.interface, place.interface_index},
                                   request.packets, trace);
}

}  // namespace uet::udp
