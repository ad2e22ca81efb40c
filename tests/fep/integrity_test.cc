#include "fep/integrity.h"

#include <gtest/gtest.h>

#include "lib/base/byte_cursor.h"
#include "lib/net/heap_packet_pool.h"
#include "lib/wire/uet_crc.h"

namespace uet::fep {
namespace {

using base::DropReason;

class IntegrityTest : public testing::Test {
 protected:
  net::RxPacket packet_of(std::initializer_list<std::uint8_t> bytes, std::uint8_t dscp = 0) {
    net::RxPacket rx{.packet = pool_.allocate(),
                     .source = peer_.address,
                     .destination = own_.address,
                     .entropy = 0xc001,
                     .tos = net::TosByte::of(dscp, 2)};
    std::copy(bytes.begin(), bytes.end(), rx.packet.append(bytes.size()));
    return rx;
  }
  /// Sealed at the peer, as it arrives here.
  net::RxPacket sealed(std::initializer_list<std::uint8_t> bytes) {
    net::RxPacket rx = packet_of(bytes);
    net::TxPacket tx{.packet = std::move(rx.packet),
                     .destination = own_.address,
                     .entropy = rx.entropy,
                     .tos = {}};
    Integrity(DataProtection::kCrc, peer_, kDscps).seal(tx);
    rx.packet = std::move(tx.packet);
    return rx;
  }

