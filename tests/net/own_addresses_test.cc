// Whether the way to a destination stays on this host, and what a port pays for knowing it.
#include "lib/udp/own_addresses.h"

#include <gtest/gtest.h>

#include <optional>

#include "lib/udp/local_addresses.h"
#include "lib/udp/udp_port.h"
#include "tests/net/scripted_interfaces.h"

namespace uet::udp {

using base::Duration;
using base::Instant;
using net::FabricAddress;

namespace {

constexpr std::uint16_t kOwnPort = 14793;
constexpr Duration kTick = Duration::from_ms(10);

class OwnAddressesTest : public ::testing::Test {
 protected:
  OwnAddressesTest() {
    const auto all = local_addresses();
    for (const LocalAddress& l : all.value()) {
      const bool is_listed_only = !(l.address.is_v4() && l.is_loopback);
      if (is_listed_only && !l.address.is_link_local()) own_ = l.address;
    }
  }
  ~OwnAddressesTest() override { test::hide_addresses(false); }

  bool is_own(const FabricAddress& address) {
    return addresses_.has(now_, SocketAddress(address, kOwnPort, 0));
  }

  std::optional<FabricAddress> own_;  ///< one that the kernel has to list, as it is not of 127/8
  OwnAddresses addresses_;
  Instant now_ = Instant::from_ns(1'000'000'000);
};

TEST_F(OwnAddressesTest, has__an_address_that_comes_or_goes_within_half_a_second) {
  if (!own_) GTEST_SKIP() << "this host has addresses of 127/8 only";
  test::hide_addresses(true);
  EXPECT_FALSE(is_own(*own_));
  test::hide_addresses(false);
  now_ = now_ + OwnAddresses::kFresh;
  EXPECT_TRUE(is_own(*own_));
  test::hide_addresses(true);
  now_ = now_ + OwnAddresses::kFresh;
  EXPECT_FALSE(is_own(*own_));
}

TEST_F(OwnAddressesTest, has__loopback_and_other_hosts_without_a_list) {
  const std::size_t before = test::enumerations();
  EXPECT_TRUE(is_own(*FabricAddress::parse("127.0.0.7")));
  EXPECT_FALSE(is_own(*FabricAddress::parse("203.0.113.77")));
  EXPECT_EQ(test::enumerations(), before);
}

// fep/port_ways.h asks for each peer twice a second; at 128 peers and 100 interfaces that took more than half of a processor.
TEST_F(OwnAddressesTest, way_to__a_hundred_peers_of_this_host_share_one_list) {
  if (!own_) GTEST_SKIP() << "this host has addresses of 127/8 only";
  base::Trace trace;
  std::string error;
  net::PortRequest request;
  request.spec = "udp:" + own_->to_string();
  request.udp_port = kOwnPort;
  request.packets = 64;
  const auto port = open_udp_port(request, trace, error);
  ASSERT_TRUE(port) << error;
  const std::size_t before = test::enumerations();
  for (const Instant end = now_ + Duration::from_seconds(1); now_ < end; now_ = now_ + kTick)
    for (std::uint16_t peer = 0; peer < 100; ++peer) {
      const FabricAddress address =
          own_->is_v4() ? own_->with_udp_port(static_cast<std::uint16_t>(20480 + peer)) : *own_;
      EXPECT_TRUE(port->way_to(now_, address).stays_on_host);
    }
  EXPECT_LE(test::enumerations() - before, 3u);
}

}  // namespace
}  // namespace uet::udp
