/// Devices on an interface of the kernel: the MTU that it carries, and its neighbors.

#include <cerrno>
#include <cstdlib>

#include "lib/dpdk/kernel_interface.h"
#include "lib/dpdk/kernel_neighbors.h"
#include "tests/net/dpdk_guest.h"
#include "tests/net/no_descriptors.h"

namespace uet::dpdk {
namespace {

using testing::HasSubstr;

// --- MTU

TEST_F(DpdkGuestTest, mtu__above_that_of_the_interface_is_refused) {
  if (!has_veth()) GTEST_SKIP() << "needs root, network namespaces and veth";
  for (const char* driver : {"net_af_packet60", "net_pcap60", "net_af_xdp60"}) {
    EXPECT_FALSE(open(std::string(driver) + ",iface=uetveth0", 2000));
    EXPECT_THAT(error_, HasSubstr("interface under it has MTU 1500")) << driver;
  }
}

TEST_F(DpdkGuestTest, af_xdp__takes_the_largest_mtu_that_its_buffers_have) {
  if (!has_veth()) GTEST_SKIP() << "needs root, network namespaces and veth";
  ASSERT_EQ(std::system("ip link set uetveth0 mtu 3500 && ip link set uetveth1 mtu 3500"), 0);
  auto device = open("net_af_xdp61,iface=uetveth0");
  EXPECT_TRUE(device) << error_;
  EXPECT_THAT(error_, HasSubstr("FI_UET_MTU="));
  const std::size_t mtu = device ? device->facts().ip_mtu : 0;
  EXPECT_LT(mtu, 3500u);
  EXPECT_GT(mtu, 3300u);
  device.reset();
  std::system("ip link set uetveth0 mtu 1500 && ip link set uetveth1 mtu 1500");
}

TEST_F(DpdkGuestTest, failsafe__carries_what_the_interface_under_its_member_does) {
  if (!has_veth()) GTEST_SKIP() << "needs root, network namespaces and veth";
  auto device = open("net_failsafe62,dev(net_af_packet62,iface=uetveth0)");
  ASSERT_TRUE(device) << error_;
  EXPECT_EQ(device->facts().ip_mtu, 1500u);
}

// --- The link

bool make_interface() {
  return std::system(
             "ip link add uetveth2 type veth peer name uetveth3 && "
             "ip link set uetveth2 up && ip link set uetveth3 up") == 0;
}

TEST_F(DpdkGuestTest, link__is_lost_with_the_interface_that_was_opened) {
  if (!has_veth()) GTEST_SKIP() << "needs root, network namespaces and veth";
  ASSERT_TRUE(make_interface());
  auto device = open("net_af_packet63,iface=uetveth2");
  ASSERT_TRUE(device) << error_;
  EXPECT_TRUE(device->has_link());
  ASSERT_EQ(std::system("ip link del uetveth2"), 0);
  ASSERT_TRUE(make_interface());
  testing::internal::CaptureStderr();
  EXPECT_FALSE(device->has_link());
  EXPECT_FALSE(device->has_link());
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "uet: interface uetveth2 under port dpdk:net_af_packet63 is gone, and one that is made "
            "anew is another: the port has no link until the program starts again\n");
  device.reset();
  std::system("ip link del uetveth2");
}

TEST_F(DpdkGuestTest, link__stays_with_an_interface_that_gets_another_name) {
  if (!has_veth()) GTEST_SKIP() << "needs root, network namespaces and veth";
  ASSERT_TRUE(make_interface());
  auto device = open("net_af_packet64,iface=uetveth2");
  ASSERT_TRUE(device) << error_;
  ASSERT_EQ(std::system("ip link set uetveth2 name uetveth4"), 0);
  EXPECT_TRUE(device->has_link());
  ASSERT_EQ(std::system("ip link set uetveth3 down"), 0);
  EXPECT_FALSE(device->has_link());
  device.reset();
  std::system("ip link del uetveth4");
}

TEST_F(DpdkGuestTest, link__is_known_without_a_descriptor_left) {
  if (!has_veth()) GTEST_SKIP() << "needs root, network namespaces and veth";
  ASSERT_TRUE(make_interface());
  auto device = open("net_af_packet65,iface=uetveth2");
  ASSERT_TRUE(device) << error_;
  const auto has_link = [&] {
    const net::NoDescriptors no_descriptors;
    return device->has_link();
  };
  testing::internal::CaptureStderr();
  EXPECT_TRUE(has_link());
  ASSERT_EQ(std::system("ip link set uetveth3 down"), 0);
  EXPECT_FALSE(has_link());
  ASSERT_EQ(std::system("ip link set uetveth3 up"), 0);
  EXPECT_TRUE(has_link());
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  device.reset();
  std::system("ip link del uetveth2");
}

TEST(KernelInterfaceTest, open__tells_a_missing_interface_from_a_missing_descriptor) {
  const auto error_of = [](const char* name) {
    KernelInterface interface;
    return interface.open(name) ? 0 : errno;
  };
  EXPECT_EQ(error_of("lo"), 0);
  EXPECT_EQ(error_of("nosuchif0"), ENODEV);
  EXPECT_EQ(error_of("/tmp/socket-of-vhost"), ENODEV);
  EXPECT_EQ(error_of(""), ENODEV);
  const net::NoDescriptors no_descriptors;
  EXPECT_EQ(error_of("lo"), EMFILE);
  EXPECT_EQ(error_of(""), ENODEV) << "nothing to ask for";
}

// --- The kernel's neighbors

TEST_F(DpdkGuestTest, kernel_neighbors__are_asked_for_by_a_thread_that_is_cancelled) {
  if (!has_veth()) GTEST_SKIP() << "needs root, network namespaces and veth";
  auto kernel = KernelNeighbors::open("uetveth0", error_);
  ASSERT_TRUE(kernel) << error_;
  const auto absent = *net::FabricAddress::parse("10.6.0.9");
  net::FabricAddress who;
  net::MacAddress mac{};
  EXPECT_TRUE(is_finished_when_cancelled([&] { kernel->ask(absent, mac); }));
  EXPECT_TRUE(is_finished_when_cancelled([&] { kernel->poll(who, mac); }));
}

TEST_F(DpdkGuestTest, kernel_neighbors__are_read_and_heard_of) {
  if (!has_veth()) GTEST_SKIP() << "needs root, network namespaces and veth";
  ASSERT_EQ(
      std::system(
          "ip addr add 10.5.0.1/24 dev uetveth0 && ip addr add fd05::1/64 dev uetveth0 nodad && "
          "ip neigh replace 10.5.0.2 lladdr 02:00:00:00:05:02 dev uetveth0 nud permanent && "
          "ip neigh replace fd05::2 lladdr 02:00:00:00:05:06 dev uetveth0 nud permanent"),
      0);
  auto kernel = KernelNeighbors::open("uetveth0", error_);
  ASSERT_TRUE(kernel) << error_;
  const auto address = [](const char* text) { return *net::FabricAddress::parse(text); };
  net::MacAddress mac{};
  EXPECT_TRUE(kernel->ask(address("10.5.0.2"), mac));
  EXPECT_EQ(mac, (net::MacAddress{2, 0, 0, 0, 5, 2}));
  EXPECT_TRUE(kernel->ask(address("fd05::2"), mac));
  EXPECT_EQ(mac, (net::MacAddress{2, 0, 0, 0, 5, 6}));
  EXPECT_FALSE(kernel->ask(address("10.5.0.3"), mac));
  net::FabricAddress who;
  using News = net::NeighborResolver::News;
  EXPECT_EQ(kernel->poll(who, mac), News::kNone);
  ASSERT_EQ(
      std::system("ip neigh replace 10.5.0.3 lladdr 02:00:00:00:05:03 dev uetveth0 nud reachable"),
      0);
  ASSERT_EQ(kernel->poll(who, mac), News::kFound);
  EXPECT_EQ(who, address("10.5.0.3"));
  EXPECT_EQ(mac, (net::MacAddress{2, 0, 0, 0, 5, 3}));
  EXPECT_FALSE(KernelNeighbors::open("nosuchif0", error_));
  EXPECT_THAT(error_, HasSubstr("nosuchif0"));
}

// Which of them are lost is not known; the newest are.
TEST_F(DpdkGuestTest, kernel_neighbors__say_that_news_were_lost_and_forget_the_older_ones) {
  if (!has_veth()) GTEST_SKIP() << "needs root, network namespaces and veth";
  auto kernel = KernelNeighbors::open("uetveth0", error_);
  ASSERT_TRUE(kernel) << error_;
  const std::string replace = "neigh replace 10.5.0.4 dev uetveth0 nud reachable lladdr ";
  const auto moves = [&](int times) {
    return std::system(("i=0; while [ $i -lt " + std::to_string(times) + " ]; do echo " + replace +
                        "02:00:00:00:05:0$((i % 10)); i=$((i + 1)); done | ip -batch -")
                           .c_str());
  };
  ASSERT_EQ(moves(3000), 0);
  using News = net::NeighborResolver::News;
  net::FabricAddress who;
  net::MacAddress mac{};
  EXPECT_EQ(kernel->poll(who, mac), News::kLost);
  EXPECT_EQ(kernel->poll(who, mac), News::kNone);
  ASSERT_EQ(moves(2), 0);
  ASSERT_EQ(kernel->poll(who, mac), News::kFound);
  EXPECT_EQ(mac, (net::MacAddress{2, 0, 0, 0, 5, 0}));
  ASSERT_EQ(kernel->poll(who, mac), News::kFound);
  EXPECT_EQ(mac, (net::MacAddress{2, 0, 0, 0, 5, 1}));
}

}  // namespace
}  // namespace uet::dpdk
