#include "lib/net/checksum.h"
#include "lib/wire/codec.h"
#include "tests/net/ip_port_fixture.h"

namespace uet::net {

using base::DropReason;

namespace {

/// An echo request from A to B, as a kernel would send it.
Bytes echo_request(bool is_v4, std::size_t payload) {
  HeapPacketPool pool(1, 2000);
  Packet packet = pool.allocate();
  std::uint8_t* icmp = packet.append(8 + payload);
  for (std::size_t i = 0; i < 8 + payload; ++i) icmp[i] = static_cast<std::uint8_t>(i);
  icmp[0] = is_v4 ? 8 : 128;
  icmp[1] = icmp[2] = icmp[3] = 0;
  FrameFormat format{.mac = {2, 0, 0, 0, 0, 0xa},
                     .address = address(is_v4 ? "10.0.0.1" : "fd00::1")};
  const FabricAddress to = address(is_v4 ? "10.0.0.2" : "fd00::2");
  base::store_be(icmp + 2, is_v4 ? checksum_fold(checksum_add(packet.bytes()))
                                 : icmp6_checksum(format.address, to, packet.bytes()));
  prepend_ip(format, to, is_v4 ? wire::IpProtocol::kIcmp : wire::IpProtocol::kIcmpV6, 64, TosByte{},
             packet);
  prepend_ethernet(format, {2, 0, 0, 0, 0, 0xb},
                   is_v4 ? wire::EtherType::kIpv4 : wire::EtherType::kIpv6, packet);
  return {packet.bytes().begin(), packet.bytes().end()};
}

}  // namespace

TEST_F(IpPortTest, echo__is_answered_over_ipv4) {
  open_v4();
  for (const std::size_t payload : {0, 1, 56, 1400}) {
    EXPECT_EQ(refusal(echo_request(true, payload)), DropReason::kCount);
    const Bytes& reply = b_.device->sent.back();
    ASSERT_EQ(reply.size(), 14 + 20 + 8 + payload);
    EXPECT_EQ(reply[14 + 20], 0);
    EXPECT_EQ(checksum_fold(checksum_add(std::span(reply).subspan(34))), 0);
    EXPECT_EQ(checksum_fold(checksum_add(std::span(reply).subspan(14, 20))), 0);
  }
}

TEST_F(IpPortTest, echo__is_answered_over_ipv6) {
  open_v6();
  for (const std::size_t payload : {0, 1, 56}) {
    EXPECT_EQ(refusal(echo_request(false, payload)), DropReason::kCount);
    const Bytes& reply = b_.device->sent.back();
    ASSERT_EQ(reply.size(), 14 + 40 + 8 + payload);
    EXPECT_EQ(reply[54], 129);
    EXPECT_EQ(icmp6_checksum(address("fd00::2"), address("fd00::1"), std::span(reply).subspan(54)),
              0);
  }
}

TEST_F(IpPortTest, echo__padding_is_not_part_of_the_message) {
  open_v4();
  Bytes frame = echo_request(true, 2);
  frame.resize(60, 0xee);
  EXPECT_EQ(refusal(frame), DropReason::kCount);
  EXPECT_EQ(b_.device->sent.back().size(), 14u + 20 + 10);
}

TEST_F(IpPortTest, echo__damaged_or_broadcast_requests_are_not_answered) {
  open_v4();
  Bytes damaged = echo_request(true, 8);
  damaged.back() ^= 1;
  EXPECT_EQ(refusal(damaged), DropReason::kBadLinkMessage);
  Bytes broadcast = echo_request(true, 8);
  std::fill_n(broadcast.begin(), 6, 0xff);
  EXPECT_EQ(refusal(broadcast), DropReason::kIcmpIgnored);
  EXPECT_TRUE(b_.device->sent.empty());
}

TEST_F(IpPortTest, echo__stays_quiet_when_the_kernel_answers) {
  IpPortConfig b = config_of("10.0.0.2");
  b.answers = false;
  open(config_of("10.0.0.1"), b);
  EXPECT_EQ(refusal(echo_request(true, 8)), DropReason::kIcmpIgnored);
  send(a_, b_, "x");
  settle();
  EXPECT_TRUE(b_.device->sent.empty());
}

}  // namespace uet::net
