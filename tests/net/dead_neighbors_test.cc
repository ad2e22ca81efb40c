// A port beside neighbors that answer no ARP, in a network namespace of its own. [decision 129]
#include <gtest/gtest.h>
#include <net/if.h>
#include <sched.h>

#include <cstdlib>
#include <cstring>
#include <functional>
#include <set>
#include <thread>

#include "lib/udp/neighbor_watch.h"
#include "lib/udp/udp_port.h"

namespace uet::udp {

using base::Duration;
using base::Instant;
using net::FabricAddress;

namespace {

constexpr std::uint16_t kDeadPort = 14795;
/// The kernel has places for 1024 neighbors in all namespaces together, and lets go of those of an old namespace some seconds later.
constexpr unsigned kDead = 8;
constexpr std::size_t kSenders = 4;
/// What a peer waits at most: a millisecond for those that are known not to answer, and the time in which sockets are seen to be stuck.
constexpr Duration kWait = Duration::from_ms(8);
/// What dead neighbors fill the sockets with in these tests, however large the kernel lets them be.
constexpr int kSendBuffer = 32768;

/// The port's time is the test's own: it passes as the test says, while the kernel asks each neighbor for 3 s.
class DeadNeighborsTest : public testing::Test {
 protected:
  /// Runs `body` on a thread in a new network namespace with 10.9.0.1/16 and fd09::1/64 on one end of a veth, and the other end without an address.
  static void in_namespace(const std::function<void()>& body) {
    bool has_namespace = false;
    std::thread([&] {
      has_namespace =
          unshare(CLONE_NEWNET) == 0 &&
          std::system(
              "ip link set lo up && ip link add v0 type veth peer name v1 && "
              "ip addr add 10.9.0.1/16 dev v0 && ip addr add fd09::1/64 dev v0 nodad && "
              "ip addr add 10.9.0.2/32 dev lo && ip addr add fd09::2/128 dev lo nodad && "
              "ip link set v0 up && ip link set v1 up") == 0;
      if (has_namespace) body();
    }).join();
    if (!has_namespace) GTEST_SKIP() << "no network namespace with a veth";
  }
  std::unique_ptr<UdpPort> open(const char* address, const std::string& device = {}) {
    UdpSockets sockets;
    const char* step = "";
    net::PortFacts facts;
    facts.address = *FabricAddress::parse(address);
    facts.udp_port = kDeadPort;
    const UdpSocketsConfig config{.address = facts.address,
                                  .port = kDeadPort,
                                  .device = device,
                                  .senders = kSenders,
                                  .send_buffer_bytes = kSendBuffer};
    if (!open_sockets(config, sockets, step)) return nullptr;
    return std::make_unique<UdpPort>(std::move(sockets), facts,
                                     UdpInterface{device, if_nametoindex(device.c_str())}, 8192,
                                     trace_);
  }
  static FabricAddress dead(unsigned i) { return FabricAddress::from_v4(0x0a09'0100 + i); }
  static FabricAddress dead_v6(unsigned i) {
    std::array<std::uint8_t, 16> bytes = FabricAddress::parse("fd09::1:0")->bytes();
    bytes[15] = static_cast<std::uint8_t>(i);
    return FabricAddress::from_v6(bytes);
  }
  bool send(const FabricAddress& to, std::size_t bytes = 1000) {
    net::TxPacket tx;
    tx.packet = port_->pool().allocate();
    std::memset(tx.packet.append(bytes), 0x77, bytes);
    tx.destination = to;
    tx.entropy = entropy_++;
    return port_->send(now_, {&tx, 1}) == 1;
  }
  /// Sends to dead neighbors until the sockets refuse; false when they take everything.
  template <typename Address>
  bool fill(Address dead_at, unsigned neighbors = kDead) {
    for (unsigned i = 0; i < 4096; ++i)
      if (!send(dead_at(i % neighbors))) return true;
    return false;
  }
  /// Until a packet by each socket is at `peer`, or `longest`; the port's time passes in steps of 100 us.
  Duration wait_for(net::Port& peer, Duration longest = Duration::from_seconds(1)) {
    const Instant began = now_;
    for (unsigned sent = 0, got = 0; got < kSenders && now_ - began < longest;) {
      while (sent < kSenders && send(peer.facts().address)) ++sent;
      got += receive(peer);
      if (got == kSenders) break;
      now_ = now_ + Duration::from_us(100);
      port_->on_deadline(now_);
    }
    return now_ - began;
  }
  std::size_t receive(net::Port& peer) {
    std::array<net::RxPacket, 64> burst;
    const std::size_t n = peer.receive(Instant(), burst);
    for (std::size_t i = 0; i < n; ++i) {
      came_from_.insert(burst[i].entropy);
      burst[i].packet.reset();
    }
    return n;
  }
  /// A port that knows dead neighbors, and the living peer that it learnt of them by.
  std::unique_ptr<UdpPort> make_careful() {
    port_ = open("10.9.0.1");
    auto peer = open("10.9.0.2");
    EXPECT_TRUE(port_ && peer && fill(dead));
    wait_for(*peer);
    return peer;
  }
  std::uint64_t kept() const { return trace_.drops(base::DropReason::kNoNeighbor); }

  base::Trace trace_;
  std::unique_ptr<UdpPort> port_;
  Instant now_ = Instant::from_ns(1'000'000'000);
  std::uint16_t entropy_ = 0;
  std::set<std::uint16_t> came_from_;  ///< source ports at the peer
};

}  // namespace

TEST_F(DeadNeighborsTest, living_peer__waits_milliseconds_for_them_and_then_has_the_port) {
  in_namespace([&] {
    port_ = open("10.9.0.1");
    const auto peer = open("10.9.0.2");
    ASSERT_TRUE(port_ && peer);
    ASSERT_TRUE(fill(dead, 32));
    EXPECT_LE(wait_for(*peer), kWait);
    std::size_t got = 0;
    for (unsigned i = 0; i < 500; ++i) {
      // As many to dead neighbors beside each packet: they no longer get into the sockets.
      ASSERT_TRUE(send(peer->facts().address)) << i;
      ASSERT_TRUE(send(dead(i % 32))) << i;
      got += receive(*peer);
    }
    EXPECT_EQ(got, 500u);
    EXPECT_GE(kept(), 500u);
    EXPECT_EQ(port_->pool().available(), port_->pool().capacity());
  });
}

TEST_F(DeadNeighborsTest, packets__come_from_the_same_source_ports_afterwards) {
  in_namespace([&] {
    port_ = open("10.9.0.1");
    const auto peer = open("10.9.0.2");
    ASSERT_TRUE(port_ && peer);
    std::set<std::uint16_t> ports;
    for (std::uint16_t e = 0; e < kSenders; ++e) ports.insert(port_->wire_entropy(e));
    ASSERT_TRUE(fill(dead));
    EXPECT_LE(wait_for(*peer), kWait);
    EXPECT_EQ(came_from_, ports);
    for (std::uint16_t e = 0; e < kSenders; ++e) EXPECT_EQ(ports.count(port_->wire_entropy(e)), 1u);
  });
}

TEST_F(DeadNeighborsTest, neighbors_of_ipv6__are_known_as_well) {
  in_namespace([&] {
    port_ = open("fd09::1");
    const auto peer = open("fd09::2");
    ASSERT_TRUE(port_ && peer);
    ASSERT_TRUE(fill(dead_v6));
    EXPECT_LE(wait_for(*peer), kWait);
    const std::uint64_t before = kept();
    EXPECT_TRUE(send(dead_v6(1)));
    EXPECT_EQ(kept(), before + 1);
  });
}

TEST_F(DeadNeighborsTest, port_of_a_plane__finds_those_behind_its_interface) {
  in_namespace([&] {
    port_ = open("10.9.0.1", "v0");
    ASSERT_TRUE(port_);
    ASSERT_TRUE(fill(dead));
    const std::uint64_t before = kept();
    for (int i = 0; i < 20; ++i) {
      now_ = now_ + Duration::from_us(100);
      port_->on_deadline(now_);
    }
    EXPECT_TRUE(send(dead(1)));
    EXPECT_GT(kept(), before);
  });
}

TEST_F(DeadNeighborsTest, neighbor_that_comes_to_life__gets_packets_at_the_next_look) {
  in_namespace([&] {
    const auto peer = make_careful();
    const std::uint64_t before = kept();
    ASSERT_TRUE(send(dead(3)));
    EXPECT_EQ(kept(), before + 1);
    ASSERT_EQ(std::system("ip neigh replace 10.9.1.3 lladdr 02:00:00:00:00:03 dev v0"), 0);
    now_ = now_ + NeighborWatch::kFresh;
    ASSERT_TRUE(send(dead(3)));
    EXPECT_EQ(kept(), before + 1);
    ASSERT_TRUE(send(dead(4)));
    EXPECT_EQ(kept(), before + 2);
  });
}

TEST_F(DeadNeighborsTest, those_that_get_no_more_packets__are_forgotten) {
  in_namespace([&] {
    const auto peer = make_careful();
    now_ = now_ + NeighborWatch::kForgetAfter;
    const std::uint64_t before = kept();
    ASSERT_TRUE(send(dead(3)));
    EXPECT_EQ(kept(), before);
  });
}

/// Nothing says that a neighbor is dead, however long it is full.
TEST_F(DeadNeighborsTest, slow_device__keeps_its_packets) {
  in_namespace([&] {
    port_ = open("10.9.0.1");
    ASSERT_TRUE(port_);
    if (std::system("ip neigh add 10.9.1.0 lladdr 02:00:00:00:00:03 dev v0 && "
                    "tc qdisc add dev v0 root tbf rate 8kbit burst 2000 limit 10000000") != 0)
      GTEST_SKIP() << "no tc";
    ASSERT_TRUE(fill([](unsigned) { return dead(0); }));
    for (int i = 0; i < 5000; ++i) {
      now_ = now_ + Duration::from_us(100);
      port_->on_deadline(now_);
    }
    EXPECT_EQ(port_->send_room(now_), 0u);
    EXPECT_EQ(kept(), 0u);
  });
}

TEST_F(DeadNeighborsTest, sockets__are_exchanged_so_often_and_no_more) {
  in_namespace([&] {
    port_ = open("10.9.0.1");
    const auto peer = open("10.9.0.2");
    ASSERT_TRUE(port_ && peer);
    unsigned first = 0;
    const auto strangers = [&](unsigned i) { return dead(first + i); };
    for (unsigned i = 0; i < NeighborWatch::kMostExchanges; ++i, first += kDead) {
      ASSERT_TRUE(fill(strangers)) << i;
      EXPECT_LE(wait_for(*peer), kWait) << i;
    }
    ASSERT_TRUE(fill(strangers));
    EXPECT_EQ(wait_for(*peer, Duration::from_ms(50)), Duration::from_ms(50));
    now_ = now_ + NeighborWatch::kExchangePeriod;
    EXPECT_LE(wait_for(*peer), kWait);
  });
}

}  // namespace uet::udp
