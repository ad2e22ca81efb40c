#include "lib/base/byte_cursor.h"
#include "tests/net/ip_port_fixture.h"

namespace uet::net {

using base::DropReason;

TEST_F(IpPortTest, send__resolves_and_delivers_over_ipv4) {
  open_v4();
  EXPECT_EQ(send(a_, b_, "one"), 1u);
  EXPECT_EQ(send(a_, b_, "two"), 1u);
  EXPECT_EQ(a_.port->waiting(), 2u);
  settle();
  ASSERT_EQ(got_b_.size(), 2u);
  EXPECT_EQ(text_of(got_b_[0]), "one");
  EXPECT_EQ(text_of(got_b_[1]), "two");
  EXPECT_EQ(got_b_[0].source, address("10.0.0.1"));
  EXPECT_EQ(got_b_[0].destination, address("10.0.0.2"));
  EXPECT_EQ(got_b_[0].entropy, 777);
  EXPECT_EQ(got_b_[0].tos.dscp(), 18);
  EXPECT_EQ(got_b_[0].tos.ecn(), 2);
  EXPECT_EQ(a_.port->waiting(), 0u);
  EXPECT_EQ(a_.trace.drops_total() + b_.trace.drops_total(), 0u);
}

TEST_F(IpPortTest, send__resolves_and_delivers_over_ipv6) {
  open_v6();
  send(a_, b_, "six");
  settle();
  ASSERT_EQ(got_b_.size(), 1u);
  EXPECT_EQ(text_of(got_b_[0]), "six");
  EXPECT_EQ(got_b_[0].source, address("fd00::1"));
  // B learned A from the question: its answer needs no resolution.
  send(b_, a_, "back");
  EXPECT_EQ(b_.port->waiting(), 0u);
  settle();
  EXPECT_EQ(got_a_.size(), 1u);
  EXPECT_EQ(a_.trace.drops_total() + b_.trace.drops_total(), 0u);
}

TEST_F(IpPortTest, send__native_ip_carries_the_entropy_header) {
  IpPortConfig a = config_of("10.0.0.1"), b = config_of("10.0.0.2");
  a.native_ip = b.native_ip = true;
  open(a, b);
  send(a_, b_, "native");
  settle();
  ASSERT_EQ(got_b_.size(), 1u);
  EXPECT_EQ(got_b_[0].entropy, 777);
  const Bytes& frame = a_.device->sent.back();
  EXPECT_EQ(frame[14 + 9], 253);
  EXPECT_EQ(frame.size(), 14u + 20 + 4 + 6);
  EXPECT_EQ(frame[14 + 20 + 2] << 8 | frame[14 + 20 + 3], 0);
  // Other senders need not leave them 0, and CRC and ICV cover them as they came.
  Bytes other = frame;
  other[14 + 20 + 2] = 0x80;
  other[14 + 20 + 3] = 1;
  b_.device->inject(std::move(other));
  settle();
  ASSERT_EQ(got_b_.size(), 2u);
  EXPECT_EQ(got_b_[0].entropy_reserved, 0);
  EXPECT_EQ(got_b_[1].entropy_reserved, 0x8001);
}

// A process on B's host that shares the address: the neighbor is the host. [decision 168]
TEST_F(IpPortTest, send__asks_for_the_host_of_a_shared_address) {
  open_v4();
  send(a_, address("10.0.0.2").with_udp_port(20480), "shared");
  settle();
  EXPECT_EQ(a_.port->waiting(), 0u);
  const Bytes& frame = a_.device->sent.back();
  ASSERT_EQ(frame.size(), 14u + 20 + 8 + 6);
  EXPECT_EQ(frame[14 + 20 + 2] << 8 | frame[14 + 20 + 3], 20480);
  EXPECT_TRUE(got_b_.empty());  // it is not B's port
}

TEST_F(IpPortTest, send__vlan_tag_on_everything) {
  IpPortConfig a = config_of("10.0.0.1"), b = config_of("10.0.0.2");
  a.vlan = b.vlan = 100;
  open(a, b);
  send(a_, b_, "tagged");
  settle();
  ASSERT_EQ(got_b_.size(), 1u);
  for (const Bytes& frame : a_.device->sent) {
    EXPECT_EQ(frame[12], 0x81);
    EXPECT_EQ(frame[15], 100);
  }
}

TEST_F(IpPortTest, send__no_udp_checksum_and_dont_fragment) {
  open_v4();
  send(a_, b_, "x");
  settle();
  const Bytes& frame = a_.device->sent.back();
  EXPECT_EQ(frame[14 + 6], 0x40);
  EXPECT_EQ(frame[14 + 26] | frame[14 + 27], 0);
}

TEST_F(IpPortTest, send__through_the_gateway) {
  IpPortConfig a = config_of("10.0.0.1");
  a.gateway = address("10.0.0.2");
  open(a, config_of("10.0.0.2"));
  send(a_, address("192.168.7.7"), "far");
  settle();
  // The frame goes to the gateway's MAC, the packet to the far address.
  EXPECT_EQ(a_.device->sent.back()[5], 0x0b);
  EXPECT_EQ(b_.trace.drops(DropReason::kNotForUs), 1u);
}

TEST_F(IpPortTest, send__destinations_without_a_way) {
  open_v4();
  EXPECT_TRUE(a_.port->last_send_failure().destination.is_unspecified());
  send(a_, address("192.168.7.7"), "x");
  EXPECT_EQ(a_.port->last_send_failure().destination, address("192.168.7.7"));
  EXPECT_EQ(a_.port->last_send_failure().reason, DropReason::kNoRoute);
  send(a_, address("224.0.0.1"), "x");
  send(a_, FabricAddress(), "x");
  EXPECT_EQ(a_.trace.drops(DropReason::kNoRoute), 3u);
  send(a_, address("fd00::2"), "x");
  EXPECT_EQ(a_.trace.drops(DropReason::kWrongFamily), 1u);
  EXPECT_TRUE(a_.device->sent.empty());
}

TEST_F(IpPortTest, send__larger_than_the_mtu) {
  open_v4();
  TxPacket tx = make(a_, address("10.0.0.2"), "");
  tx.packet.append(1500 - 28 + 1);
  EXPECT_EQ(a_.port->send(now_, {&tx, 1}), 1u);
  EXPECT_EQ(a_.trace.drops(DropReason::kTooLarge), 1u);
}

TEST_F(IpPortTest, send__to_ourselves_comes_back) {
  open_v4();
  send(a_, address("10.0.0.1"), "me");
  EXPECT_FALSE(a_.port->arm_wakeup());
  settle();
  ASSERT_EQ(got_a_.size(), 1u);
  EXPECT_EQ(got_a_[0].source, address("10.0.0.1"));
  EXPECT_TRUE(a_.device->sent.empty());
  EXPECT_TRUE(a_.port->arm_wakeup());
}

TEST_F(IpPortTest, send__silent_neighbor_is_given_up_and_tried_again_later) {
  open_v4();
  a_.device->is_cut = true;
  send(a_, b_, "x");
  for (int i = 0; i < 100; ++i) advance(Duration::from_ms(50));
  EXPECT_EQ(a_.trace.drops(DropReason::kNoNeighbor), 1u);
  EXPECT_EQ(a_.port->last_send_failure().destination, address("10.0.0.2"));
  EXPECT_EQ(a_.port->last_send_failure().reason, DropReason::kNoNeighbor);
  EXPECT_EQ(a_.device->sent.size(), NeighborConfig().attempts);
  EXPECT_EQ(a_.port->waiting(), 0u);
  a_.device->is_cut = false;
  send(a_, b_, "again");
  settle();
  EXPECT_EQ(got_b_.size(), 1u);
}

TEST_F(IpPortTest, send__waiting_packets_are_bounded) {
  IpPortConfig a = config_of("10.0.0.1");
  a.neighbors.max_waiting_each = 4;
  a.neighbors.max_waiting = 6;
  open(a, config_of("10.0.0.2"));
  a_.device->is_cut = true;
  for (int i = 0; i < 10; ++i) send(a_, address("10.0.0.7"), "x");
  EXPECT_EQ(a_.port->waiting(), 4u);
  for (int i = 0; i < 10; ++i) send(a_, address("10.0.0.8"), "x");
  EXPECT_EQ(a_.port->waiting(), 6u);
  EXPECT_EQ(a_.trace.drops(DropReason::kNeighborQueueFull), 14u);
}

TEST_F(IpPortTest, send__full_device_gives_short_count_and_packets_unchanged) {
  open_v4();
  send(a_, b_, "x");
  settle();
  got_b_.clear();
  std::vector<TxPacket> burst;
  for (int i = 0; i < 8; ++i)
    burst.push_back(make(a_, address("10.0.0.2"), std::string(1, static_cast<char>('a' + i))));
  a_.device->room = 3;
  EXPECT_EQ(a_.port->send(now_, burst), 3u);
  a_.device->room = SIZE_MAX;
  EXPECT_EQ(burst[3].packet.size(), 1u);
  EXPECT_EQ(a_.port->send(now_, std::span(burst).subspan(3)), 5u);
  settle();
  ASSERT_EQ(got_b_.size(), 8u);
  for (int i = 0; i < 8; ++i)
    EXPECT_EQ(text_of(got_b_[static_cast<std::size_t>(i)]),
              std::string(1, static_cast<char>('a' + i)));
}

TEST_F(IpPortTest, send__link_without_a_peer_takes_nothing) {
  open_v4();
  a_.device->room = 0;
  EXPECT_EQ(send(a_, b_, "early"), 0u);
  EXPECT_EQ(a_.trace.drops_total(), 0u);
  a_.device->room = SIZE_MAX;
  advance(Duration::from_ms(2));
  EXPECT_EQ(send(a_, b_, "now"), 1u);
  settle();
  EXPECT_EQ(got_b_.size(), 1u);
}

TEST_F(IpPortTest, send__resolved_packets_wait_for_a_full_device) {
  open_v4();
  resolve_while_full();
  EXPECT_EQ(send(a_, b_, "three"), 0u);
  EXPECT_FALSE(a_.port->next_deadline().is_never());
  a_.device->room = SIZE_MAX;
  advance(Duration::from_ms(1));
  settle();
  EXPECT_EQ(got_b_.size(), 2u);
}

// Two memif ends that come up one after the other: the first notices its own link only when its neighbor has answered already.
TEST_F(IpPortTest, send__link_that_comes_back_loses_no_resolved_packet) {
  open_v4();
  resolve_while_full();
  ++a_.device->generation;
  receive(a_);  // its neighbor has to be asked anew
  a_.device->room = SIZE_MAX;
  advance(Duration::from_ms(1));
  send(a_, b_, "three");
  settle();
  EXPECT_EQ(a_.trace.drops_total(), 0u);
  ASSERT_EQ(got_b_.size(), 3u);
  EXPECT_EQ(text_of(got_b_[0]) + text_of(got_b_[1]) + text_of(got_b_[2]), "onetwothree");
  EXPECT_EQ(a_.port->waiting(), 0u);
}

TEST_F(IpPortTest, neighbor__is_confirmed_while_in_use) {
  open_v4();
  send(a_, b_, "x");
  settle();
  const std::size_t frames = a_.device->sent.size();
  advance(Duration::from_seconds(31));
  send(a_, b_, "y");
  advance(Duration::from_ms(1));
  settle();
  EXPECT_EQ(got_b_.size(), 2u);
  ASSERT_EQ(a_.device->sent.size(), frames + 2);
  // The question went to the known MAC, not to the broadcast address.
  EXPECT_EQ(a_.device->sent.back()[5], 0x0b);
  EXPECT_TRUE(a_.port->next_deadline().is_never());
}

// Asked by unicast, a host may leave its MAC out of the answer. [RFC 4861 7.2.4]
TEST_F(IpPortTest, neighbor__is_confirmed_by_an_answer_without_its_mac) {
  open_v6();
  send(a_, b_, "x");
  settle();
  advance(Duration::from_seconds(31));
  b_.device->is_cut = true;
  send(a_, b_, "y");
  advance(Duration::from_ms(1));
  settle();
  EXPECT_FALSE(a_.port->next_deadline().is_never());
  constexpr std::size_t kIp = 14, kIcmp = kIp + 40, kOption = 8;
  Bytes answer = b_.device->sent.back();
  ASSERT_EQ(answer.size(), kIcmp + kNeighborMessageBytes);
  answer.resize(answer.size() - kOption);
  answer[kIp + 5] = static_cast<std::uint8_t>(answer[kIp + 5] - kOption);
  answer[kIcmp + 2] = answer[kIcmp + 3] = 0;
  base::store_be(answer.data() + kIcmp + 2, icmp6_checksum(address("fd00::2"), address("fd00::1"),
                                                           std::span(answer).subspan(kIcmp)));
  a_.device->inject(answer);
  settle();
  EXPECT_EQ(a_.trace.drops(DropReason::kIcmpIgnored), 0u);
  EXPECT_TRUE(a_.port->next_deadline().is_never());
}

/// An IPv6 port whose neighbor is known, and advertisements in its name from another MAC.
class AdvertisementTest : public IpPortTest {
 protected:
  static constexpr MacAddress kOther{2, 0, 0, 0, 0, 0xc};

