/// The port of a simulated host: packets of the endpoint become frames of the fabric and back.
#pragma once

#include <cstdint>

#include "lib/net/port.h"
#include "sim/frame.h"
#include "sim/link.h"
#include "sim/slab_pool.h"
#include "sim/wire_model.h"
#include "sim/world.h"

namespace uet::sim {

/// Fabric address of a host: 10.0.0.1 upwards.
constexpr net::FabricAddress address_of(HostId host) {
  return net::FabricAddress::from_v4(0x0a000001u + host);
}
constexpr HostId host_of(net::FabricAddress address) {
  return address.v4() - 0x0a000001u;
}

/// Told when a port has something for its endpoint: a packet, or room to send.
class PortListener {
 public:
  virtual ~PortListener() = default;
  virtual void on_port_ready() = 0;
};

/// Sees every packet that reaches a host.
class FrameObserver {
 public:
  virtual ~FrameObserver() = default;
  virtual void on_delivered(const Frame& frame) = 0;
};

struct SimPortConfig {
  std::size_t ip_mtu = 4422;            ///< payload MTU 4096 with everything around it
  std::size_t receive_limit = 1 << 20;  ///< frames that wait for the endpoint; more are dropped
};

/// Sends one packet at a time: the next is taken when the last bit of the one before has left, so
/// that the endpoint decides as late as real hardware would let it.
class SimPort final : public net::Port, public FrameSink, public LinkListener {
 public:
  SimPort(World& world, const WireModel& model, HostId host, std::uint32_t hosts,
          const SimPortConfig& config, SlabPool& pool);
  ~SimPort() override;

  /// The link to the fabric; must be called before use. The link must outlive the port's last send.
  void attach(Link& egress);
  void set_listener(PortListener* listener) { listener_ = listener; }
  void set_observer(FrameObserver* observer) { observer_ = observer; }

  // net::Port
  const net::PortFacts& facts() const override { return facts_; }
  net::PacketPool& pool() override { return pool_; }
  std::size_t receive(base::Instant now, std::span<net::RxPacket> out) override;
  std::size_t send(base::Instant now, std::span<net::TxPacket> in) override;
  std::size_t send_room(base::Instant now) const override;

  // From the fabric.
  void on_frame(Frame* frame) override;
  void on_link_idle() override;

  HostId host() const { return host_; }
  SlabPool& slab_pool() { return pool_; }
  Link& egress() { return *egress_; }
  bool has_received() const { return !received_.is_empty(); }
  void drop_received();

  std::uint64_t sent_packets() const { return sent_packets_; }
  std::uint64_t received_packets() const { return received_packets_; }
  std::uint64_t dropped_full() const { return dropped_full_; }
  std::uint64_t dropped_unroutable() const { return dropped_unroutable_; }

 private:
  void launch(net::TxPacket tx);

  World& world_;
  const WireModel& model_;
  HostId host_;
  std::uint32_t hosts_;
  SimPortConfig config_;
  SlabPool& pool_;
  net::PortFacts facts_;
  Link* egress_ = nullptr;
  PortListener* listener_ = nullptr;
  FrameObserver* observer_ = nullptr;
  FrameFifo received_;
  std::uint64_t sent_packets_ = 0, received_packets_ = 0, dropped_full_ = 0,
                dropped_unroutable_ = 0;
};

}  // namespace uet::sim
