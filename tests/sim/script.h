/// A user of a simulated port that follows a script instead of a protocol.
#pragma once

#include <deque>
#include <functional>
#include <vector>

#include "sim/node.h"

namespace uet::sim {

/// Sends what is queued as fast as the port takes it, and shows what it receives to a function.
class Script final : public Actor {
 public:
  Script(Simulation& simulation, SimPort& port)
      : node(simulation, port), simulation_(simulation), port_(port) {
    node.set_actor(this);
  }

  struct Send {
    HostId to;
    std::size_t bytes;
    bool control = false;
    std::uint16_t entropy = 0;
    bool trimmable = true;
  };
  void queue(const Send& send) { to_send_.push_back(send); }

  bool turn(base::Instant now) override {
    bool did = false;
    net::RxPacket rx[8];
    const std::size_t n = port_.receive(now, rx);
    for (std::size_t i = 0; i < n; ++i) {
      did = true;
      ++received;
      arrivals.push_back(simulation_.now());
      if (on_packet) on_packet(rx[i]);
    }
    while (!to_send_.empty() && port_.send_room(now) > 0) {
      const Send s = to_send_.front();
      to_send_.pop_front();
      net::TxPacket tx;
      tx.packet = port_.pool().allocate();
      if (!tx.packet) break;
      std::uint8_t* p = tx.packet.append(s.bytes);
      std::fill_n(p, s.bytes, static_cast<std::uint8_t>(0));
      // RUD_REQ with a standard request, or ACK without response. [WIRE 4.1]
      p[0] = s.control ? 7 << 3 : 2 << 3 | 1;
      p[1] = s.control ? 0 : 0x80;
      tx.destination = address_of(s.to);
      tx.entropy = s.entropy;
      const std::uint8_t dscp = s.control ? 46 : s.trimmable ? 18 : 0;
      tx.tos = net::TosByte::of(dscp, s.control ? 0 : 2);
      EXPECT_EQ(port_.send(now, {&tx, 1}), 1u);
      did = true;
    }
    return did;
  }
  base::Instant next_deadline() const override { return base::Instant::never(); }

  /// UET bytes of a data packet that carries `payload`.
  static constexpr std::size_t data_bytes(std::size_t payload) { return 12 + 44 + payload; }

  Node node;
  std::uint64_t received = 0;
  std::vector<SimTime> arrivals;
  std::function<void(net::RxPacket&)> on_packet;

 private:
  Simulation& simulation_;
  SimPort& port_;
  std::deque<Send> to_send_;
};

}  // namespace uet::sim
