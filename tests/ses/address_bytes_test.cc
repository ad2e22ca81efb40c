#include "ses/address_bytes.h"

#include <gtest/gtest.h>

namespace uet::ses {
namespace {

Address some_address(net::FabricAddress fabric_address) {
  Address a;
  a.fabric_address = fabric_address;
  a.pid_on_fep = 3;
  a.resource_index = 15;
  a.num_indices = 2;
  a.initiator_id = 0x1234'5678;
  a.has_initiator_id = true;
  a.fep_cap = 0x3007;
  return a;
}

TEST(AddressBytes, unpack_address__gives_what_was_packed) {
  const net::FabricAddress v4 = *net::FabricAddress::parse("10.0.0.1");
  for (const auto& fabric_address :
       {v4, v4.with_udp_port(20500), *net::FabricAddress::parse("fd00::1")}) {
    const auto back = unpack_address(pack_address(some_address(fabric_address)));
    ASSERT_TRUE(back);
    EXPECT_EQ(back->fabric_address, fabric_address);
    EXPECT_EQ(back->pid_on_fep, 3);
    EXPECT_EQ(back->resource_index, 15);
    EXPECT_EQ(back->num_indices, 2);
    EXPECT_EQ(back->initiator_id, 0x1234'5678u);
    EXPECT_EQ(back->fep_cap, 0x3007);
  }
}

// [SES 2.4] Bit 7 of the flags.
TEST(AddressBytes, unpack_address__keeps_that_messages_are_one_packet) {
  Address a = some_address(*net::FabricAddress::parse("10.0.0.1"));
  EXPECT_EQ(pack_address(a)[1] & 0x80, 0);
  a.one_packet_messages = true;
  const AddressBytes bytes = pack_address(a);
  EXPECT_EQ(bytes[1] & 0x80, 0x80);
  EXPECT_EQ(unpack_address(bytes), a);
}

TEST(Address, limits_sends__of_peers_without_hpc_or_with_one_packet) {
  const auto of = [](std::uint16_t fep_cap, bool one_packet = false) {
    return Address{.fep_cap = fep_cap, .one_packet_messages = one_packet};
  };
  EXPECT_FALSE(of(0).limits_sends());
  EXPECT_FALSE(of(kProfiles).limits_sends());
  EXPECT_FALSE(of(kHpc).limits_sends());
  EXPECT_TRUE(of(kAiBase).limits_sends());
  EXPECT_TRUE(of(kAiBase | kAiFull).limits_sends());
  EXPECT_TRUE(of(kProfiles, true).limits_sends());
  EXPECT_TRUE(of(0, true).limits_sends());
}

// Behind the IPv4 address, where an address of its own has zeros as before. [FI 4, decision 168]
TEST(AddressBytes, pack_address__the_udp_port_of_a_shared_address_follows_it) {
  const net::FabricAddress v4 = *net::FabricAddress::parse("10.0.0.1");
  const AddressBytes own = pack_address(some_address(v4));
  const AddressBytes shared = pack_address(some_address(v4.with_udp_port(0x5014)));
  EXPECT_EQ(own[20], 0);
  EXPECT_EQ(own[21], 0);
  EXPECT_EQ(shared[20], 0x50);
  EXPECT_EQ(shared[21], 0x14);
  EXPECT_EQ(format_address(some_address(v4.with_udp_port(0x5014))),
            "uet://10.0.0.1:20500/pid3/ri15+2/id305419896/rel");
}

}  // namespace
}  // namespace uet::ses
