/// A port around another one: passes everything on. Those that derive override what they are for.
#pragma once

#include <memory>
#include <span>
#include <utility>

#include "lib/net/port.h"

namespace uet::net {

class PortWrapper : public Port {
 public:
  const PortFacts& facts() const override { return inner_->facts(); }
  PacketPool& pool() override { return inner_->pool(); }
  std::size_t receive(base::Instant now, std::span<RxPacket> out) override {
    return inner_->receive(now, out);
  }
  std::size_t send(base::Instant now, std::span<TxPacket> in) override {
    return inner_->send(now, in);
  }
  std::size_t send_room(base::Instant now) const override { return inner_->send_room(now); }
  std::uint8_t planes_up(base::Instant now) override { return inner_->planes_up(now); }
  std::size_t plane_room(base::Instant now, unsigned plane) const override {
    return inner_->plane_room(now, plane);
  }
  PlaneCounters plane_counters(unsigned plane) const override {
    return inner_->plane_counters(plane);
  }
  SendFailure last_send_failure() const override { return inner_->last_send_failure(); }
  std::uint16_t wire_entropy(std::uint16_t entropy) const override {
    return inner_->wire_entropy(entropy);
  }
  std::uint16_t plane_wire_entropy(std::uint16_t entropy, unsigned plane) const override {
    return inner_->plane_wire_entropy(entropy, plane);
  }
  Way way_to(base::Instant now, const FabricAddress& destination) override {
    return inner_->way_to(now, destination);
  }
  base::Instant next_deadline() const override { return inner_->next_deadline(); }
  void on_deadline(base::Instant now) override { inner_->on_deadline(now); }
  int wakeup_fd() const override { return inner_->wakeup_fd(); }
  bool arm_wakeup() override { return inner_->arm_wakeup(); }
  void abandon_in_child() override { inner_->abandon_in_child(); }
  const Port& inner() const { return *inner_; }

 protected:
  explicit PortWrapper(std::unique_ptr<Port> inner) : inner_(std::move(inner)) {}
  Port& inner() { return *inner_; }

 private:
  std::unique_ptr<Port> inner_;
};

}  // namespace uet::net
