/// The sockets of one kernel-UDP port: one that receives on the UET port, and a small set that
/// sends, whose source ports are the entropy values this port has.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "lib/net/fabric_address.h"
#include "lib/udp/descriptor.h"
#include "lib/udp/socket_address.h"

namespace uet::udp {

/// What is wanted of the kernel's receive buffer.
inline constexpr int kReceiveBufferBytes = 16 << 20;

struct UdpSocketsConfig {
  net::FabricAddress address;
  unsigned scope = 0;  ///< interface index, for link-local addresses
  std::uint16_t port = 4793;
  std::string
      device;  ///< interface that the sockets are tied to; empty: the kernel's routes decide
  std::size_t senders = 8;
  bool merge = true;  ///< use UDP_SEGMENT and UDP_GRO where the kernel has them
  int receive_buffer_bytes = kReceiveBufferBytes;  ///< asked for; the kernel may give less
  int send_buffer_bytes = 4 << 20;
};

struct UdpSockets {
  Descriptor receiver;
  Descriptor prober;  ///< asks for routes, sends nothing
  std::vector<Descriptor> senders;
  std::vector<std::uint16_t> sender_ports;
  std::size_t receive_bytes =
      0;  ///< what the kernel gave of receive_buffer_bytes, its bookkeeping included
  bool can_merge = false;     ///< the kernel takes and gives runs of packets (UDP_SEGMENT, UDP_GRO)
  bool may_fragment = false;  ///< since let_fragment()
  UdpSocketsConfig config;    ///< that they were opened by
};

/// Senders get the ports that `sockets` names, or any. False: errno tells why the receiver could not be bound (EADDRINUSE, EADDRNOTAVAIL), or which
/// later step failed; `step` names it. Where this process closed the port less than kChildPatience ago and has it no longer, a child of it may
/// have it: waits for that until so long after the closing.
bool open_sockets(const UdpSocketsConfig& config, UdpSockets& sockets, const char*& step);

/// Ties the sockets to another interface, `device` with that index: the kernel ties sockets to an index, whatever name it gets. A link-local
/// address ties them too. A socket that is tied already needs CAP_NET_RAW for that: without it the sockets are opened again, with the same
/// ports. False: errno tells why, and the call may be tried again.
bool tie_again(UdpSockets& sockets, const std::string& device, unsigned index);

/// IP MTU of the route to `to`, what ICMP said about it included; 0 when there is none. Connects `prober`.
std::size_t route_mtu(int prober, const SocketAddress& to);

/// The senders fragment what is larger than the path MTU instead of refusing it.
void let_fragment(UdpSockets& sockets);

/// Puts a new socket with the same port into the place of a sender. What the old one sent and the kernel still has leaves as it would have, and counts
/// for no socket any more. False: the old one stays.
bool renew_sender(UdpSockets& sockets, std::size_t sender);

/// What `fd` sent and the kernel still has, with the kernel's bookkeeping; and how much that may be until it refuses more.
std::size_t unsent_bytes(int fd);
std::size_t send_buffer_bytes(int fd);

/// Whether a socket of any program keeps others from that UDP port. Binds it for a moment.
bool is_port_taken(const net::FabricAddress& address, std::uint16_t port);

}  // namespace uet::udp
