/// The kernel-UDP port: UET on any machine, without root, hugepages or set-up.
#pragma once

#include <algorithm>
#include <array>
#include <memory>

#include "lib/base/trace.h"
#include "lib/net/heap_packet_pool.h"
#include "lib/net/port.h"
#include "lib/net/port_name.h"
#include "lib/net/port_plugin.h"
#include "lib/udp/neighbor_watch.h"
#include "lib/udp/own_addresses.h"
#include "lib/udp/receive_batch.h"
#include "lib/udp/send_batch.h"
#include "lib/udp/socket_address.h"
#include "lib/udp/udp_sockets.h"

namespace uet::udp {

/// Opens the port that `request.spec` names: "udp", "udp:<interface>", "udp:<address>", each with
/// ",sockets=<1..64>" for the number of source ports to spread over and ",merge=0" to pass packets to the kernel
/// one by one. Without any address: the
/// primary address of the first interface that is up, or when a process of this host has that, the
/// first free one of 127.0.0.2 to 127.0.0.254. Null: `error` says what to do. A
/// net::OpenPortFunction.
std::unique_ptr<net::Port> open_udp_port(const net::PortRequest& request, base::Trace& trace,
                                         std::string& error);

/// Where a port sits.
struct UdpInterface {
  std::string name;    ///< the last one that the index had
  unsigned index = 0;  ///< for link-local addresses, and for what is tied to it
};

/// One thread. System calls are made per burst and socket, never per packet; where the kernel can, runs of packets pass through
/// it as one. Packets may borrow their payload.
class UdpPort final : public net::Port {
 public:
  static constexpr std::size_t kMaxSockets = net::kMaxUdpSockets;

  UdpPort(UdpSockets sockets, const net::PortFacts& facts, UdpInterface interface,
          std::size_t packets, base::Trace& trace);

  const net::PortFacts& facts() const override { return facts_; }
  net::PacketPool& pool() override { return pool_; }
  std::size_t receive(base::Instant now, std::span<net::RxPacket> out) override;
  std::size_t send(base::Instant now, std::span<net::TxPacket> in) override;
  std::size_t send_room(base::Instant) const override { return held_count_ == 0 ? SIZE_MAX : 0; }
  std::uint8_t planes_up(base::Instant now) override;
  net::SendFailure last_send_failure() const override { return send_failure_; }
  std::uint16_t wire_entropy(std::uint16_t entropy) const override {
    return sockets_.sender_ports[sender_of_[entropy]];
  }
  /// Asks the kernel's routes, and what ICMP told about them.
  net::Way way_to(base::Instant now, const net::FabricAddress& destination) override;
  base::Instant next_deadline() const override { return std::min(retry_held_at_, look_at_); }
  void on_deadline(base::Instant now) override;
  /// The socket itself: readable as long as packets wait in it. -1 once the sockets were opened again: a sleeper may watch the old one.
  int wakeup_fd() const override { return is_reopened_ ? -1 : sockets_.receiver.fd(); }
  bool arm_wakeup() override { return received_.is_empty(); }

 private:
  static constexpr std::size_t kBurst = SendBatch::kPackets;

  bool is_tied() const { return !sockets_.config.device.empty(); }
  /// Its sockets have the index of the interface, by which the kernel knows them.
  bool is_of_interface() const { return is_tied() || facts_.address.is_link_local(); }
  bool has_small_buffer() const {
    return sockets_.receive_bytes < std::size_t{kReceiveBufferBytes};
  }
  bool follow_interface(base::Instant now);
  bool refuse(base::Instant now, net::TxPacket& packet);
  void transmit(base::Instant now, std::span<net::TxPacket> in);
  void transmit_by(base::Instant now, std::size_t sender, std::span<net::TxPacket> in);
  bool keep_from_kernel(base::Instant now, net::TxPacket& packet);
  void stop_merging();
  void hold(base::Instant now, net::TxPacket& packet);
  void flush_held(base::Instant now);

  UdpSockets sockets_;
  net::PortFacts facts_;
  UdpInterface interface_;
  base::Instant
      look_at_;  ///< for its interface: a single port with a link-local address; else never
  base::Instant follow_at_;  ///< not sooner
  int follow_error_ = 0;     ///< errno of the last try, 0 after success
  bool is_reopened_ = false;
  OwnAddresses own_addresses_;
  bool is_v4_;
  base::Trace& trace_;
  net::HeapPacketPool pool_;
  std::size_t max_payload_;
  std::array<std::uint8_t, 65536> sender_of_;  ///< which sending socket serves an entropy value

  /// Packets of one burst that a full socket did not take. Never more than a burst: send() takes
  /// nothing while packets are held.
  std::array<net::TxPacket, kBurst> held_;
  std::size_t held_count_ = 0;
  base::Instant retry_held_at_ = base::Instant::never();

  std::array<std::array<std::uint8_t, kBurst>, kMaxSockets> by_sender_;  ///< positions in the burst
  std::array<std::uint8_t, kMaxSockets> sizes_by_sender_{};

  net::SendFailure send_failure_;  ///< the latest
  bool may_merge_;
  NeighborWatch watch_;
  SendBatch to_send_;
  ReceiveBatch received_;
};

}  // namespace uet::udp
