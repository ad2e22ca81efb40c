#include "lib/net/fabric_address.h"

#include <gtest/gtest.h>

namespace uet::net {
namespace {

const FabricAddress kHost = *FabricAddress::parse("10.0.0.1");

TEST(FabricAddress, parse__takes_addresses_alone) {
  EXPECT_EQ(kHost.v4(), 0x0a000001u);
  EXPECT_FALSE(FabricAddress::parse("fd00::1")->is_v4());
  EXPECT_FALSE(FabricAddress::parse("10.0.0.1:4793"));
  EXPECT_FALSE(FabricAddress::parse("localhost"));
  EXPECT_FALSE(FabricAddress::parse(""));
}

TEST(FabricAddress, is_loopback__of_both_families_with_and_without_a_port) {
  for (const char* text : {"127.0.0.1", "127.255.255.254", "::1"})
    EXPECT_TRUE(FabricAddress::parse(text)->is_loopback()) << text;
  for (const char* text : {"126.255.255.255", "128.0.0.1", "10.0.0.127", "::2", "fe80::1", "::"})
    EXPECT_FALSE(FabricAddress::parse(text)->is_loopback()) << text;
  EXPECT_TRUE(FabricAddress::parse("127.0.0.1")->with_udp_port(20480).is_loopback());
}

// Processes that share an address. [decision 168]
TEST(FabricAddress, with_udp_port__is_another_endpoint_of_the_same_host) {
  const FabricAddress one = kHost.with_udp_port(20480), other = kHost.with_udp_port(20481);
  EXPECT_TRUE(one.is_v4());
  EXPECT_EQ(one.v4(), kHost.v4());
  EXPECT_NE(one, kHost);
  EXPECT_NE(one, other);
  EXPECT_NE(one.hash(), other.hash());
  EXPECT_EQ(one.host(), kHost);
  EXPECT_EQ(kHost.host(), kHost);
  EXPECT_EQ(one.with_udp_port(0), kHost);
  EXPECT_EQ(one.udp_port(), 20480);
  EXPECT_EQ(one.udp_port_or(4793), 20480);
  EXPECT_EQ(kHost.udp_port_or(4793), 4793);
  EXPECT_EQ(one.to_string(), "10.0.0.1:20480");
  EXPECT_EQ(kHost.to_string(), "10.0.0.1");
}

TEST(FabricAddress, udp_port__an_ipv6_address_has_none) {
  const FabricAddress v6 = *FabricAddress::parse("fd00::5000:1");
  EXPECT_EQ(v6.udp_port(), 0);
  EXPECT_EQ(v6.host(), v6);
  EXPECT_EQ(v6.to_string(), "fd00::5000:1");
}

}  // namespace
}  // namespace uet::net
