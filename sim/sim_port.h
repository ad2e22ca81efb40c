/// The port of a simulated host: packets of the endpoint become frames of the fabric and back.
#pragma once

#include <array>
#include <cstdint>

#include "lib/net/port.h"
#include "sim/frame.h"
#include "sim/link.h"
#include "sim/simulation.h"
#include "sim/slab_pool.h"
#include "sim/wire_model.h"

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

/// Sees every packet that reaches a host, and those that it sends.
class FrameObserver {
 public:
  virtual ~FrameObserver() = default;
  virtual void on_delivered(const Frame& frame) = 0;
  /// Its plane is in `frame.rx.plane`.
  virtual void on_sent(const Frame& frame) { (void)frame; }
  /// Before on_delivered(). True: the observer keeps the frame, and hands it to the port's sink later.
  virtual bool take(Frame* frame) {
    (void)frame;
    return false;
  }
};

struct SimPortConfig {
  std::size_t ip_mtu = 4422;            ///< payload MTU 4096 with everything around it
  std::size_t receive_limit = 1 << 20;  ///< frames that wait for the endpoint; more are dropped
  /// A packet uses a buffer of a host only while it is there, as with a network card: the sender has its buffer back once the
  /// packet is on the wire, and what arrives without a buffer of the receiver is lost. Else a packet keeps its sender's
  /// buffer to the end, which is quicker and does not matter while pools are large.
  bool own_buffers = false;
};

/// Sends one packet at a time by each of its links (fabric planes): the next is taken when the last
/// bit of the one before has left, so that the endpoint decides as late as real hardware would let
/// it. With several links it sees which of them are up; a single one says nothing, as before a
/// laser dies unnoticed.
class SimPort final : public net::Port, public FrameSink, public LinkListener {
 public:
  SimPort(Simulation& simulation, const WireModel& model, HostId host, std::uint32_t hosts,
          const SimPortConfig& config, SlabPool& pool);
  ~SimPort() override;

  /// A link to the fabric, once for each plane in order; must be called before use. The links must
  /// outlive the port's last send.
  void attach(Link& egress);
  /// Where the fabric of `plane` delivers.
  FrameSink& sink(unsigned plane) { return sinks_[plane]; }
  void set_listener(PortListener* listener) { listener_ = listener; }
  void set_observer(FrameObserver* observer) { observer_ = observer; }
  FrameObserver* observer() const { return observer_; }

  // net::Port
  const net::PortFacts& facts() const override { return facts_; }
  net::PacketPool& pool() override { return pool_; }
  std::size_t receive(base::Instant now, std::span<net::RxPacket> out) override;
  std::size_t send(base::Instant now, std::span<net::TxPacket> in) override;
  std::size_t send_room(base::Instant now) const override;
  std::uint8_t planes_up(base::Instant now) override;
  std::size_t plane_room(base::Instant now, unsigned plane) const override;

  // From the fabric.
  void on_frame(Frame* frame) override;
  void on_link_idle() override;
  void on_link_changed() override;

  /// As send(), one packet, under another address than this host's: what an attacker puts on the wire. False when the link of
  /// plane 0 is busy.
  bool send_forged(net::FabricAddress source, net::TxPacket& tx);

  HostId host() const { return host_; }
  SlabPool& slab_pool() { return pool_; }
  Link& egress(unsigned plane = 0) { return *egress_[plane]; }
  unsigned planes() const { return facts_.planes; }
  bool has_received() const { return !received_.is_empty(); }
  void drop_received();

  std::uint64_t sent_packets() const { return sent_packets_; }
  std::uint64_t received_packets() const { return received_packets_; }
  /// Packets that came and found `receive_limit` others waiting, or no buffer.
  std::uint64_t dropped_on_arrival() const { return dropped_on_arrival_; }
  /// Packets to addresses that no host has, and their bytes without headers of IP and below.
  std::uint64_t dropped_unroutable() const { return dropped_unroutable_; }
  std::uint64_t unroutable_bytes() const { return unroutable_bytes_; }

 private:
  /// Notes by which plane a frame came.
  struct PlaneSink final : FrameSink {
    SimPort* port = nullptr;
    std::uint8_t plane = 0;
    void on_frame(Frame* frame) override {
      frame->rx.plane = plane;
      port->on_frame(frame);
    }
  };
  void launch(net::TxPacket tx, net::FabricAddress source);
  bool takes(const net::TxPacket& tx) const;
  unsigned plane_of(const net::TxPacket& tx) const { return tx.plane < attached_ ? tx.plane : 0; }
  bool move_to(net::PacketPool& pool, Frame& frame);

  Simulation& simulation_;
  const WireModel& model_;
  HostId host_;
  std::uint32_t hosts_;
  SimPortConfig config_;
  SlabPool& pool_;
  net::PortFacts facts_;
  std::array<Link*, net::kMaxPlanes> egress_{};
  std::array<PlaneSink, net::kMaxPlanes> sinks_;
  std::uint8_t attached_ = 0;
  PortListener* listener_ = nullptr;
  FrameObserver* observer_ = nullptr;
  FrameFifo received_;
  std::uint64_t sent_packets_ = 0, received_packets_ = 0, dropped_on_arrival_ = 0,
                dropped_unroutable_ = 0, unroutable_bytes_ = 0;
};

}  // namespace uet::sim
