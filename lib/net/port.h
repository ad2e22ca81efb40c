/// A port moves UET packets between this endpoint and the network: one IP address on one queue of some device.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "lib/base/drop_reason.h"
#include "lib/base/units.h"
#include "lib/net/fabric_address.h"
#include "lib/net/packet.h"

namespace uet::net {

/// What the IP header said about a packet, and how to build one. The low two bits are ECN, the upper six DSCP.
struct TosByte {
  std::uint8_t value = 0;
  constexpr std::uint8_t dscp() const { return value >> 2; }
  constexpr std::uint8_t ecn() const { return value & 3; }
  constexpr bool is_congestion_experienced() const { return ecn() == 3; }
  static constexpr TosByte of(std::uint8_t dscp, std::uint8_t ecn) {
    return TosByte{static_cast<std::uint8_t>(dscp << 2 | (ecn & 3))};
  }
};

/// The DSCP values that switches give to packets which they trim.
struct TrimmedDscps {
  std::uint8_t in_fabric = 0, last_hop = 0;
  constexpr bool contains(TosByte tos) const {
    return tos.dscp() == in_fabric || tos.dscp() == last_hop;
  }
};

/// A received UET packet: `packet` begins with the first byte behind the UDP (or entropy) header and ends with the
/// last byte of the IP payload, trailer included.
struct RxPacket {
  Packet packet;
  FabricAddress source;
  FabricAddress destination;
  std::uint16_t entropy = 0;  ///< UDP source port, or the entropy field with native IP
  TosByte tos;
  std::uint8_t plane = 0;     ///< which of the endpoint's ports (fabric planes) it came in by
  bool is_overtaken = false;  ///< secured: its sender sealed packets later that were here before it
  /// Native IP: the reserved bits behind the entropy, as received. They mean nothing, but CRC and ICV cover them. [WIRE 2.5, 2.8]
  std::uint16_t entropy_reserved = 0;
};

/// Ports that one endpoint can have.
inline constexpr unsigned kMaxPlanes = 8;
/// As the plane of a packet to send: by any.
inline constexpr std::uint8_t kAnyPlane = 0xff;

/// A UET packet to send; same extent of `packet`. The port adds everything in front.
struct TxPacket {
  Packet packet;
  FabricAddress destination;
  std::uint16_t entropy = 0;
  TosByte tos;
  std::uint8_t plane = 0;  ///< which of the endpoint's ports (fabric planes) it leaves by
};

/// What is known about a port once it is open.
struct PortFacts {
  std::string name;               ///< as in messages and fi_info: "udp:eth0", "dpdk:net_memif0"
  FabricAddress address;          ///< our fabric address
  std::size_t ip_mtu = 1500;      ///< largest IP packet of the device
  std::size_t path_mtu_max = 0;   ///< the same for whichever way from here carries most; 0: ip_mtu
  base::BitRate link_rate;        ///< of all planes together; 0 when unknown
  std::size_t receive_bytes = 0;  ///< that may wait until receive() takes them; 0: unknown
  std::uint16_t run_packets = 1;  ///< packets in a row to one path that it moves as one
  std::uint8_t planes = 1;        ///< ports with this one address, each into a fabric of its own
  bool udp_encapsulation = true;  ///< false: native IP with entropy header
  bool reports_tos = true;        ///< DSCP and ECN of received packets are known
  std::uint16_t udp_port = 4793;
  std::uint8_t ip_protocol = 253;  ///< with native IP
  std::uint8_t mac[6] = {};
};

/// The largest IP packet that may leave by the port, on any way.
inline std::size_t largest_ip_packet(const PortFacts& facts) {
  return facts.path_mtu_max != 0 ? facts.path_mtu_max : facts.ip_mtu;
}

/// The way from a port to some destination.
struct Way {
  std::size_t ip_mtu =
      0;  ///< largest IP packet that it carries; never more than largest_ip_packet() of the port
  bool stays_on_host = false;  ///< no network on it: entropy values choose nothing
};

/// What happened on one plane since the port was opened, and how it is now.
struct PlaneCounters {
  bool is_up = true;
  std::size_t waiting = 0;  ///< packets that its device did not take yet
  std::uint64_t sent = 0;   ///< packets, as the others
  std::uint64_t received = 0;
  std::uint64_t dropped = 0;  ///< were waiting when it went down
  std::uint64_t times_down = 0;
};

/// A packet that did not leave this host, for `reason`: kSendFailed, kNoRoute or kNoNeighbor.
struct SendFailure {
  base::Instant at;
  FabricAddress destination;  ///< unspecified: there was no such packet
  base::DropReason reason = base::DropReason::kSendFailed;
  int error = 0;  ///< errno, of kSendFailed
};

/// One thread. Bursts in, bursts out, never blocks.
class Port {
 public:
  virtual ~Port() = default;

