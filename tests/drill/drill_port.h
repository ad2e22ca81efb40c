/// The wire between the endpoint under test and the script.
#pragma once

#include <deque>
#include <span>
#include <vector>

#include "lib/base/byte_cursor.h"
#include "lib/net/port.h"
#include "sim/slab_pool.h"

namespace uet::drill {

class DrillPort final : public net::Port {
  static constexpr std::uint32_t kNetwork = 0x0a000000;  ///< 10.0.0.0
  sim::SlabPool pool_;      ///< what the endpoint sends from; outlives every packet below
  sim::SlabPool arrivals_;  ///< what arrives is in buffers of its own

 public:
  DrillPort() : pool_(8192, 9000), arrivals_(1024, 9000) {
    facts_.name = "drill";
    facts_.address = address_of(1);
    facts_.ip_mtu = 9000;
    facts_.link_rate = base::BitRate::from_gbps(100);
  }
  /// Hosts are numbered: the endpoint is 1, its peer 2, strangers from 3.
  static net::FabricAddress address_of(std::uint64_t host) {
    return net::FabricAddress::from_v4(kNetwork + static_cast<std::uint32_t>(host));
  }
  static std::uint64_t host_of(const net::FabricAddress& address) {
    return base::load_be<std::uint32_t>(address.bytes().data() + 12) - kNetwork;
  }

  const net::PortFacts& facts() const override { return facts_; }
  net::PacketPool& pool() override { return pool_; }
  std::size_t receive(base::Instant, std::span<net::RxPacket> out) override {
    std::size_t n = 0;
    while (n < out.size() && !in_.empty()) {
      out[n++] = std::move(in_.front());
      in_.pop_front();
    }
    return n;
  }
  std::size_t send(base::Instant, std::span<net::TxPacket> packets) override {
    for (net::TxPacket& p : packets) sent.push_back(std::move(p));
    return packets.size();
  }

  void inject(std::span<const std::uint8_t> bytes, std::uint64_t from, net::TosByte tos,
              std::uint16_t entropy) {
    net::RxPacket rx;
    rx.packet = arrivals_.allocate();
    if (!rx.packet) return;
    if (!bytes.empty()) std::copy(bytes.begin(), bytes.end(), rx.packet.append(bytes.size()));
    rx.source = address_of(from);
    rx.destination = facts_.address;
    rx.tos = tos;
    rx.entropy = entropy;
    in_.push_back(std::move(rx));
  }
  /// Buffers that the endpoint holds, of either kind.
  std::size_t buffers_in_use() const {
    return pool_.capacity() - pool_.available() - sent.size() - held_.size() +
           arrivals_.capacity() - arrivals_.available();
  }
  bool has_arrivals() const { return !in_.empty(); }

  /// The port takes `packets` more and then nothing: every other buffer is in use elsewhere.
  void leave_room_for(std::uint64_t packets) {
    for (net::Packet p = pool_.allocate(); p; p = pool_.allocate()) held_.push_back(std::move(p));
    for (; packets > 0 && !held_.empty(); --packets) held_.pop_back();
  }
  void drain() { held_.clear(); }

  std::deque<net::TxPacket> sent;

 private:
  net::PortFacts facts_;
  std::deque<net::RxPacket> in_;
  std::vector<net::Packet> held_;
};

}  // namespace uet::drill