  void SetUp() override {
    open_v6();
    send(a_, b_, "x");
    settle();
    got_b_.clear();
    b_.device->is_cut = true;
  }
  /// As an answer of B, from kOther.
  void advertise(bool overrides) {
    Bytes frame(kIcmp + kNeighborMessageBytes);
    const Bytes& template_frame = b_.device->sent.back();
    std::copy_n(template_frame.begin(), kIcmp, frame.begin());
    emit_neighbor_message({.is_advertisement = true,
                           .is_solicited = true,
                           .overrides = overrides,
                           .target = address("fd00::2"),
                           .mac = kOther},
                          address("fd00::2"), address("fd00::1"), frame.data() + kIcmp);
    a_.device->inject(frame);
    receive(a_);
  }
  static constexpr std::size_t kIcmp = 14 + 40;
};

// [RFC 4861 7.2.5]
TEST_F(AdvertisementTest, without_override__keeps_the_mac_and_asks_there) {
  advertise(false);
  EXPECT_EQ(mac_of_next()[5], 0x0b);
  const std::size_t frames = a_.device->sent.size();
  advance(Duration::from_ms(100));
  ASSERT_EQ(a_.device->sent.size(), frames + 1);
  EXPECT_EQ(a_.device->sent.back()[5], 0x0b) << "the question goes to the known MAC";
  b_.device->is_cut = false;
  settle();
  EXPECT_TRUE(a_.port->next_deadline().is_never()) << "it was answered";
  EXPECT_EQ(mac_of_next()[5], 0x0b);
}

TEST_F(AdvertisementTest, without_override__is_believed_once_the_known_mac_does_not_answer) {
  advertise(false);
  for (int i = 0; i < 20; ++i) advance(Duration::from_ms(100));
  advertise(false);
  EXPECT_EQ(mac_of_next(), kOther);
}

TEST_F(AdvertisementTest, with_override__takes_the_place_of_the_known_mac) {
  advertise(true);
  EXPECT_EQ(mac_of_next(), kOther);
}

TEST_F(IpPortTest, neighbor__table_evicts_what_is_not_used) {
  IpPortConfig a = config_of("10.0.0.1");
  a.prefix_length = 8;
  a.neighbors.max_neighbors = 4;
  IpPortConfig b = config_of("10.0.0.2");
  b.prefix_length = 8;
  open(a, b);
  send(a_, b_, "keep");
  settle();
  for (std::uint32_t i = 0; i < 20; ++i) {
    send(a_, FabricAddress::from_v4(0x0a010000 + i), "x");
    for (int n = 0; n < 100; ++n) advance(Duration::from_ms(50));
  }
  EXPECT_LE(a_.port->neighbors().size(), 4u);
  EXPECT_EQ(a_.trace.drops(DropReason::kNoNeighbor), 20u);
}

TEST_F(IpPortTest, neighbor__table_full_of_open_questions_drops) {
  IpPortConfig a = config_of("10.0.0.1");
  a.neighbors.max_neighbors = 4;
  open(a, config_of("10.0.0.2"));
  a_.device->is_cut = true;
  for (std::uint32_t i = 0; i < 6; ++i) send(a_, FabricAddress::from_v4(0x0a000010 + i), "x");
  EXPECT_EQ(a_.trace.drops(DropReason::kNeighborTableFull), 2u);
}

TEST_F(IpPortTest, neighbor__is_asked_anew_after_the_link_was_away) {
  open_v4();
  send(a_, b_, "x");
  settle();
  // Another host with another MAC is behind the address now; the first one's packets go back to its pool before it goes.
  got_b_.clear();
  b_.open(config_of("10.0.0.2"), 0xc);
  a_.device->connect(*b_.device);
  b_.device->connect(*a_.device);
  ++a_.device->generation;
  receive(a_);
  send(a_, b_, "y");
  settle();
  EXPECT_EQ(got_b_.size(), 1u);
}

TEST_F(IpPortTest, arp__claim_of_our_address_is_a_conflict) {
  open_v4();
  IpPortConfig impostor = config_of("10.0.0.2");
  Host c;
  c.open(impostor, 0xc);
  c.device->connect(*b_.device);
  TxPacket tx = make(c, address("10.0.0.9"), "x");
  c.port->send(now_, {&tx, 1});
  settle();
  EXPECT_EQ(b_.trace.drops(DropReason::kAddressConflict), 1u);
}

TEST_F(IpPortTest, read_ip_config__says_what_is_wrong) {
  IpPortConfig config;
  std::string error;
  PortRequest request;
  request.spec = "dpdk:net_null0";
  EXPECT_FALSE(read_ip_config(request, config, error));
  EXPECT_NE(error.find("FI_UET_ADDR"), std::string::npos);
  request.address = address("224.0.0.5");
  EXPECT_FALSE(read_ip_config(request, config, error));
  request.address = address("10.0.0.1");
  request.prefix_length = 33;
  EXPECT_FALSE(read_ip_config(request, config, error));
  request.prefix_length = 0;
  request.gateway = address("fd00::1");
  EXPECT_FALSE(read_ip_config(request, config, error));
  request.gateway = FabricAddress();
  request.vlan = 4095;
  EXPECT_FALSE(read_ip_config(request, config, error));
  request.vlan = 0;
  EXPECT_TRUE(read_ip_config(request, config, error));
  EXPECT_EQ(config.prefix_length, 24u);
}

}  // namespace uet::net
