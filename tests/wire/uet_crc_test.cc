#include "lib/wire/uet_crc.h"

#include <gtest/gtest.h>

#ifdef __x86_64__
#include <cpuid.h>
#include <immintrin.h>
#endif

#include <array>
#include <numeric>
#include <string_view>

#include "lib/base/byte_cursor.h"
#include "lib/wire/headers.h"
#include "tests/wire/vectors.h"

namespace uet::wire {
namespace {

std::uint32_t crc_of(const std::vector<std::uint8_t>& bytes) {
  return crc32c(bytes);
}

TEST(Crc32c, gives_the_known_answers) {
  constexpr std::string_view kDigits = "123456789";
  EXPECT_EQ(crc_of({kDigits.begin(), kDigits.end()}), 0xE3069283U);
  EXPECT_EQ(crc_of(std::vector<std::uint8_t>(32, 0)), 0x8A9136AAU);
  EXPECT_EQ(crc_of(std::vector<std::uint8_t>(32, 0xff)), 0x62A8AB43U);
  std::vector<std::uint8_t> up(32);
  std::iota(up.begin(), up.end(), std::uint8_t{0});
  EXPECT_EQ(crc_of(up), 0x46DD794EU);
  EXPECT_EQ(crc_of({up.rbegin(), up.rend()}), 0x113FDB5CU);
  EXPECT_EQ(crc32c({}), 0U);
}

TEST(Crc32c, goes_on_over_pieces) {
  std::vector<std::uint8_t> bytes(1000);
  std::iota(bytes.begin(), bytes.end(), std::uint8_t{7});
  const std::span<const std::uint8_t> all(bytes);
  for (const std::size_t cut : {0U, 1U, 7U, 500U, 999U, 1000U})
    EXPECT_EQ(crc32c(all.subspan(cut), crc32c(all.first(cut))), crc32c(all));
}

#ifdef __x86_64__
[[gnu::target("avx")]] void clear_upper_halves() {
  _mm256_zeroupper();
}

/// The upper halves of vector registers that the processor keeps, as bits of XINUSE: those of YMM and of ZMM0 to ZMM15.
[[gnu::target("xsave")]] std::uint64_t upper_halves_in_use() {
  return _xgetbv(1) & (1u << 2 | 1u << 6);
}

bool can_tell_what_is_in_use() {
  constexpr unsigned kXsaveLeaf = 0xd, kHasXinuse = 1u << 2;
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __builtin_cpu_supports("avx") && __get_cpuid_count(kXsaveLeaf, 1, &a, &b, &c, &d) != 0 &&
         (a & kHasXinuse) != 0;
}

// What comes after a CRC must not pay for the registers that it used.
TEST(UetCrc, leaves_the_upper_halves_of_vector_registers_unused) {
  if (!can_tell_what_is_in_use()) GTEST_SKIP() << "this processor does not say what is in use";
  clear_upper_halves();
  if (upper_halves_in_use() != 0) GTEST_SKIP() << "this processor takes them for in use always";
  const std::vector<std::uint8_t> bytes(9000, 1);
  const std::span<const std::uint8_t> all(bytes);
  const std::array<std::uint8_t, 16> address{};
  for (const std::size_t n : {16U, 255U, 256U, 1024U, 9000U}) {
    crc32c(all.first(n));
    EXPECT_EQ(upper_halves_in_use(), 0u) << n;
    clear_upper_halves();
    uet_crc({.source = address, .destination = address}, all.first(16), all.first(n));
    EXPECT_EQ(upper_halves_in_use(), 0u) << n;
    clear_upper_halves();
  }
}
#endif

/// Short packets, long ones and those in two pieces are computed in different ways.
TEST(UetCrc, is_that_of_front_and_packet_in_one_run) {
  std::vector<std::uint8_t> packet(600);
  std::iota(packet.begin(), packet.end(), std::uint8_t{3});
  std::array<std::uint8_t, 16> source{}, destination{};
  std::iota(source.begin(), source.end(), std::uint8_t{0x20});
  std::iota(destination.begin(), destination.end(), std::uint8_t{0x90});
  for (const bool is_v4 : {true, false}) {
    for (const bool is_udp : {true, false}) {
      const CrcPseudoHeader in_front{.source = source,
                                     .destination = destination,
                                     .is_v4 = is_v4,
                                     .is_udp = is_udp,
                                     .entropy = 0xc123,
                                     .udp_destination_port = 4793,
                                     .udp_length = 0x0189,
                                     .entropy_reserved = 0x4567};
      std::vector<std::uint8_t> front;
      const std::size_t first = is_v4 ? 12 : 0;
      front.insert(front.end(), source.begin() + first, source.end());
      front.insert(front.end(), destination.begin() + first, destination.end());
      const auto add = [&](std::uint16_t value) {
        front.push_back(static_cast<std::uint8_t>(value >> 8));
        front.push_back(static_cast<std::uint8_t>(value));
      };
      add(in_front.entropy);
      add(is_udp ? in_front.udp_destination_port : in_front.entropy_reserved);
      if (is_udp) {
        add(in_front.udp_length);
        add(0);
      }
      for (std::size_t size = 0; size <= packet.size(); ++size) {
        const std::span<const std::uint8_t> uet(packet.data(), size);
        const std::uint32_t expected = crc32c(uet, crc32c(front));
        ASSERT_EQ(uet_crc(in_front, uet), expected) << size;
        ASSERT_EQ(uet_crc(in_front, uet.first(size / 3), uet.subspan(size / 3)), expected) << size;
      }
    }
  }
}

/// The CRC of a golden frame computed from its addresses and headers, as a sender does.
TEST(UetCrc, matches_the_frames_of_the_specification) {
  int checked = 0;
  for (const test::VectorPacket& packet : test::golden_packets()) {
    if (packet.layers.back().layer != "crc") continue;
    std::array<std::uint8_t, 16> source{}, destination{};
    bool is_v4 = false, is_udp = false;
    CrcPseudoHeader front{source, destination};
    std::vector<std::uint8_t> uet;
    for (const test::VectorLayer& layer : packet.layers) {
      if (layer.layer == "ipv4") {
        const auto h = *parse<Ipv4Header>(layer.bytes);
        is_v4 = true;
        std::copy(h.src.begin(), h.src.end(), source.begin() + 12);
        std::copy(h.dst.begin(), h.dst.end(), destination.begin() + 12);
      } else if (layer.layer == "ipv6") {
        const auto h = *parse<Ipv6Header>(layer.bytes);
        source = h.src;
        destination = h.dst;
      } else if (layer.layer == "udp") {
        const auto h = *parse<UdpHeader>(layer.bytes);
        is_udp = true;
        front.entropy = h.src_port;
        front.udp_destination_port = h.dst_port;
        front.udp_length = h.length;
      } else if (layer.layer == "entropy") {
        front.entropy = parse<EntropyHeader>(layer.bytes)->entropy;
      } else if (layer.layer != "eth" && layer.layer != "crc") {
        uet.insert(uet.end(), layer.bytes.begin(), layer.bytes.end());
      }
    }
    front.is_v4 = is_v4;
    front.is_udp = is_udp;
    EXPECT_EQ(uet_crc(front, uet), base::load_be<std::uint32_t>(packet.layers.back().bytes.data()))
        << packet.name;
    ++checked;
  }
  EXPECT_EQ(checked, 3);
}

}  // namespace
}  // namespace uet::wire
