// Several ports as the planes of one endpoint: who gets what, what waits, and which plane is not used.

#include "lib/net/plane_port.h"

#include "lib/net/port_name.h"
#include "tests/net/ip_port_fixture.h"

namespace uet::net {

namespace {

/// Two hosts with two planes; plane p of one is wired to plane p of the other.
class PlanePortTest : public testing::Test {
 protected:
  struct End {
    base::Trace trace;
    std::array<MemoryDevice*, 2> devices{};
    std::unique_ptr<PlanePort> port;
  };

  PlanePortTest() {
    open(a_, "10.0.0.1", 0xa);
    open(b_, "10.0.0.2", 0xb);
    for (std::size_t p = 0; p < 2; ++p) {
      a_.devices[p]->connect(*b_.devices[p]);
      b_.devices[p]->connect(*a_.devices[p]);
    }
    // Both ends learn who is behind the address, on each plane.
    for (std::uint8_t p = 0; p < 2; ++p) EXPECT_EQ(send(p, 1), 1u);
    EXPECT_EQ(arrived_at_b().size(), 2u);
  }

  static void open(End& end, const char* address_text, std::uint8_t mac_end) {
    std::vector<std::unique_ptr<Port>> planes;
    for (std::uint8_t p = 0; p < 2; ++p) {
      const std::size_t mtu = p == 0 ? 1500 : 1400;
      auto device = std::make_unique<MemoryDevice>(MacAddress{2, 0, 0, 0, p, mac_end}, 512, mtu);
      end.devices[p] = device.get();
      IpPortConfig config;
      config.name = "plane" + std::to_string(p);
      config.address = address(address_text);
      planes.push_back(std::make_unique<IpPort>(std::move(device), config, end.trace));
    }
    end.port = std::make_unique<PlanePort>(std::move(planes), end.trace);
  }

  TxPacket make(std::uint8_t plane, std::uint8_t text) {
    TxPacket tx;
    tx.packet = a_.port->pool().allocate();
    std::memset(tx.packet.append(32), text, 32);
    tx.destination = b_.port->facts().address;
    tx.plane = plane;
    return tx;
  }
  std::size_t send(std::uint8_t plane, std::uint8_t text) {
    TxPacket tx = make(plane, text);
    return a_.port->send(now_, {&tx, 1});
  }
  std::vector<RxPacket> arrived_at_b() {
    std::vector<RxPacket> all;
    for (int i = 0; i < 8; ++i) {
      std::array<RxPacket, 64> burst;
      a_.port->receive(now_, burst);  // answers of ARP
      const std::size_t n = b_.port->receive(now_, burst);
      for (std::size_t k = 0; k < n; ++k) all.push_back(std::move(burst[k]));
    }
    return all;
  }
  void advance(Duration d) {
    now_ = now_ + d;
    if (a_.port->next_deadline() <= now_) a_.port->on_deadline(now_);
  }

