// A plane whose interface is deleted and made again, in network namespaces of its own.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/capability.h>
#include <net/if.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <thread>

#include "lib/udp/udp_port.h"

namespace uet::udp {

using base::Duration;
using base::Instant;

namespace {

constexpr std::uint16_t kPort = 14796;

/// Two namespaces that v0, here, and v1, there, join.
class RemadeInterfaceTest : public testing::Test {
 protected:
  void in_namespaces(const std::function<void()>& body) {
    bool has_namespaces = false;
    std::thread([&] {
      has_namespaces =
          make_namespaces() && make_interfaces() && run("ip addr add 10.9.0.1/32 dev lo");
      if (!has_namespaces) return;
      port_ = open("10.9.0.1", "v0");
      peer_ = go(there_) ? open("10.9.0.2", "") : nullptr;
      const bool are_open = go(here_) && port_ != nullptr && peer_ != nullptr;
      EXPECT_TRUE(are_open);
      if (are_open) body();
      port_.reset();
      peer_.reset();
    }).join();
    close(here_);
    close(there_);
    if (!has_namespaces) GTEST_SKIP() << "no network namespaces with a veth";
  }

  static bool run(const std::string& command) { return std::system(command.c_str()) == 0; }
  static bool go(int name_space) { return setns(name_space, CLONE_NEWNET) == 0; }
  bool make_namespaces() {
    if (unshare(CLONE_NEWNET) != 0) return false;
    here_ = ::open("/proc/thread-self/ns/net", O_RDONLY);
    if (unshare(CLONE_NEWNET) != 0) return false;
    there_ = ::open("/proc/thread-self/ns/net", O_RDONLY);
    return run("ip link set lo up") && go(here_) && run("ip link set lo up");
  }
  /// `here` is the name of v0.
  bool make_interfaces(const std::string& here = "v0") const {
    const std::string there = "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(there_);
    return run("ip link add " + here + " type veth peer name v1 netns " + there +
               " && ip link set " + here + " up && ip route add 10.9.0.2 dev " + here) &&
           go(there_) && run("ip addr add 10.9.0.2/24 dev v1 && ip link set v1 up") && go(here_);
  }

  bool add_addresses_of_link() const {
    return run("ip addr add fe80::1/64 dev v0 nodad") && go(there_) &&
           run("ip addr add fe80::2/64 dev v1 nodad") && go(here_);
  }