  static constexpr std::uint8_t kTrimmed = 26, kLastHop = 28;
  static constexpr net::TrimmedDscps kDscps{kTrimmed, kLastHop};
  net::PortFacts own_{.address = net::FabricAddress::from_v4(0x0a000001)};
  net::PortFacts peer_{.address = net::FabricAddress::from_v4(0x0a000002)};
  net::HeapPacketPool pool_{4, 2048};
  Integrity crc_{DataProtection::kCrc, own_, kDscps};
  Integrity none_{DataProtection::kNone, own_, kDscps};
};

TEST_F(IntegrityTest, open__refuses_what_is_too_short_to_have_a_type) {
  auto empty = packet_of({}), one = packet_of({0x10}),
       no_room_for_crc = packet_of({0x10, 0, 1, 2, 3});
  EXPECT_EQ(crc_.open(empty), DropReason::kTruncated);
  EXPECT_EQ(none_.open(one), DropReason::kTruncated);
  EXPECT_EQ(crc_.open(no_room_for_crc), DropReason::kTruncated);
}

TEST_F(IntegrityTest, open__refuses_secured_packets) {
  auto secured = packet_of({1 << 3, 0, 0, 0, 0, 0, 0, 0});
  EXPECT_EQ(crc_.open(secured), DropReason::kTssUnexpected);
  EXPECT_EQ(none_.open(secured), DropReason::kTssUnexpected);
}

// Covers: PDS-74
TEST_F(IntegrityTest, open__removes_the_trailer_that_seal_added) {
  auto rx = sealed({0x10, 0, 1, 2, 3, 4, 5});
  ASSERT_EQ(rx.packet.size(), 11u);
  EXPECT_EQ(crc_.open(rx), std::nullopt);
  EXPECT_EQ(rx.packet.size(), 7u);
}

TEST_F(IntegrityTest, open__notices_changed_bytes_addresses_and_source_port) {
  auto byte = sealed({0x10, 0, 1, 2, 3, 4, 5}), address = sealed({0x10, 0, 1, 2, 3, 4, 5}),
       port = sealed({0x10, 0, 1, 2, 3});
  byte.packet.data()[6] ^= 1;
  address.source = net::FabricAddress::from_v4(0x0a000003);
  port.entropy ^= 1;
  EXPECT_EQ(crc_.open(byte), DropReason::kBadCrc);
  EXPECT_EQ(crc_.open(address), DropReason::kBadCrc);
  EXPECT_EQ(crc_.open(port), DropReason::kBadCrc);
}

// [WIRE 1.1, 2.8] No packet is dropped for a reserved bit, and the CRC covers those of the entropy header as they came.
TEST_F(IntegrityTest, open__takes_reserved_bits_of_the_entropy_header) {
  own_.udp_encapsulation = false;
  const Integrity native(DataProtection::kCrc, own_, kDscps);
  for (const std::uint16_t reserved : {0, 1, 0x8000}) {
    auto rx = packet_of({0x10, 0, 1, 2, 3, 4, 5});
    rx.entropy_reserved = reserved;
    const std::uint32_t crc = wire::uet_crc({.source = rx.source.bytes(),
                                             .destination = rx.destination.bytes(),
                                             .is_udp = false,
                                             .entropy = rx.entropy,
                                             .entropy_reserved = reserved},
                                            rx.packet.bytes());
    base::store_be(rx.packet.append(kCrcBytes), crc);
    EXPECT_EQ(native.open(rx), std::nullopt) << reserved;
  }
}

// [decision 168]
TEST_F(IntegrityTest, seal__tells_the_port_of_a_process_that_shares_its_address) {
  peer_.address = peer_.address.with_udp_port(20480);
  auto rx = sealed({0x10, 0, 1, 2, 3, 4, 5});
  ASSERT_EQ(rx.packet.size(), 15u);
  EXPECT_EQ(rx.packet.data()[0], 31 << 3);
  rx.source = peer_.address.host();  // all that a port knows
  EXPECT_EQ(crc_.open(rx), std::nullopt);
  EXPECT_EQ(rx.source, peer_.address);
  ASSERT_EQ(rx.packet.size(), 7u);
  EXPECT_EQ(rx.packet.data()[0], 0x10);
}

TEST_F(IntegrityTest, open__notices_a_changed_return_port) {
  peer_.address = peer_.address.with_udp_port(20480);
  auto rx = sealed({0x10, 0, 1, 2, 3});
  rx.packet.data()[3] ^= 1;
  EXPECT_EQ(crc_.open(rx), DropReason::kBadCrc);
}

TEST_F(IntegrityTest, open__refuses_what_stands_behind_a_return_port_and_is_no_packet) {
  auto nothing = packet_of({31 << 3, 0, 0x50, 0}), one = packet_of({31 << 3, 0, 0x50, 0, 0x10}),
       secured = packet_of({31 << 3, 0, 0x50, 0, 1 << 3, 0, 0, 0});
  EXPECT_EQ(none_.open(nothing), DropReason::kTruncated);
  EXPECT_EQ(none_.open(one), DropReason::kTruncated);
  EXPECT_EQ(none_.open(secured), DropReason::kTssUnexpected);
}

// Answers to a forged address reach no service there.
TEST_F(IntegrityTest, open__refuses_return_ports_of_others) {
  auto below = packet_of({31 << 3, 0, 0x4f, 0xff, 0x10, 0, 1}),
       above = packet_of({31 << 3, 0, 0x51, 0, 0x10, 0, 1}),
       last = packet_of({31 << 3, 0, 0x50, 0xff, 0x10, 0, 1});
  EXPECT_EQ(none_.open(below), DropReason::kNotUet);
  EXPECT_EQ(none_.open(above), DropReason::kNotUet);
  EXPECT_EQ(none_.open(last), std::nullopt);
  peer_.address = *net::FabricAddress::parse("fd00::2");
  auto v6 = packet_of({31 << 3, 0, 0x50, 0, 0x10, 0, 1});
  EXPECT_EQ(none_.open(v6), DropReason::kNotUet);
}

TEST_F(IntegrityTest, seal__counts_the_port_of_a_shared_destination) {
  auto to_usual_port = sealed({0x10, 0, 1, 2, 3});
  own_.address = own_.address.with_udp_port(20481);
  auto to_shared_port = sealed({0x10, 0, 1, 2, 3});
  const Integrity shared(DataProtection::kCrc, own_, kDscps);
  to_usual_port.destination = own_.address;
  EXPECT_EQ(shared.open(to_usual_port), DropReason::kBadCrc);
  EXPECT_EQ(shared.open(to_shared_port), std::nullopt);
}

TEST_F(IntegrityTest, open__ignores_dscp_and_ecn) {
  auto rx = sealed({0x10, 0, 1, 2, 3, 4, 5});
  rx.tos = net::TosByte::of(46, 3);
  EXPECT_EQ(crc_.open(rx), std::nullopt);
}

TEST_F(IntegrityTest, open__takes_a_trimmed_packet_as_it_is) {
  auto trimmed = packet_of({0x10, 0, 1, 2, 3, 4}, kTrimmed),
       last_hop = packet_of({0x10, 0, 1, 2, 3, 4}, kLastHop);
  EXPECT_EQ(crc_.open(trimmed), std::nullopt);
  EXPECT_EQ(crc_.open(last_hop), std::nullopt);
  EXPECT_EQ(trimmed.packet.size(), 6u);
}

TEST_F(IntegrityTest, open__believes_no_dscp_that_the_port_cannot_see) {
  own_.reports_tos = false;
  const Integrity blind(DataProtection::kCrc, own_, kDscps);
  auto rx = packet_of({0x10, 0, 1, 2, 3, 4, 5}, kTrimmed);
  EXPECT_EQ(blind.open(rx), DropReason::kBadCrc);
}

}  // namespace
}  // namespace uet::fep
