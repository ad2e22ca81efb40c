#include "sim/sim_port.h"

#include <cstring>
#include <utility>

#include "lib/base/check.h"

namespace uet::sim {

SimPort::SimPort(Simulation& simulation, const WireModel& model, HostId host, std::uint32_t hosts,
                 const SimPortConfig& config, SlabPool& pool)
    : simulation_(simulation),
      model_(model),
      host_(host),
      hosts_(hosts),
      config_(config),
      pool_(pool) {
  facts_.name = "sim:" + std::to_string(host);
  facts_.address = address_of(host);
  facts_.ip_mtu = config.ip_mtu;
  for (std::uint8_t p = 0; p < sinks_.size(); ++p) {
    sinks_[p].port = this;
    sinks_[p].plane = p;
  }
}

SimPort::~SimPort() {
  drop_received();
}

void SimPort::attach(Link& egress) {
  UET_CHECK(attached_ < egress_.size());
  egress_[attached_++] = &egress;
  egress.set_listener(this);
  facts_.planes = attached_;
  facts_.link_rate = base::BitRate::from_bps(facts_.link_rate.bps() + egress.config().rate.bps());
}

std::size_t SimPort::receive(base::Instant, std::span<net::RxPacket> out) {
  std::size_t n = 0;
  while (n < out.size() && !received_.is_empty()) {
    Frame* frame = received_.pop();
    out[n++] = std::move(frame->rx);
    simulation_.frames.release(frame);
  }
  return n;
}

std::size_t SimPort::send_room(base::Instant now) const {
  std::size_t room = 0;
  for (unsigned p = 0; p < attached_; ++p) room += plane_room(now, p);
  return room;
}

std::size_t SimPort::plane_room(base::Instant, unsigned plane) const {
  return egress_[plane]->is_idle() && (attached_ == 1 || egress_[plane]->is_up()) ? 1 : 0;
}

std::uint8_t SimPort::planes_up(base::Instant) {
  if (attached_ == 1) return 1;
  unsigned up = 0;
  for (unsigned p = 0; p < attached_; ++p) up |= (egress_[p]->is_up() ? 1u : 0u) << p;
  return static_cast<std::uint8_t>(up);
}

// With several links a control packet may have to leave by one that is busy; a NIC has a queue for it.
bool SimPort::takes(const net::TxPacket& tx) const {
  if (egress_[plane_of(tx)]->is_idle()) return true;
  return attached_ > 1 && model_.traffic_class(tx.tos) == TrafficClass::kControl;
}

std::size_t SimPort::send(base::Instant, std::span<net::TxPacket> in) {
  std::size_t n = 0;
  while (n < in.size() && takes(in[n])) launch(std::move(in[n++]), facts_.address);
  return n;
}

bool SimPort::send_forged(net::FabricAddress source, net::TxPacket& tx) {
  tx.plane = 0;
  if (!takes(tx)) return false;
  launch(std::move(tx), source);
  return true;
}

void SimPort::launch(net::TxPacket tx, net::FabricAddress source) {
  UET_CHECK(tx.packet);
  const HostId to = host_of(tx.destination);
  if (to >= hosts_) {
    ++dropped_unroutable_;
    unroutable_bytes_ += tx.packet.size();
    tx.packet.reset();
    return;
  }
  Frame* frame = simulation_.frames.acquire();
  const unsigned plane = plane_of(tx);
  frame->wire_bytes = model_.wire_bytes(tx.packet.bytes());
  frame->rx.packet = std::move(tx.packet);
  frame->rx.source = source;
  frame->rx.destination = tx.destination;
  frame->rx.entropy = tx.entropy;
  frame->rx.tos = tx.tos;
  frame->source = host_;
  frame->destination = to;
  frame->flow = std::uint64_t{host_} << 32 | to;
  frame->traffic_class = model_.traffic_class(tx.tos);
  frame->trimmable = model_.is_trimmable(tx.tos);
  ++sent_packets_;
  if (config_.own_buffers) move_to(simulation_.packets_pool, *frame);
  if (observer_ != nullptr) {
    frame->rx.plane = static_cast<std::uint8_t>(plane);
    observer_->on_sent(*frame);
  }
  egress_[plane]->send(frame);
}

void SimPort::on_frame(Frame* frame) {
  if (observer_ != nullptr && observer_->take(frame)) return;
  ++received_packets_;
  TraceHash& hash = simulation_.hash;
  hash.mix(static_cast<std::uint64_t>(simulation_.now().ps()));
  hash.mix(frame->flow ^ std::uint64_t{frame->rx.entropy} << 48 ^
           std::uint64_t{frame->rx.tos.value} << 24);
  const auto bytes = std::as_const(frame->rx.packet).bytes();
  hash.mix(bytes.first(std::min<std::size_t>(bytes.size(), 32)));
  if (observer_ != nullptr) observer_->on_delivered(*frame);
  if (received_.size() >= config_.receive_limit) {
    ++dropped_on_arrival_;
    simulation_.frames.release(frame);
    return;
  }
  // While the pool is made to look empty, the card still has the buffers that it was given before.
  if (config_.own_buffers && !pool_.is_exhausted() && !move_to(pool_, *frame)) {
    ++dropped_on_arrival_;
    simulation_.frames.release(frame);
    return;
  }
  received_.push(frame);
  if (listener_ != nullptr) {
    listener_->on_port_ready();
  } else {
    drop_received();
  }
}

/// Copies the packet into a buffer of `pool` and gives back the one that it was in. False when there is none.
bool SimPort::move_to(net::PacketPool& pool, Frame& frame) {
  net::Packet moved = pool.allocate();
  if (!moved) return false;
  const auto bytes = std::as_const(frame.rx.packet).bytes();
  if (!bytes.empty()) std::memcpy(moved.append(bytes.size()), bytes.data(), bytes.size());
  frame.rx.packet = std::move(moved);
  return true;
}

void SimPort::on_link_idle() {
  if (listener_ != nullptr) listener_->on_port_ready();
}

void SimPort::on_link_changed() {
  if (attached_ > 1 && listener_ != nullptr) listener_->on_port_ready();
}

void SimPort::drop_received() {
  while (!received_.is_empty()) simulation_.frames.release(received_.pop());
}

}  // namespace uet::sim
