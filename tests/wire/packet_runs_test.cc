// Frames that hold a run of packets, as captures beside a kernel-UDP port have them.
#include "lib/wire/packet_runs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "apps/dump/report.h"
#include "lib/wire/net_headers.h"
#include "lib/wire/uet_crc.h"
#include "tests/wire/vectors.h"

namespace uet::wire {
namespace {

using test::golden_packets;
using Bytes = std::vector<std::uint8_t>;

constexpr std::size_t kIp = EthernetHeader::kSize, kUdp = kIp + Ipv4Header::kSize,
                      kUet = kUdp + UdpHeader::kSize;

/// Ethernet, IPv4 and UDP in front of `uet`, with lengths that fit.
Bytes frame_of(const Bytes& uet) {
  Bytes frame = test::from_hex(
      "02000000000202000000000108004500000000004000401100000a0000010a000002c00112b900000000");
  frame.insert(frame.end(), uet.begin(), uet.end());
  const auto store = [&](std::size_t at, std::size_t value) {
    frame[at] = static_cast<std::uint8_t>(value >> 8);
    frame[at + 1] = static_cast<std::uint8_t>(value);
  };
  store(kIp + 2, frame.size() - kIp);
  store(kUdp + 4, frame.size() - kUdp);
  store(kIp + 10, ipv4_checksum(std::span(frame).subspan(kIp, Ipv4Header::kSize)));
  return frame;
}

Bytes with_crc(Bytes uet) {
  uet.resize(uet.size() + kUetCrcBytes);
  const Bytes frame = frame_of(uet);
  const std::span all(frame);
  std::uint32_t crc = crc32c(all.subspan(kIp + 12, 8));
  crc = crc32c(all.subspan(kUdp, UdpHeader::kSize), crc);
  crc = crc32c(all.subspan(kUet, uet.size() - kUetCrcBytes), crc);
  for (int i = 0; i < 4; ++i)
    uet[uet.size() - 4 + static_cast<std::size_t>(i)] =
        static_cast<std::uint8_t>(crc >> (24 - 8 * i));
  return uet;
}

Bytes run_of(const std::vector<Bytes>& packets) {
  Bytes all;
  for (const Bytes& packet : packets) all.insert(all.end(), packet.begin(), packet.end());
  return frame_of(all);
}

struct Cut {
  std::vector<Bytes> packets;
  std::vector<std::size_t> wire_lengths;
  bool has_missed = false;
};

/// What a reader gets of a capture with this frame alone, of which `captured` bytes are there.
Cut cut(const Bytes& frame, const DissectOptions& options = {}, std::size_t captured = SIZE_MAX) {
  RunCutter cutter(options);
  const std::span<const std::uint8_t> data =
      std::span(frame).first(std::min(captured, frame.size()));
  CapturedPacket in{
      .link = LinkType::kEthernet, .wire_length = frame.size(), .data = data, .comment = {}};
  Cut out;
  if (cutter.begin(in))
    for (CapturedPacket packet; cutter.next(packet);) {
      out.packets.emplace_back(packet.data.begin(), packet.data.end());
      out.wire_lengths.push_back(packet.wire_length);
    }
  out.has_missed = cutter.has_missed();
  return out;
}

std::vector<Bytes> frames_of(const std::vector<Bytes>& packets) {
  std::vector<Bytes> out;
  for (const Bytes& packet : packets) out.push_back(frame_of(packet));
  return out;
}

/// One that begins with the first UET byte.
Bytes golden(std::size_t at_least) {
  for (const auto& packet : golden_packets())
    if (!packet.is_frame && !packet.is_sealed && packet.bytes.size() >= at_least)
      return packet.bytes;
  return {};
}

/// Under the key of one domain; what is behind the header looks like chance.
Bytes sealed(std::uint8_t counter, std::size_t bytes) {
  Bytes packet = {static_cast<std::uint8_t>(static_cast<unsigned>(PdsType::kTss) << 3),
                  1,
                  2,
                  3,
                  0,
                  1,
                  0,
                  0,
                  0,
                  0,
                  0,
                  counter};
  std::uint32_t state = counter;
  while (packet.size() < bytes) {
    state = state * 1'664'525 + 1'013'904'223;
    packet.push_back(static_cast<std::uint8_t>(state >> 24));
  }
  return packet;
}

TEST(RunCutter, begin__every_kind_of_packet_with_a_crc_is_cut_out_of_its_run) {
  for (const auto& vector : golden_packets()) {
    if (vector.is_frame || vector.is_sealed) continue;
    const Bytes packet = with_crc(vector.bytes);
    const std::vector<Bytes> run(3, packet);
    EXPECT_EQ(cut(run_of(run)).packets, frames_of(run)) << vector.name;
    EXPECT_TRUE(cut(frame_of(packet)).packets.empty()) << vector.name << " alone is no run";
  }
}

TEST(RunCutter, begin__the_last_packet_may_be_shorter) {
  for (const auto& vector : golden_packets()) {
    if (vector.is_frame || vector.is_sealed || vector.bytes.size() <= 12) continue;
    const Bytes packet = with_crc(vector.bytes);
    Bytes last = with_crc(Bytes(vector.bytes.begin(), vector.bytes.begin() + 12));
    const std::vector<Bytes> run = {packet, packet, last};
    EXPECT_EQ(cut(run_of(run)).packets, frames_of(run)) << vector.name;
  }
}

TEST(RunCutter, begin__sealed_packets_are_told_apart_by_their_headers) {
  const std::vector<Bytes> run = {sealed(1, 1100), sealed(2, 1100), sealed(3, 1100), sealed(4, 60)};
  EXPECT_EQ(cut(run_of(run)).packets, frames_of(run));
  EXPECT_TRUE(cut(frame_of(sealed(1, 1100))).packets.empty());
}

TEST(RunCutter, begin__packets_without_crc_are_cut_where_none_has_a_problem) {
  int runs = 0;
  for (const auto& vector : golden_packets()) {
    if (vector.is_frame || vector.is_sealed) continue;
    EXPECT_TRUE(cut(frame_of(vector.bytes)).packets.empty()) << vector.name;
    const std::vector<Bytes> run(3, vector.bytes);
    const auto frame = frame_of(vector.bytes);
    const bool is_clean =
        dump::report_frame(LinkType::kEthernet, frame, frame.size(), {.crc = CrcPolicy::kNever})
            .problems.empty();
    if (!is_clean) continue;
    const Cut got = cut(run_of(run), {.crc = CrcPolicy::kNever});
    runs += got.packets == frames_of(run) ? 1 : 0;
  }
  EXPECT_GT(runs, 10);
}

TEST(RunCutter, begin__damage_makes_no_run) {
  Bytes packet = with_crc(golden(60));
  packet.back() ^= 1;
  EXPECT_TRUE(cut(frame_of(packet)).packets.empty());
  packet.resize(packet.size() + 7);
  EXPECT_TRUE(cut(frame_of(packet)).packets.empty());
}

/// Payload that looks like the beginning of a TSS packet, in which nothing can be a problem, where another packet could begin.
TEST(RunCutter, begin__damage_makes_no_run_whatever_the_payload_is) {
  for (const std::size_t payload : {2048u, 4096u}) {
    Bytes packet = golden(60);
    const std::size_t headers = packet.size();
    packet.resize(headers + payload, 0x0a);
    packet = with_crc(packet);
    packet.back() ^= 1;
    EXPECT_TRUE(cut(frame_of(packet)).packets.empty()) << payload;
  }
}

TEST(RunCutter, begin__equal_bytes_are_no_more_packets_than_a_run_has) {
  EXPECT_LE(cut(frame_of(Bytes(60'000, 0x08))).packets.size(), 128u + 1);
}

TEST(RunCutter, next__a_capture_that_cut_the_run_gives_what_is_there_and_says_so) {
  const Bytes packet = with_crc(golden(40));
  const std::vector<Bytes> run(3, packet);
  const Cut got = cut(run_of(run), {}, kUet + packet.size() + 10);
  ASSERT_EQ(got.packets.size(), 2u);
  EXPECT_EQ(got.packets[1].size(), kUet + 10);
  EXPECT_EQ(got.wire_lengths[1], kUet + packet.size());
  EXPECT_TRUE(got.has_missed);
}

TEST(RunCutter, begin__what_is_longer_than_any_packet_and_cannot_be_cut_is_told) {
  const Cut got = cut(frame_of(Bytes(20'000, 0x5a)));
  EXPECT_TRUE(got.packets.empty());
  EXPECT_TRUE(got.has_missed);
}

}  // namespace
}  // namespace uet::wire
