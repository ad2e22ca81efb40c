/// A port on top of a device that moves Ethernet frames: our own small IP host with one address and
/// one protocol.
///
/// Answers ARP or Neighbor Discovery and echo requests for its address, finds the next hop of each
/// destination, and moves UET packets in UDP or native IP. One thread. Reads no clock: all time
/// comes in as arguments.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "lib/base/trace.h"
#include "lib/net/frame_format.h"
#include "lib/net/link_messages.h"
#include "lib/net/neighbor_resolver.h"
#include "lib/net/neighbor_table.h"
#include "lib/net/port.h"
#include "lib/net/port_plugin.h"

namespace uet::net {

struct IpPortConfig {
  std::string name;
  FabricAddress address;
  unsigned prefix_length = 24;
  FabricAddress gateway;  ///< unspecified: only on-link destinations can be reached
  std::uint16_t vlan = 0;
  bool native_ip = false;
  std::uint16_t udp_port = 4793;
  std::uint8_t ip_protocol = 253;
  std::uint8_t ttl = 64;
  /// False when the kernel (behind an af_packet device) owns the address and answers
  /// ARP, ND and echo.
  bool answers = true;
  /// Where set, it finds neighbors in place of ARP and Neighbor Discovery, which then do not reach us.
  std::shared_ptr<NeighborResolver> resolver;
  NeighborConfig neighbors;
  base::HashKey hash_key{
      base::Rng(1)};             ///< of tables whose keys other hosts choose; real ports draw one
  std::size_t max_looped = 256;  ///< packets to ourselves that may wait for receive()
};

/// Takes the address settings of a request; false and a sentence in `error` when they make no
/// sense.
bool read_ip_config(const PortRequest& request, IpPortConfig& config, std::string& error);

class IpPort final : public Port {
 public:
  /// `trace` counts drops and must outlive the port.
  IpPort(std::unique_ptr<FrameDevice> device, const IpPortConfig& config, base::Trace& trace);
  ~IpPort() override;

  const PortFacts& facts() const override { return facts_; }
  PacketPool& pool() override { return device_->pool(); }
  std::size_t receive(Instant now, std::span<RxPacket> out) override;
  std::size_t send(Instant now, std::span<TxPacket> in) override;
  std::uint8_t planes_up(Instant) override { return device_->has_link() ? 1 : 0; }
  SendFailure last_send_failure() const override { return send_failure_; }
  Instant next_deadline() const override;
  void on_deadline(Instant now) override;
  int wakeup_fd() const override { return device_->wakeup_fd(); }
  bool arm_wakeup() override { return looped_.size == 0 && device_->arm_wakeup(); }

  FrameDevice& device() { return *device_; }
  /// Gauges.
  const NeighborTable& neighbors() const { return neighbors_; }
  std::size_t waiting() const { return waiting_.occupied(); }

 private:
  static constexpr std::size_t kBurst = 64;
  static constexpr std::size_t kRouteCacheSize = 64;

  /// Where packets for one destination went last time.
  struct Route {
    FabricAddress destination;
    Neighbor* neighbor = nullptr;
    std::uint32_t generation = 0;
  };

  // Sending. The take functions return false when the packet stays with the caller because the
  // device is full.
  bool stage(Instant now, TxPacket& packet);
  std::size_t flush_staged(std::span<TxPacket> in);
  bool take_slow(Instant now, TxPacket& packet);
  bool take_unresolved(Instant now, Neighbor& neighbor, TxPacket& packet);
  bool loop_back(TxPacket& packet);
  Neighbor* neighbor_for(const FabricAddress& destination);
  base::Result<FabricAddress, base::DropReason> next_hop_of(const FabricAddress& destination) const;
  bool is_on_link(const FabricAddress& address) const;
  void drop(Instant now, TxPacket& packet, base::DropReason reason);
  void drop_waiting(Instant now, Neighbor& neighbor, base::DropReason reason);

  // Receiving.
  std::size_t take_looped(std::span<RxPacket> out);
  bool deliver(Instant now, Packet& frame, RxPacket& out);
  void on_arp(Instant now, const ParsedFrame& parsed, Packet frame);
  void on_icmp(Instant now, const ParsedFrame& parsed, Packet frame);
  void on_echo(Instant now, const ParsedFrame& parsed, Packet frame);
  void on_neighbor_message(Instant now, const ParsedFrame& parsed, Packet frame);

  // Address resolution.
  bool on_claim(Instant now, const FabricAddress& who, const MacAddress& mac, Claim claim);
  void run_due(Instant now);
  void ask_resolver(Instant now, const Neighbor& neighbor);
  void poll_resolver(Instant now);
  void on_news(Instant now, const FabricAddress& who, const MacAddress& mac);
  bool solicit(const Neighbor& neighbor);
  bool send_arp(std::uint16_t operation, const MacAddress& to, const FabricAddress& target);
  bool send_neighbor_message(const NeighborMessage& message, const MacAddress& to,
                             const FabricAddress& destination);
  bool send_frame(Packet frame);
  void send_resolved(Instant now);
  void wait_again(Instant now, TxPacket& packet);

  std::unique_ptr<FrameDevice> device_;
  IpPortConfig config_;
  base::Trace& trace_;
  FrameFormat format_;
  PortFacts facts_;
  std::size_t max_payload_;  ///< largest UET packet behind our headers

  NeighborTable neighbors_;
  std::array<Route, kRouteCacheSize> routes_;
  WaitingRoom waiting_;    ///< for address resolution
  WaitingQueue resolved_;  ///< waited, may go now, but the device was full
  Instant retry_resolved_at_ = Instant::never();
  Instant resolver_polled_at_;
  WaitingRoom looped_room_;  ///< packets to ourselves
  WaitingQueue looped_;
  SendFailure send_failure_;  ///< the latest

  std::array<Packet, kBurst> staged_;  ///< built frames on their way to the device
  std::size_t staged_count_ = 0;
  std::array<Packet, kBurst> received_;
  std::uint32_t link_generation_ = 0;
};

}  // namespace uet::net
