/// A capture says what it misses: settings, rings of files, packets cut short.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "apps/dump/ring.h"
#include "apps/dump/stats.h"
#include "lib/net/capture_file.h"
#include "tests/net/full_disk.h"
#include "tests/wire/vectors.h"

namespace uet::dump {
namespace {

using net::CaptureFile;
using net::CaptureFileConfig;

TEST(CaptureSetting, path_size_files_and_snap) {
  CaptureFileConfig config;
  std::string error;
  ASSERT_TRUE(CaptureFileConfig::parse("/tmp/a.pcapng,size=128k,files=9,snap=256", config, error));
  EXPECT_EQ(config.path, "/tmp/a.pcapng");
  EXPECT_EQ(config.file_bytes_max, 128U << 10);
  EXPECT_EQ(config.files, 9U);
  EXPECT_EQ(config.snap_bytes, 256U);
  CaptureFileConfig plain;
  ASSERT_TRUE(CaptureFileConfig::parse("a", plain, error));
  EXPECT_EQ(plain.file_bytes_max, 64U << 20);
  EXPECT_EQ(plain.files, 4U);
  EXPECT_EQ(plain.snap_bytes, 0U);
}

TEST(CaptureSetting, what_is_wrong_is_named) {
  for (const char* text :
       {"a,size=1", "a,size=2T", "a,files=0", "a,files=x", "a,snap=8", "a,snap=1M", "a,sizes=4M",
        "a,size", "a,size=99999999999999999999", ",size=4M", ""}) {
    CaptureFileConfig config;
    std::string error;
    EXPECT_FALSE(CaptureFileConfig::parse(text, config, error)) << text;
    EXPECT_NE(error.find("snap=256"), std::string::npos) << error;
  }
}

TEST(CapturePart, survives_the_way_through_a_comment) {
  const wire::CapturePart part{.capture = 17, .part = 3, .files = 4, .packets_before = 99};
  const auto read = wire::CapturePart::parse(part.to_comment());
  ASSERT_TRUE(read);
  EXPECT_EQ(read->to_comment(), part.to_comment());
  for (const char* text :
       {"", "uet capture", "uet capture 1, part 0, files kept 1, packets before 0",
        "uet capture 99999999999999999999, part 1, files kept 1, packets before 0"})
    EXPECT_FALSE(wire::CapturePart::parse(text)) << text;
}

class RingTest : public testing::Test {
 protected:
  RingTest()
      : directory_(std::filesystem::temp_directory_path() /
                   ("uet-ring-" + std::to_string(::getpid()))),
        path_((directory_ / "a.pcapng").string()) {
    std::filesystem::create_directories(directory_);
  }
  ~RingTest() override { std::filesystem::remove_all(directory_); }

  /// Packet n is n bytes long, from 1.
  void capture(unsigned packets, unsigned files, std::uint64_t started, std::uint32_t snap = 0) {
    std::string error;
    const auto file = CaptureFile::open({.path = path_,
                                         .interface_name = "",
                                         .file_bytes_max = 2000,
                                         .files = files,
                                         .snap_bytes = snap,
                                         .started_ns = started},
                                        error);
    ASSERT_NE(file, nullptr) << error;
    for (std::size_t n = 1; n <= packets; ++n)
      file->write({.data = std::vector<std::uint8_t>(n), .comment = {}});
  }
  /// Lengths on the wire, in the order in which the ring is read.
  std::vector<std::size_t> lengths(CaptureFiles& files) {
    wire::CaptureReader reader(files);
    wire::CapturedPacket packet;
    std::vector<std::size_t> out;
    while (reader.next(packet)) out.push_back(packet.wire_length);
    EXPECT_EQ(reader.error(), "");
    return out;
  }

