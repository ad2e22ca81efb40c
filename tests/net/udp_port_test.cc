#include "lib/udp/udp_port.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <set>
#include <thread>

#include "lib/udp/local_addresses.h"
#include "tests/net/scripted_interfaces.h"

namespace uet::udp {

using base::Instant;
using net::FabricAddress;

namespace {

// Away from the port of real endpoints on the machine that runs the tests.
constexpr std::uint16_t kTestPort = 14793;

FabricAddress address(const char* text) {
  return *FabricAddress::parse(text);
}

net::PortRequest request_for(const std::string& spec) {
  net::PortRequest request;
  request.spec = spec;
  request.udp_port = kTestPort;
  request.packets = 512;
  return request;
}

class UdpPortTest : public testing::Test {
 protected:
  std::unique_ptr<net::Port> open(const std::string& spec) { return open(request_for(spec)); }
  std::unique_ptr<net::Port> open(const net::PortRequest& request) {
    error_.clear();
    return open_udp_port(request, trace_, error_);
  }
  static net::TxPacket make(net::Port& from, const FabricAddress& to, std::size_t bytes,
                            std::uint16_t entropy) {
    net::TxPacket tx;
    tx.packet = from.pool().allocate();
    std::memset(tx.packet.append(bytes), 0x77, bytes);
    tx.destination = to;
    tx.entropy = entropy;
    tx.tos = net::TosByte::of(46, 3);
    return tx;
  }
  /// At least `count` packets, or what came within a second.
  static std::vector<net::RxPacket> receive(net::Port& port, std::size_t count) {
    std::vector<net::RxPacket> all;
    for (int tries = 0; tries < 1000 && all.size() < count; ++tries) {
      std::array<net::RxPacket, 64> burst;
      const std::size_t n = port.receive(Instant(), burst);
      for (std::size_t i = 0; i < n; ++i) all.push_back(std::move(burst[i]));
      if (n == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return all;
  }

  base::Trace trace_;
  std::string error_;
};

}  // namespace

TEST_F(UdpPortTest, send__delivers_with_tos_and_source_port) {
  auto a = open("udp:127.0.0.2");
  auto b = open("udp:127.0.0.3");
  ASSERT_TRUE(a && b) << error_;
  EXPECT_EQ(a->facts().ip_mtu, 65536u);
  std::vector<net::TxPacket> burst;
  for (std::uint16_t i = 0; i < 48; ++i)
    burst.push_back(make(*a, address("127.0.0.3"), 100u + i, i));
  EXPECT_EQ(a->send(Instant(), burst), burst.size());
  const auto got = receive(*b, burst.size());
  ASSERT_EQ(got.size(), burst.size());
  std::set<std::uint16_t> ports;
  for (const net::RxPacket& rx : got) {
    EXPECT_EQ(rx.source, address("127.0.0.2"));
    EXPECT_EQ(rx.destination, address("127.0.0.3"));
    EXPECT_EQ(rx.tos.value, net::TosByte::of(46, 3).value);
    // The size tells which packet it is, and so which entropy it was sent with.
    EXPECT_EQ(rx.entropy, a->wire_entropy(static_cast<std::uint16_t>(rx.packet.size() - 100)));
    ports.insert(rx.entropy);
  }
  EXPECT_EQ(ports.size(), 8u);
  EXPECT_EQ(a->pool().available(), a->pool().capacity());
}

// Who polls a quiet port wants the one packet that comes, and pays for no look behind it.
TEST_F(UdpPortTest, receive__takes_one_in_a_lull_and_all_behind_it_or_after_a_pause) {
  auto a = open("udp:127.0.0.2");
  auto b = open("udp:127.0.0.3");
  ASSERT_TRUE(a && b) << error_;
  const auto send_five = [&] {
    std::array<net::TxPacket, 5> burst;
    for (net::TxPacket& tx : burst) tx = make(*a, address("127.0.0.3"), 100, 0);
    for (net::TxPacket& tx : burst) EXPECT_EQ(a->send(Instant(), {&tx, 1}), 1u);
  };
  const auto receive_at = [&](Instant now) {
    std::array<net::RxPacket, 32> burst;
    return b->receive(now, burst);
  };
  Instant now = Instant::from_ns(1'000'000);
  const auto soon = base::Duration::from_us(1), pause = base::Duration::from_us(100);
  send_five();
  EXPECT_EQ(receive_at(now), 5u);
  EXPECT_EQ(receive_at(now = now + soon), 0u);
  send_five();
  EXPECT_EQ(receive_at(now = now + soon), 1u);
  EXPECT_EQ(receive_at(now = now + soon), 4u);
  EXPECT_EQ(receive_at(now = now + soon), 0u);
  send_five();
  EXPECT_EQ(receive_at(now = now + pause), 5u);
}

// Processes that share an address are told apart by their UDP ports. [decision 168]
TEST_F(UdpPortTest, send__reaches_each_of_those_that_share_an_address) {
  const FabricAddress host = address("127.0.0.2");
  const std::array<FabricAddress, 3> addresses = {host, host.with_udp_port(kTestPort + 1),
                                                  host.with_udp_port(kTestPort + 2)};
  std::vector<std::unique_ptr<net::Port>> ports;
  for (const FabricAddress& at : addresses) {
    net::PortRequest request = request_for("udp");
    request.address = at;
    ports.push_back(open(request));
    ASSERT_TRUE(ports.back()) << error_;
    EXPECT_EQ(ports.back()->facts().address, at);
    EXPECT_EQ(ports.back()->facts().ip_mtu, 65536u);
  }
  auto other = open("udp:127.0.0.3");
  ASSERT_TRUE(other) << error_;
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    EXPECT_TRUE(other->way_to(Instant(), addresses[i]).stays_on_host);
    net::TxPacket tx = make(*other, addresses[i], 100 + i, 0);
    EXPECT_EQ(other->send(Instant(), {&tx, 1}), 1u);
  }
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    const auto got = receive(*ports[i], 1);
    ASSERT_EQ(got.size(), 1u);
    EXPECT_EQ(got[0].packet.size(), 100 + i);
    EXPECT_EQ(got[0].destination, addresses[i]);
    EXPECT_EQ(got[0].source, address("127.0.0.3"));
  }
  net::PortRequest again = request_for("udp");
  again.address = addresses[1];
  EXPECT_EQ(open(again), nullptr);
  EXPECT_NE(error_.find("UDP port " + std::to_string(kTestPort + 1) + " of 127.0.0.2"),
            std::string::npos)
      << error_;
}

TEST_F(UdpPortTest, wire_entropy__is_idempotent) {
  auto a = open("udp:127.0.0.2,sockets=5");
  ASSERT_TRUE(a) << error_;
  std::set<std::uint16_t> values;
  for (unsigned e = 0; e < 65536; ++e) {
    const std::uint16_t w = a->wire_entropy(static_cast<std::uint16_t>(e));
    EXPECT_EQ(a->wire_entropy(w), w);
    values.insert(w);
  }
  EXPECT_EQ(values.size(), 5u);
}

TEST_F(UdpPortTest, send__works_over_ipv6) {
  bool has_loopback = false;
  const auto all = local_addresses();
  ASSERT_TRUE(all);
  for (const LocalAddress& l : *all) has_loopback |= l.address == address("::1");
  if (!has_loopback) GTEST_SKIP() << "this machine has no ::1";
  auto a = open("udp:::1");
  ASSERT_TRUE(a) << error_;
  net::TxPacket tx = make(*a, address("::1"), 1000, 5);
  EXPECT_EQ(a->send(Instant(), {&tx, 1}), 1u);
  const auto got = receive(*a, 1);
  ASSERT_EQ(got.size(), 1u);
  EXPECT_EQ(got[0].tos.value, net::TosByte::of(46, 3).value);
  EXPECT_EQ(got[0].source, address("::1"));
}

TEST_F(UdpPortTest, send__largest_packet) {
  auto a = open("udp:127.0.0.2");
  ASSERT_TRUE(a) << error_;
  net::TxPacket tx = make(*a, address("127.0.0.2"), 8192 + 164, 5);
  a->send(Instant(), {&tx, 1});
  const auto got = receive(*a, 1);
  ASSERT_EQ(got.size(), 1u);
  EXPECT_EQ(got[0].packet.size(), 8192u + 164);
}

TEST_F(UdpPortTest, send__refuses_what_cannot_go) {
  auto a = open("udp:127.0.0.2");
  ASSERT_TRUE(a) << error_;
  net::TxPacket v6 = make(*a, address("fd00::1"), 10, 0);
  net::TxPacket nowhere = make(*a, FabricAddress(), 10, 0);
  a->send(Instant(), {&v6, 1});
  a->send(Instant(), {&nowhere, 1});
  EXPECT_EQ(trace_.drops(base::DropReason::kWrongFamily), 1u);
  EXPECT_EQ(trace_.drops(base::DropReason::kNoRoute), 1u);
  EXPECT_EQ(a->pool().available(), a->pool().capacity());
}

TEST_F(UdpPortTest, last_send_failure__has_destination_and_errno) {
  auto a = open("udp:127.0.0.2");
  ASSERT_TRUE(a) << error_;
  EXPECT_EQ(a->last_send_failure().error, 0);
  net::TxPacket tx = make(*a, address("255.255.255.255"), 10, 0);  // which needs a permission
  a->send(Instant(), {&tx, 1});
  EXPECT_EQ(trace_.drops(base::DropReason::kSendFailed), 1u);
  EXPECT_NE(a->last_send_failure().error, 0);
  EXPECT_EQ(a->last_send_failure().destination, address("255.255.255.255"));
}

TEST_F(UdpPortTest, receive__overflow_of_the_socket_is_counted) {
  auto a = open("udp:127.0.0.2");
  auto b = open("udp:127.0.0.3");
  ASSERT_TRUE(a && b) << error_;
  std::size_t sent = 0;
  for (int i = 0; i < 20000; ++i) {
    net::TxPacket tx = make(*a, address("127.0.0.3"), 4096, 0);
    sent += a->send(Instant(), {&tx, 1});
  }
  std::size_t got = 0;
  for (std::vector<net::RxPacket> burst; !(burst = receive(*b, 64)).empty();) got += burst.size();
  net::TxPacket last = make(*a, address("127.0.0.3"), 1, 0);
  a->send(Instant(), {&last, 1});
  got += receive(*b, 1).size();
  EXPECT_LT(got, sent);
  EXPECT_EQ(got + trace_.drops(base::DropReason::kSocketOverflow), sent + 1);
}

TEST_F(UdpPortTest, wakeup_fd__becomes_readable) {
  auto a = open("udp:127.0.0.2");
  ASSERT_TRUE(a) << error_;
  pollfd p{.fd = a->wakeup_fd(), .events = POLLIN, .revents = 0};
  EXPECT_TRUE(a->arm_wakeup());
  EXPECT_EQ(poll(&p, 1, 0), 0);
  net::TxPacket tx = make(*a, address("127.0.0.2"), 10, 0);
  a->send(Instant(), {&tx, 1});
  EXPECT_EQ(poll(&p, 1, 10'000), 1);
}

TEST_F(UdpPortTest, open__nothing_configured_finds_an_address) {
  auto a = open("udp");
  ASSERT_TRUE(a) << error_;
  EXPECT_EQ(error_, "") << "a remark of an open port";
  auto b = open("udp");
  ASSERT_TRUE(b) << error_;
  EXPECT_EQ(error_, "") << "the first address is taken, another is not";
  EXPECT_NE(a->facts().address, b->facts().address);
  // The way between processes of one host carries more than the interface whose address one of them has.
  for (const auto& [from, to] : {std::pair(a.get(), b.get()), std::pair(b.get(), a.get())}) {
    const net::Way way = from->way_to(Instant(), to->facts().address);
    EXPECT_EQ(way.ip_mtu, 65535u);
    EXPECT_TRUE(way.stays_on_host);
  }
  net::TxPacket tx = make(*a, b->facts().address, 10, 0);
  a->send(Instant(), {&tx, 1});
  EXPECT_EQ(receive(*b, 1).size(), 1u);
}

TEST_F(UdpPortTest, open__by_interface) {
  auto a = open("udp:lo");
  ASSERT_TRUE(a) << error_;
  EXPECT_EQ(a->facts().name, "udp:lo");
  EXPECT_TRUE(a->facts().address.is_loopback());
}

TEST_F(UdpPortTest, open__says_that_the_interfaces_cannot_be_listed) {
  test::refuse_addresses(EMFILE);
  EXPECT_FALSE(open("udp"));
  EXPECT_NE(error_.find("cannot list the network interfaces: Too many open files"),
            std::string::npos)
      << error_;
  EXPECT_TRUE(open("udp:127.0.0.1")) << error_ << ": needs no list";
  test::refuse_addresses(0);
}

TEST_F(UdpPortTest, open__says_that_there_is_no_descriptor_left_to_look_for_an_interface) {
  rlimit before{};
  getrlimit(RLIMIT_NOFILE, &before);
  const rlimit none{.rlim_cur = 0, .rlim_max = before.rlim_max};
  net::PortRequest request;
  request.spec = "udp:lo";
  // Until the limit is back the fixture is not looked at: UBSan finds out its type through a pipe.
  base::Trace& trace = trace_;
  std::string& error = error_;
  setrlimit(RLIMIT_NOFILE, &none);
  const bool is_open = open_udp_port(request, trace, error) != nullptr;
  setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_FALSE(is_open);
  EXPECT_NE(error_.find("cannot look for the interface lo: Too many open files"), std::string::npos)
      << error_;
}

TEST_F(UdpPortTest, open__errors_say_what_to_do) {
  const auto fails = [&](const net::PortRequest& request, const char* hint) {
    EXPECT_EQ(open(request), nullptr);
    EXPECT_NE(error_.find(hint), std::string::npos) << error_;
    EXPECT_EQ(error_.find(request.spec), 0u) << error_;
  };
  auto holder = open("udp:127.0.0.2");
  ASSERT_TRUE(holder) << error_;
  fails(request_for("udp:127.0.0.2"), "address in use");
  fails(request_for("udp:203.0.113.77"), "no interface of this host has the address");
  fails(request_for("udp:nosuchif0"), "no interface or address 'nosuchif0'");
  fails(request_for("udp:127.0.0.3,sockets=0"), "sockets is a number from 1 to 64");
  fails(request_for("udp:127.0.0.3,speed=9"), "unknown setting 'speed=9'");
  fails(request_for("udpx"), "not a udp port");
  net::PortRequest request = request_for("udp:127.0.0.3");
  request.native_ip = true;
  fails(request, "FI_UET_ENCAP=udp");
  request.native_ip = false;
  request.vlan = 5;
  fails(request, "VLAN interface");
  request.vlan = 0;
  request.address = address("127.0.0.9");
  fails(request, "two addresses");
}

}  // namespace uet::udp