  Instant now_ = Instant::from_ns(1'000'000);
  End a_, b_;
};

}  // namespace

TEST(PortName, planes_of__splits_only_in_front_of_another_port) {
  using Names = std::vector<std::string>;
  EXPECT_EQ(planes_of("udp"), Names{"udp"});
  EXPECT_EQ(planes_of("udp:eth0+udp:eth1"), (Names{"udp:eth0", "udp:eth1"}));
  EXPECT_EQ(planes_of("dpdk:net_memif0,socket=/tmp/a+b + dpdk:net_memif1"),
            (Names{"dpdk:net_memif0,socket=/tmp/a+b", "dpdk:net_memif1"}));
  EXPECT_EQ(planes_of("udp:eth0+udp"), (Names{"udp:eth0", "udp"}));
  EXPECT_EQ(planes_of("dpdk:a,socket=/tmp/x+udpsocket"), Names{"dpdk:a,socket=/tmp/x+udpsocket"});
  EXPECT_EQ(planes_of("+"), Names{"+"});
}

TEST(PortName, why_not_planes__names_what_is_wrong) {
  const auto why = [](const std::string& spec) { return why_not_planes(planes_of(spec)); };
  EXPECT_EQ(why("udp"), "");
  EXPECT_EQ(why("udp:eth0+udp:eth1,sockets=4"), "");
  EXPECT_EQ(why("dpdk:net_memif0,role=server+dpdk:net_memif1,role=server"), "");
  EXPECT_NE(why("udp:eth0+dpdk:net_memif0").find("all be udp"), std::string::npos);
  EXPECT_NE(why("udp:eth0+udp").find("names its interface"), std::string::npos);
  EXPECT_NE(why("udp:eth0+udp:eth0,sockets=2").find("two planes use eth0"), std::string::npos);
  std::string many = "udp:e0";
  for (int i = 1; i < 9; ++i) many += "+udp:e" + std::to_string(i);
  EXPECT_NE(why(many).find("9 planes"), std::string::npos);
}

TEST_F(PlanePortTest, facts__are_those_of_all_planes_together) {
  const PortFacts& facts = a_.port->facts();
  EXPECT_EQ(facts.planes, 2);
  EXPECT_EQ(facts.name, "plane0+plane1");
  EXPECT_EQ(facts.ip_mtu, 1400u);
  EXPECT_EQ(facts.address, address("10.0.0.1"));
}

TEST_F(PlanePortTest, link_rate__of_a_plane_that_tells_none_is_that_of_the_slowest) {
  const auto sum_of = [&](std::array<std::uint64_t, 3> rates) {
    std::vector<std::unique_ptr<Port>> planes;
    for (const std::uint64_t gbps : rates) {
      auto device = std::make_unique<MemoryDevice>(MacAddress{2}, 64, 1500);
      device->set_link_rate(base::BitRate::from_gbps(gbps));
      IpPortConfig config;
      config.address = address("10.0.0.1");
      planes.push_back(std::make_unique<IpPort>(std::move(device), config, a_.trace));
    }
    return PlanePort(std::move(planes), a_.trace).facts().link_rate;
  };
  EXPECT_EQ(sum_of({100, 100, 200}), base::BitRate::from_gbps(400));
  EXPECT_EQ(sum_of({0, 100, 200}), base::BitRate::from_gbps(400));
  EXPECT_EQ(sum_of({200, 0, 0}), base::BitRate::from_gbps(600));
  EXPECT_EQ(sum_of({0, 0, 0}).bps(), 0u);
}

TEST_F(PlanePortTest, send__uses_the_plane_of_the_packet_and_receive_tells_it) {
  std::vector<TxPacket> burst;
  for (std::uint8_t i = 0; i < 6; ++i) burst.push_back(make(i % 2, i));
  EXPECT_EQ(a_.port->send(now_, burst), 6u);
  const auto got = arrived_at_b();
  ASSERT_EQ(got.size(), 6u);
  for (const RxPacket& rx : got) EXPECT_EQ(rx.plane, rx.packet.data()[0] % 2);
  for (unsigned p = 0; p < 2; ++p) {
    EXPECT_EQ(a_.port->plane_counters(p).sent, 4u);
    EXPECT_EQ(b_.port->plane_counters(p).received, 4u);
  }
}

TEST_F(PlanePortTest, send__a_full_plane_does_not_hold_up_the_other) {
  a_.devices[1]->room = 0;
  std::vector<TxPacket> burst;
  for (std::uint8_t i = 0; i < 6; ++i) burst.push_back(make(i % 2, i));
  EXPECT_EQ(a_.port->send(now_, burst), 6u);
  EXPECT_EQ(arrived_at_b().size(), 3u);
  EXPECT_EQ(a_.port->plane_room(now_, 0), PlanePort::kWaiting);
  EXPECT_EQ(a_.port->plane_room(now_, 1), 0u);
  EXPECT_EQ(a_.port->plane_counters(1).waiting, 3u);
  // It has room again: what waited leaves, in order.
  a_.devices[1]->room = SIZE_MAX;
  EXPECT_LE(a_.port->next_deadline(), now_ + Duration::from_us(20));
  advance(Duration::from_us(20));
  const auto late = arrived_at_b();
  ASSERT_EQ(late.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(late[i].packet.data()[0], 2 * i + 1);
  EXPECT_EQ(a_.port->plane_room(now_, 1), PlanePort::kWaiting);
}

TEST_F(PlanePortTest, send__takes_no_more_for_a_plane_than_may_wait) {
  a_.devices[1]->room = 0;
  std::size_t taken = 0;
  while (taken < 1000 && send(1, 7) == 1) ++taken;
  EXPECT_EQ(taken, PlanePort::kWaiting);
  EXPECT_EQ(send(0, 7), 1u);
}

TEST_F(PlanePortTest, planes_up__a_lost_link_is_seen_and_its_packets_are_dropped) {
  EXPECT_EQ(a_.port->planes_up(now_), 0b11);
  a_.devices[1]->room = 0;
  send(1, 1);
  send(1, 2);
  a_.devices[1]->is_up = false;
  advance(Duration::from_ms(10));
  EXPECT_EQ(a_.port->planes_up(now_), 0b01);
  EXPECT_EQ(a_.trace.drops(base::DropReason::kLinkDown), 2u);
  EXPECT_EQ(a_.port->plane_counters(1).dropped, 2u);
  EXPECT_EQ(a_.port->plane_counters(1).times_down, 1u);
  EXPECT_FALSE(a_.port->plane_counters(1).is_up);
  // What comes for it all the same is dropped at once, and what it has received still counts.
  EXPECT_EQ(send(1, 3), 1u);
  EXPECT_EQ(a_.trace.drops(base::DropReason::kLinkDown), 3u);
  a_.devices[1]->is_up = true;
  a_.devices[1]->room = SIZE_MAX;
  advance(Duration::from_ms(10));
  EXPECT_EQ(a_.port->planes_up(now_), 0b11);
  EXPECT_EQ(send(1, 4), 1u);
  EXPECT_EQ(arrived_at_b().size(), 1u);
}

TEST_F(PlanePortTest, planes_up__a_plane_that_refuses_everything_while_another_works_is_not_used) {
  a_.devices[1]->room = 0;
  send(1, 1);
  for (int i = 0; i < 30; ++i) {
    advance(Duration::from_ms(10));
    send(0, 2);
    a_.port->planes_up(now_);
  }
  EXPECT_EQ(a_.port->planes_up(now_), 0b01);
  EXPECT_EQ(a_.port->plane_counters(1).waiting, 1u);  // it goes on trying
  a_.devices[1]->room = SIZE_MAX;
  advance(Duration::from_ms(10));
  advance(Duration::from_ms(10));
  EXPECT_EQ(a_.port->planes_up(now_), 0b11);
}

TEST_F(PlanePortTest, planes_up__a_peer_that_stops_everything_costs_no_plane) {
  for (std::uint8_t p = 0; p < 2; ++p) {
    a_.devices[p]->room = 0;
    send(p, 1);
  }
  for (int i = 0; i < 100; ++i) {
    advance(Duration::from_ms(10));
    EXPECT_EQ(a_.port->planes_up(now_), 0b11);
  }
}

TEST_F(PlanePortTest, receive__a_flood_on_one_plane_does_not_starve_the_other) {
  for (int i = 0; i < 40; ++i) EXPECT_EQ(send(0, 1), 1u);
  EXPECT_EQ(send(1, 2), 1u);
  unsigned bursts = 0;
  for (bool has_come = false; !has_come && bursts < 3; ++bursts) {
    std::array<RxPacket, 8> burst;
    const std::size_t n = b_.port->receive(now_, burst);
    for (std::size_t i = 0; i < n; ++i) has_come = has_come || burst[i].plane == 1;
  }
  EXPECT_LE(bursts, 2u);
}

TEST_F(PlanePortTest, close__packets_that_wait_on_one_plane_go_back_to_the_pool_of_another) {
  std::size_t missing = SIZE_MAX;
  a_.devices[0]->missing_at_end = &missing;
  a_.devices[1]->room = 0;
  for (int i = 0; i < 10; ++i) send(1, 1);
  ASSERT_EQ(a_.port->plane_counters(1).waiting, 10u);
  a_.port.reset();
  EXPECT_EQ(missing, 0u);
}

}  // namespace uet::net