  std::unique_ptr<UdpPort> open(const char* address, const std::string& device,
                                bool is_tied = true) {
    UdpSockets sockets;
    const unsigned index = if_nametoindex(device.c_str());
    const char* step = "";
    net::PortFacts facts;
    facts.address = *net::FabricAddress::parse(address);
    facts.udp_port = kPort;
    facts.name = "udp:" + device;
    const UdpSocketsConfig config{.address = facts.address,
                                  .scope = index,
                                  .port = kPort,
                                  .device = is_tied ? device : "",
                                  .senders = 2,
                                  .receive_buffer_bytes = 65536};
    if (!open_sockets(config, sockets, step)) return nullptr;
    return std::make_unique<UdpPort>(std::move(sockets), facts, UdpInterface{device, index}, 256,
                                     trace_);
  }
  /// Asks for the link every 10 ms of the port's time until it is `wanted`, for so many milliseconds of ours: the kernel says it some time later.
  bool link_becomes(bool wanted, int patience = 5000) {
    for (int i = 0; i < patience; ++i, now_ = now_ + Duration::from_ms(10)) {
      if ((port_->planes_up(now_) != 0) == wanted) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return false;
  }
  /// The source port of a packet that gets across; 0 when none does.
  std::uint16_t crosses(net::Port& from, net::Port& to) {
    for (int i = 0; i < 1000; ++i) {
      net::TxPacket tx;
      tx.packet = from.pool().allocate();
      std::memset(tx.packet.append(100), 0x77, 100);
      tx.destination = to.facts().address;
      from.send(now_, {&tx, 1});
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      net::RxPacket rx;
      if (to.receive(now_, {&rx, 1}) == 1) return rx.entropy;
    }
    return 0;
  }
  /// Both ways, from the same source port as before.
  void expect_traffic() {
    EXPECT_EQ(crosses(*port_, *peer_), port_->wire_entropy(0));
    EXPECT_NE(crosses(*peer_, *port_), 0);
  }

  /// What a full socket lost and a packet behind that told of; then it is empty.
  std::uint64_t lose_some() {
    const auto lost = [&] { return trace_.drops(base::DropReason::kSocketOverflow); };
    const std::uint64_t before = lost();
    send_too_much_to_port();
    while (receives_some()) {
    }
    EXPECT_NE(crosses(*peer_, *port_), 0);
    return lost() - before;
  }
  /// In runs.
  void send_too_much_to_port() {
    for (int i = 0; i < kTooMany; i += 10) {
      std::array<net::TxPacket, 10> burst;
      for (net::TxPacket& tx : burst) {
        tx.packet = peer_->pool().allocate();
        std::memset(tx.packet.append(1000), 0x77, 1000);
        tx.destination = port_->facts().address;
      }
      peer_->send(now_, burst);
    }
  }
  /// Fewer packets than there are in the messages that the port takes for them.
  bool receives_some() {
    std::array<net::RxPacket, 4> burst;
    return port_->receive(now_, burst) != 0;
  }

  static constexpr int kTooMany = 500;
  /// Of both ports, as a loop does that asks no single port for its link.
  void meet_deadlines() {
    now_ = now_ + Duration::from_seconds(1);
    for (UdpPort* port : {port_.get(), peer_.get()}) {
      EXPECT_TRUE(go(port == port_.get() ? here_ : there_));
      EXPECT_LE(port->next_deadline(), now_);
      port->on_deadline(now_);
    }
    EXPECT_TRUE(go(here_));
  }

  int here_ = -1, there_ = -1;
  base::Trace trace_;
  std::unique_ptr<UdpPort> port_, peer_;
  Instant now_ = Instant::from_ns(1'000'000'000);
};

/// Of this thread alone; programs that it starts as root have it again.
bool drop_net_raw() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  std::array<__user_cap_data_struct, 2> data{};
  if (syscall(SYS_capget, &header, data.data()) != 0) return false;
  data[0].effective &= ~(1u << CAP_NET_RAW);
  return syscall(SYS_capset, &header, data.data()) == 0;
}

}  // namespace

TEST_F(RemadeInterfaceTest, interface_that_is_made_again__is_used) {
  in_namespaces([&] {
    expect_traffic();
    const int fd = port_->wakeup_fd();
    ASSERT_TRUE(run("ip link del v0"));
    EXPECT_TRUE(link_becomes(false));
    ASSERT_TRUE(make_interfaces());
    testing::internal::CaptureStderr();
    EXPECT_TRUE(link_becomes(true));
    EXPECT_EQ(testing::internal::GetCapturedStderr(),
              "uet: interface v0 was made anew; port udp:v0 goes on with it\n");
    expect_traffic();
    EXPECT_EQ(port_->wakeup_fd(), fd);
  });
}

TEST_F(RemadeInterfaceTest, interface_that_is_made_again__is_used_without_a_privilege) {
  in_namespaces([&] {
    expect_traffic();
    ASSERT_TRUE(drop_net_raw());
    ASSERT_TRUE(run("ip link del v0"));
    EXPECT_TRUE(link_becomes(false));
    ASSERT_TRUE(make_interfaces());
    EXPECT_TRUE(link_becomes(true));
    expect_traffic();
    EXPECT_EQ(port_->wakeup_fd(), -1) << "the socket that a sleeper watches is gone";
  });
}

// The kernel counts by socket, and packets of the old one may be at hand still.
TEST_F(RemadeInterfaceTest, losses_of_a_full_socket__are_counted_by_each_socket_from_zero) {
  in_namespaces([&] {
    const auto counts_its_own = [&] {
      const std::uint64_t lost = lose_some();
      EXPECT_GT(lost, 0u);
      EXPECT_LE(lost, std::uint64_t{kTooMany});
    };
    testing::internal::CaptureStderr();
    counts_its_own();
    counts_its_own();
    send_too_much_to_port();
    EXPECT_TRUE(receives_some());
    ASSERT_TRUE(drop_net_raw());
    ASSERT_TRUE(run("ip link del v0"));
    EXPECT_TRUE(link_becomes(false));
    ASSERT_TRUE(make_interfaces());
    EXPECT_TRUE(link_becomes(true));
    counts_its_own();
    counts_its_own();
    const std::string told = testing::internal::GetCapturedStderr();
    const std::size_t first = told.find("net.core.rmem_max");
    EXPECT_NE(first, told.npos);
    EXPECT_EQ(told.find("net.core.rmem_max", first + 1), told.npos) << "said once";
  });
}

TEST_F(RemadeInterfaceTest, address_that_is_not_there_yet__is_waited_for) {
  in_namespaces([&] {
    ASSERT_TRUE(drop_net_raw());
    ASSERT_TRUE(run("ip link del v0 && ip addr del 10.9.0.1/32 dev lo"));
    EXPECT_TRUE(link_becomes(false));
    ASSERT_TRUE(make_interfaces());
    // Once the kernel says that the interface is up; and no second time.
    std::string said;
    const auto listen = [&] {
      testing::internal::CaptureStderr();
      EXPECT_FALSE(link_becomes(true, 100));
      said += testing::internal::GetCapturedStderr();
    };
    for (int round = 0; round < 50 && said.empty(); ++round) listen();
    listen();
    EXPECT_EQ(said,
              "uet: interface v0 was made anew, and port udp:v0 cannot use it yet: Cannot assign "
              "requested address\n");
    ASSERT_TRUE(run("ip addr add 10.9.0.1/32 dev lo"));
    EXPECT_TRUE(link_becomes(true));
    expect_traffic();
  });
}

TEST_F(RemadeInterfaceTest, interface_with_another_name__keeps_its_link) {
  in_namespaces([&] {
    ASSERT_TRUE(run("ip link set v0 name v2"));
    EXPECT_TRUE(link_becomes(true));
    expect_traffic();
  });
}

TEST_F(RemadeInterfaceTest, interface_with_another_name__is_used_when_it_is_made_again) {
  in_namespaces([&] {
    ASSERT_TRUE(run("ip link set v0 name v2"));
    EXPECT_TRUE(link_becomes(true));
    ASSERT_TRUE(run("ip link del v2"));
    EXPECT_TRUE(link_becomes(false));
    ASSERT_TRUE(make_interfaces("v2"));
    testing::internal::CaptureStderr();
    EXPECT_TRUE(link_becomes(true));
    EXPECT_EQ(testing::internal::GetCapturedStderr(),
              "uet: interface v2 was made anew; port udp:v0 goes on with it\n");
    expect_traffic();
  });
}

TEST_F(RemadeInterfaceTest, interface_with_another_name__is_not_the_one_that_takes_its_old_name) {
  in_namespaces([&] {
    ASSERT_TRUE(run("ip link set v0 name v2"));
    EXPECT_TRUE(link_becomes(true));
    ASSERT_TRUE(
        run("ip link add v0 type veth peer name v9 && ip link set v0 up && "
            "ip link set v9 up && ip link del v2"));
    EXPECT_TRUE(link_becomes(false));
    EXPECT_FALSE(link_becomes(true, 100));
    ASSERT_TRUE(make_interfaces("v2"));
    EXPECT_TRUE(link_becomes(true));
    expect_traffic();
  });
}

/// Of ports that are no plane.
class LinkLocalAddressTest : public RemadeInterfaceTest {
 protected:
  void make_again(bool is_privileged) {
    ASSERT_TRUE(add_addresses_of_link());
    port_ = open("fe80::1", "v0", false);
    ASSERT_TRUE(go(there_));
    peer_ = open("fe80::2", "v1", false);
    ASSERT_TRUE(go(here_) && port_ != nullptr && peer_ != nullptr);
    expect_traffic();
    ASSERT_TRUE(is_privileged || drop_net_raw());
    ASSERT_TRUE(run("ip link del v0"));
    EXPECT_TRUE(link_becomes(false));
    ASSERT_TRUE(make_interfaces() && add_addresses_of_link());
    testing::internal::CaptureStderr();
    meet_deadlines();
    EXPECT_EQ(testing::internal::GetCapturedStderr(),
              "uet: interface v0 was made anew; port udp:v0 goes on with it\n"
              "uet: interface v1 was made anew; port udp:v1 goes on with it\n");
    EXPECT_TRUE(link_becomes(true));
    expect_traffic();
  }
};

TEST_F(LinkLocalAddressTest, single_port_there__follows_its_interface) {
  in_namespaces([&] { make_again(true); });
}

TEST_F(LinkLocalAddressTest, single_port_there__follows_its_interface_without_a_privilege) {
  in_namespaces([&] { make_again(false); });
}

TEST_F(LinkLocalAddressTest, other_ports__have_no_deadline_for_it) {
  in_namespaces([&] {
    EXPECT_TRUE(port_->next_deadline().is_never());
    EXPECT_TRUE(peer_->next_deadline().is_never());
  });
}

}  // namespace uet::udp
