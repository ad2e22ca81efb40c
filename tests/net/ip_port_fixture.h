/// Two IpPorts on one wire, A and B, and a clock that only the test moves.
#pragma once

#include <gtest/gtest.h>

#include "lib/net/ip_port.h"

#include <algorithm>
#include <cstring>
#include "tests/net/memory_device.h"

namespace uet::net {

inline FabricAddress address(const char* text) {
  return *FabricAddress::parse(text);
}

struct Host {
  base::Trace trace;
  MemoryDevice* device = nullptr;
  std::unique_ptr<IpPort> port;

  void open(const IpPortConfig& config, std::uint8_t mac_end, std::size_t packets = 2048) {
    auto owned = std::make_unique<MemoryDevice>(MacAddress{2, 0, 0, 0, 0, mac_end}, packets, 1500);
    device = owned.get();
    port = std::make_unique<IpPort>(std::move(owned), config, trace);
  }
};

class IpPortTest : public testing::Test {
 protected:
  static IpPortConfig config_of(const char* text) {
    IpPortConfig c;
    c.address = address(text);
    c.prefix_length = c.address.is_v4() ? 24 : 64;
    return c;
  }

  void open(const IpPortConfig& a, const IpPortConfig& b) {
    a_.open(a, 0xa);
    b_.open(b, 0xb);
    a_.device->connect(*b_.device);
    b_.device->connect(*a_.device);
  }
  void open_v4() { open(config_of("10.0.0.1"), config_of("10.0.0.2")); }
  void open_v6() { open(config_of("fd00::1"), config_of("fd00::2")); }

  static TxPacket make(Host& from, const FabricAddress& to, std::string_view text,
                       std::uint16_t entropy = 777, TosByte tos = TosByte::of(18, 2)) {
    TxPacket tx;
    tx.packet = from.port->pool().allocate();
    std::memcpy(tx.packet.append(text.size()), text.data(), text.size());
    tx.destination = to;
    tx.entropy = entropy;
    tx.tos = tos;
    return tx;
  }

  std::size_t send(Host& from, const FabricAddress& to, std::string_view text) {
    TxPacket tx = make(from, to, text);
    return from.port->send(now_, {&tx, 1});
  }
  std::size_t send(Host& from, const Host& to, std::string_view text) {
    return send(from, to.port->facts().address, text);
  }

  /// Where the next packet to B goes.
  MacAddress mac_of_next() {
    send(a_, b_, "next");
    MacAddress mac;
    std::copy_n(a_.device->sent.back().begin(), mac.size(), mac.begin());
    return mac;
  }
  /// Everything that arrives at `host` now.
  std::vector<RxPacket> receive(Host& host) {
    std::vector<RxPacket> out(64);
    out.resize(host.port->receive(now_, out));
    return out;
  }
  /// Lets both sides talk until nothing moves; what they received ends up in got_a_ and got_b_.
  void settle() {
    for (int i = 0; i < 8; ++i) {
      for (RxPacket& rx : receive(a_)) got_a_.push_back(std::move(rx));
      for (RxPacket& rx : receive(b_)) got_b_.push_back(std::move(rx));
    }
  }
  void advance(Duration d) {
    now_ = now_ + d;
    for (Host* h : {&a_, &b_})
      if (h->port->next_deadline() <= now_) h->port->on_deadline(now_);
  }
  /// A has sent "one" and "two" to B, and hears where B is while its device takes no packet.
  void resolve_while_full() {
    send(a_, b_, "one");
    send(a_, b_, "two");
    receive(b_);
    a_.device->room = 0;
    receive(a_);
  }
  static std::string text_of(const RxPacket& rx) {
    return {rx.packet.bytes().begin(), rx.packet.bytes().end()};
  }
  /// A frame from A to B as it goes over the wire once both know each other.
  Bytes frame_to_b(std::string_view text) {
    send(a_, b_, "hello");
    settle();
    got_b_.clear();
    a_.device->is_cut = true;
    send(a_, b_, text);
    a_.device->is_cut = false;
    return a_.device->sent.back();
  }
  /// Gives B a frame; the reason why it was refused, or kCount when B made a packet of it.
  base::DropReason refusal(Bytes frame) {
    std::array<std::uint64_t, base::kDropReasonCount> before;
    for (std::size_t i = 0; i < before.size(); ++i)
      before[i] = b_.trace.drops(static_cast<base::DropReason>(i));
    b_.device->inject(std::move(frame));
    got_b_.clear();
    for (RxPacket& rx : receive(b_)) got_b_.push_back(std::move(rx));
    for (std::size_t i = 0; i < before.size(); ++i)
      if (b_.trace.drops(static_cast<base::DropReason>(i)) != before[i])
        return static_cast<base::DropReason>(i);
    return base::DropReason::kCount;
  }

  Instant now_ = Instant::from_ns(1'000'000);
  Host a_;
  Host b_;
  std::vector<RxPacket> got_a_;
  std::vector<RxPacket> got_b_;
};

}  // namespace uet::net