  std::filesystem::path directory_;
  std::string path_;
};

TEST_F(RingTest, is_read_as_one_and_says_what_was_overwritten) {
  capture(100, 3, 5);
  CaptureFiles files;
  ASSERT_TRUE(files.open(path_));
  EXPECT_EQ(files.count(), 3U);
  const auto read = lengths(files);
  ASSERT_FALSE(read.empty());
  for (std::size_t i = 0; i < read.size(); ++i) EXPECT_EQ(read[i], files.packets_missing() + 1 + i);
  EXPECT_EQ(read.back(), 100U);
  EXPECT_GT(files.packets_missing(), 0U);
}

TEST_F(RingTest, a_ring_that_never_went_round_misses_nothing) {
  capture(3, 3, 5);
  CaptureFiles files;
  ASSERT_TRUE(files.open(path_));
  EXPECT_EQ(files.count(), 1U);
  EXPECT_EQ(files.packets_missing(), 0U);
  EXPECT_EQ(lengths(files).size(), 3U);
}

TEST_F(RingTest, files_of_an_earlier_capture_are_not_mixed_in) {
  capture(100, 3, 5);
  capture(3, 3, 6);
  CaptureFiles files;
  ASSERT_TRUE(files.open(path_));
  EXPECT_EQ(files.count(), 1U);
  EXPECT_EQ(lengths(files), std::vector<std::size_t>({1, 2, 3}));
}

TEST_F(RingTest, a_file_in_the_middle_that_is_gone_ends_the_search) {
  capture(100, 4, 5);
  std::filesystem::remove(path_ + ".2");
  CaptureFiles files;
  ASSERT_TRUE(files.open(path_));
  EXPECT_EQ(files.count(), 2U);
  EXPECT_EQ(lengths(files).front(), files.packets_missing() + 1);
}

TEST_F(RingTest, a_capture_of_another_program_is_read_alone) {
  capture(100, 3, 5);
  std::vector<std::uint8_t> foreign;
  wire::append_file_start(foreign, {wire::LinkType::kEthernet, "tcpdump", "eth0", "a comment"});
  std::FILE* file = std::fopen(path_.c_str(), "wb");
  std::fwrite(foreign.data(), 1, foreign.size(), file);
  std::fclose(file);
  CaptureFiles files;
  ASSERT_TRUE(files.open(path_));
  EXPECT_EQ(files.count(), 1U);
  EXPECT_FALSE(CaptureFiles().open("/nonexistent"));
}

TEST_F(RingTest, snap_keeps_the_length_on_the_wire) {
  capture(100, 1, 5, 64);
  CaptureFiles files;
  ASSERT_TRUE(files.open(path_));
  wire::CaptureReader reader(files);
  wire::CapturedPacket packet;
  while (reader.next(packet))
    EXPECT_EQ(packet.data.size(), std::min<std::size_t>(packet.wire_length, 64));
}

TEST_F(RingTest, packets_that_a_full_disk_costs_when_a_file_is_full__are_counted) {
  constexpr unsigned kWhileFull = 545, kMostUntilNextTry = 300;
  for (const unsigned bytes_free : {0U, 700U}) {
    testing::internal::CaptureStderr();
    std::string error;
    auto file = CaptureFile::open(
        {.path = path_, .interface_name = "", .file_bytes_max = 2000, .files = 4}, error);
    ASSERT_NE(file, nullptr) << error;
    unsigned packets = 0;
    const auto write = [&] {
      ++packets;
      const std::uint64_t lost = file->packets_lost();
      file->write({.data = std::vector<std::uint8_t>(100), .comment = {}});
      return file->packets_lost() == lost;
    };
    {
      const net::FullDisk full(bytes_free);
      while (packets < kWhileFull) write();
    }
    while (!write()) ASSERT_LT(packets, kWhileFull + kMostUntilNextTry);
    for (unsigned i = 0; i < 3; ++i) EXPECT_TRUE(write());
    const std::uint64_t packets_lost = file->packets_lost();
    file.reset();
    testing::internal::GetCapturedStderr();
    CaptureFiles files;
    ASSERT_TRUE(files.open(path_));
    wire::CaptureReader reader(files);
    wire::CapturedPacket packet;
    std::uint64_t seen = 0, lost = 0;
    while (reader.next(packet)) {
      ++seen;
      lost += packet.lost_before;
    }
    EXPECT_EQ(reader.error(), "");
    EXPECT_GT(lost, 0U);
    EXPECT_EQ(packets_lost, lost) << bytes_free;
    EXPECT_EQ(files.packets_missing() + lost + seen, packets) << bytes_free;
  }
}

TEST(CutPackets, count_with_their_payload_on_the_wire_and_are_no_fault) {
  for (const auto& golden : wire::test::golden_packets()) {
    if (!golden.is_frame) continue;
    const auto decode = [&](std::size_t kept) {
      return report_frame(wire::LinkType::kEthernet, std::span(golden.bytes).first(kept),
                          golden.bytes.size(), {});
    };
    const Report whole = decode(golden.bytes.size());
    const Report cut = decode(std::min<std::size_t>(golden.bytes.size(), 110));
    if (whole.find("ses") == nullptr || cut.find("ses") == nullptr) continue;
    EXPECT_EQ(cut.payload_wire_bytes, whole.payload_wire_bytes) << golden.bytes.size();
  }
}

TEST(Statistics, says_what_the_capture_misses_and_what_was_dropped) {
  Statistics sums;
  sums.set_packets_missing(7);
  sums.set_packets_missing_between(3);
  const std::vector<std::uint8_t> bytes(60);
  DecodedPacket packet;
  packet.captured.data = bytes;
  packet.captured.wire_length = 100;
  packet.captured.comment = "out pdc 1>2 drop impaired";
  sums.add(packet);
  const auto json = sums.to_json();
  EXPECT_EQ(json["packets_missing_before"], 7);
  EXPECT_EQ(json["packets_missing_between"], 3);
  EXPECT_EQ(json["packets_cut"], 1);
  EXPECT_EQ(json["drops"]["impaired"], 1);
  EXPECT_NE(sums.to_text().find("packets missing before"), std::string::npos);
  EXPECT_NE(sums.to_text().find("packets missing between"), std::string::npos);
}

}  // namespace
}  // namespace uet::dump