  virtual const PortFacts& facts() const = 0;
  virtual PacketPool& pool() = 0;

  /// Fills the front of `out` with received packets and returns how many. The caller owns them.
  virtual std::size_t receive(base::Instant now, std::span<RxPacket> out) = 0;
  /// Takes packets from the front of `in` and returns how many were taken; those are moved from. A short count means
  /// that the device is full: offer the rest again later.
  virtual std::size_t send(base::Instant now, std::span<TxPacket> in) = 0;
  /// How many packets send() would take at least, right now. A builder of packets asks before building, so that a packet
  /// is built (path chosen, time stamped) only when it can leave. Ports with a deep queue of their own keep the default.
  virtual std::size_t send_room(base::Instant now) const {
    (void)now;
    return SIZE_MAX;
  }

  /// Which planes have a link, a bit each. What is sent to another is lost. With one plane there is no need to ask.
  virtual std::uint8_t planes_up(base::Instant now) {
    (void)now;
    return 1;
  }
  /// As send_room(), for packets that leave by `plane`.
  virtual std::size_t plane_room(base::Instant now, unsigned plane) const {
    (void)plane;
    return send_room(now);
  }
  /// For people who want to know. Not for the data path.
  virtual PlaneCounters plane_counters(unsigned plane) const {
    (void)plane;
    return {};
  }

  /// The latest such packet. For people who want to know.
  virtual SendFailure last_send_failure() const { return {}; }

  /// The entropy value that will really be on the wire when a TxPacket asks for `entropy`. The kernel-UDP port only has
  /// the source ports of its sockets; the UET CRC covers the source port, so the code that computes it asks here first.
  /// Idempotent: wire_entropy(wire_entropy(x)) == wire_entropy(x). Ports that wrap another port forward it.
  virtual std::uint16_t wire_entropy(std::uint16_t entropy) const { return entropy; }
  /// As wire_entropy(), for packets that leave by `plane`.
  virtual std::uint16_t plane_wire_entropy(std::uint16_t entropy, unsigned plane) const {
    (void)plane;
    return wire_entropy(entropy);
  }

  /// What is known of the way to `destination`. May cost system calls: a caller that asks often remembers the answer for a while.
  virtual Way way_to(base::Instant now, const FabricAddress& destination) {
    (void)now;
    (void)destination;
    return {.ip_mtu = facts().ip_mtu};
  }

  /// Work of the port's own (address resolution, delayed packets): when it next wants on_deadline().
  virtual base::Instant next_deadline() const { return base::Instant::never(); }
  virtual void on_deadline(base::Instant now) { (void)now; }

  /// A descriptor that becomes readable when packets may have arrived, for a thread that wants to sleep; -1 when this
  /// port cannot wake a sleeper. arm_wakeup() must be called before sleeping; it returns false when packets already wait.
  virtual int wakeup_fd() const { return -1; }
  virtual bool arm_wakeup() { return true; }

  /// In a child made by fork(): releases what the child inherited and would keep the address taken by. The port is not used
  /// there again. Safe between fork() and exec(). Ports that wrap others forward it.
  virtual void abandon_in_child() {}
};

}  // namespace uet::net
