// Which address of an interface a port has, where the kernel will take some away.
#include "lib/udp/passing_addresses.h"

#include <gtest/gtest.h>

#include "lib/udp/local_addresses.h"

namespace uet::udp {
namespace {

constexpr const char* kKernelSays =
    "20010db8000000000000000000000001 02 40 00 80     eth0\n"
    "20010db8000000000000000000000002 02 40 00 01     eth0\n"
    "20010db8000000000000000000000003 02 40 00 a0     eth0\n"
    "20010db8000000000000000000000004 02 40 00 40     eth0\n"
    "20010db8000000000000000000000005 02 40 00 00     eth0\n"
    "20010db8000000000000000000000005 03 40 00 01     eth1\n"
    "fe800000000000000000000000000001 02 40 20 80     eth0\n"
    "00000000000000000000000000000001 01 80 10 80       lo\n";

net::FabricAddress parsed(const char* text) {
  return *net::FabricAddress::parse(text);
}

LocalAddress at(const char* interface, unsigned index, const char* text) {
  static const auto passing = PassingAddresses::parse(kKernelSays);
  LocalAddress out;
  out.interface = interface;
  out.interface_index = index;
  out.address = parsed(text);
  out.rank = passing.rank_of(interface, out.address);
  out.is_up = true;
  return out;
}

TEST(PassingAddressesTest, rank_of__what_is_temporary_deprecated_or_tentative_is_behind) {
  const auto passing = PassingAddresses::parse(kKernelSays);
  const auto rank = [&](const char* text) { return passing.rank_of("eth0", parsed(text)); };
  EXPECT_EQ(rank("2001:db8::1"), AddressRank::kV6);
  EXPECT_EQ(rank("2001:db8::2"), AddressRank::kPassingV6) << "temporary";
  EXPECT_EQ(rank("2001:db8::3"), AddressRank::kPassingV6) << "deprecated";
  EXPECT_EQ(rank("2001:db8::4"), AddressRank::kPassingV6) << "tentative";
  EXPECT_EQ(rank("2001:db8::5"), AddressRank::kV6) << "temporary on another interface";
  EXPECT_EQ(rank("2001:db8::6"), AddressRank::kV6) << "unknown to the kernel's list";
  EXPECT_EQ(rank("fe80::1"), AddressRank::kLinkLocal);
  EXPECT_EQ(rank("10.0.0.1"), AddressRank::kV4);
}

TEST(PassingAddressesTest, parse__passes_over_what_has_another_form) {
  const auto passing = PassingAddresses::parse(
      "\n20010db8 02 40 00 01 eth0\n20010db800000000000000000000000g 02 40 00 01 eth0\n"
      "20010db8000000000000000000000001 02 40 00 0x1 eth0\n"
      "20010db8000000000000000000000001 02 40 00\n"
      "20010db8000000000000000000000002 02 40 00 01 eth0");
  EXPECT_EQ(passing.rank_of("eth0", parsed("2001:db8::1")), AddressRank::kV6);
  EXPECT_EQ(passing.rank_of("eth0", parsed("2001:db8::2")), AddressRank::kPassingV6);
}

TEST(PassingAddressesTest, primary_of__takes_a_passing_address_only_where_nothing_else_is) {
  const LocalAddress link_local = at("eth0", 2, "fe80::1");
  const LocalAddress temporary = at("eth0", 2, "2001:db8::2");
  const LocalAddress lasting = at("eth0", 2, "2001:db8::5");
  const LocalAddress v4 = at("eth0", 2, "10.0.0.1");
  const LocalAddress later = at("eth2", 4, "2001:db8::7");
  std::vector<LocalAddress> all = {link_local, temporary, later};
  for (const char* interface : {"", "eth0"})
    EXPECT_EQ(primary_of(all, interface).address, temporary.address) << interface;
  all.insert(all.begin() + 2, lasting);
  for (const char* interface : {"", "eth0"})
    EXPECT_EQ(primary_of(all, interface).address, lasting.address) << interface;
  all.insert(all.begin() + 3, v4);
  EXPECT_EQ(primary_of(all, "").address, v4.address);
  EXPECT_EQ(primary_of(all, "eth9").interface, "");
}

}  // namespace
}  // namespace uet::udp
