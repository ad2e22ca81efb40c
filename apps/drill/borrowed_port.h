/// A port that belongs to another: so that one port can be captured into one file after the other.
#pragma once

#include "lib/net/port.h"

namespace uet::drill {

class BorrowedPort final : public net::Port {
 public:
  explicit BorrowedPort(net::Port& port) : port_(port) {}

  const net::PortFacts& facts() const override { return port_.facts(); }
  net::PacketPool& pool() override { return port_.pool(); }
  std::size_t receive(base::Instant now, std::span<net::RxPacket> out) override {
    return port_.receive(now, out);
  }
  std::size_t send(base::Instant now, std::span<net::TxPacket> in) override {
    return port_.send(now, in);
  }
  std::uint16_t wire_entropy(std::uint16_t entropy) const override {
    return port_.wire_entropy(entropy);
  }
  std::uint16_t plane_wire_entropy(std::uint16_t entropy, unsigned plane) const override {
    return port_.plane_wire_entropy(entropy, plane);
  }
  base::Instant next_deadline() const override { return port_.next_deadline(); }
  void on_deadline(base::Instant now) override { port_.on_deadline(now); }
  int wakeup_fd() const override { return port_.wakeup_fd(); }
  bool arm_wakeup() override { return port_.arm_wakeup(); }

 private:
  net::Port& port_;
};

}  // namespace uet::drill
