/// What FI_UET_PCAP writes can be read and says what happened.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <optional>

#include "apps/dump/report.h"
#include "lib/net/capture_port.h"
#include "lib/net/heap_packet_pool.h"
#include "lib/wire/capture_reader.h"
#include "lib/wire/headers.h"
#include "tests/net/full_disk.h"

namespace uet::net {
namespace {

using base::Instant;

/// Hands out one prepared packet per receive() and takes at most `room` per send().
class ScriptedPort final : public Port {
 public:
  explicit ScriptedPort(PacketPool& pool, bool native) : pool_(pool) {
    facts_.name = "test";
    facts_.address = FabricAddress::from_v4(0x0a141e02);
    facts_.udp_encapsulation = !native;
  }
  const PortFacts& facts() const override { return facts_; }
  PacketPool& pool() override { return pool_; }
  std::size_t receive(Instant, std::span<RxPacket> out) override {
    if (!has_packet) return 0;
    has_packet = false;
    out[0] = std::move(next);
    return 1;
  }
  std::size_t send(Instant, std::span<TxPacket> in) override {
    const std::size_t n = std::min(room, in.size());
    for (std::size_t i = 0; i < n; ++i) in[i].packet.reset();
    return n;
  }

  RxPacket next;
  bool has_packet = false;
  std::size_t room = 1;

 private:
  PacketPool& pool_;
  PortFacts facts_;
};

class FileSource final : public wire::ByteSource {
 public:
  explicit FileSource(const std::string& path) : file_(std::fopen(path.c_str(), "rb")) {}
  ~FileSource() override {
    if (file_ != nullptr) std::fclose(file_);
  }
  std::size_t read(std::span<std::uint8_t> out) override {
    return file_ == nullptr ? 0 : std::fread(out.data(), 1, out.size(), file_);
  }

 private:
  std::FILE* file_;
};

struct Seen {
  std::string comment;
  std::vector<std::uint8_t> data;
  std::uint64_t time_ns;
  bool is_inbound;
};

std::vector<Seen> read_all(const std::string& path) {
  FileSource source(path);
  wire::CaptureReader reader(source);
  wire::CapturedPacket p;
  std::vector<Seen> out;
  while (reader.next(p))
    out.push_back({p.comment, {p.data.begin(), p.data.end()}, p.time_ns, p.is_inbound});
  EXPECT_EQ(reader.error(), "");
  return out;
}

class CaptureTest : public testing::TestWithParam<bool> {
 protected:
  CaptureTest() : pool_(64, 2048), trace_(64) {
    directory_ = std::filesystem::temp_directory_path() /
                 ("uet-capture-" + std::to_string(::getpid()) + (GetParam() ? "n" : "u"));
    std::filesystem::create_directories(directory_);
    path_ = (directory_ / "a.pcapng").string();
  }
  ~CaptureTest() override { std::filesystem::remove_all(directory_); }

  std::unique_ptr<CapturePort> open(std::uint64_t bytes_max = 1 << 20, unsigned files = 2) {
    auto inner = std::make_unique<ScriptedPort>(pool_, GetParam());
    inner_ = inner.get();
    std::string error;
    auto file = CaptureFile::open(
        {.path = path_, .interface_name = "test", .file_bytes_max = bytes_max, .files = files},
        error);
    EXPECT_NE(file, nullptr) << error;
    return std::make_unique<CapturePort>(
        std::move(inner), std::move(file), [this] { return unix_ns_at_zero_; }, trace_);
  }
  Packet request(std::uint16_t spdcid, std::uint16_t dpdcid) {
    Packet packet = pool_.allocate();
    wire::emit(wire::PdsRequest{.clear_psn_offset = -1, .spdcid = spdcid, .dpdcid = dpdcid},
               packet.append(wire::PdsRequest::kSize));
    return packet;
  }
  void offer(std::uint16_t spdcid) {
    inner_->next.packet = request(spdcid, 7);
    inner_->next.source = FabricAddress::from_v4(0x0a141e01);
    inner_->next.destination = inner_->facts().address;
    inner_->next.entropy = 0xc000;
    inner_->has_packet = true;
  }

  HeapPacketPool pool_;
  base::Trace trace_;
  std::int64_t unix_ns_at_zero_ = 1'000'000;
  std::filesystem::path directory_;
  std::string path_;
  ScriptedPort* inner_ = nullptr;
};

INSTANTIATE_TEST_SUITE_P(Encapsulations, CaptureTest, testing::Bool());

// The time of day is set, or the host is suspended, which stops the monotonic clock.
TEST_P(CaptureTest, times_follow_the_time_of_day_within_a_second_and_in_each_new_file) {
  constexpr std::int64_t kSecond = 1'000'000'000;
  const auto send = [&](CapturePort& port, std::int64_t at_ns) {
    std::array<TxPacket, 1> tx;
    tx[0].packet = request(7, 5);
    tx[0].destination = FabricAddress::from_v4(0x0a141e01);
    EXPECT_EQ(port.send(Instant::from_ns(at_ns), tx), 1U);
  };
  constexpr int kInFirstFile = 3, kMost = 100;
  {
    auto port = open(1500);
    for (int i = 0; i < kInFirstFile; ++i) send(*port, i);
    unix_ns_at_zero_ += 7 * kSecond;
    for (int i = kInFirstFile; i < kMost && !std::filesystem::exists(path_ + ".1"); ++i)
      send(*port, i);
  }
  const auto first = read_all(path_ + ".1"), second = read_all(path_);
  ASSERT_GT(first.size(), 3U);
  ASSERT_EQ(second.size(), 1U);
  EXPECT_EQ(first[kInFirstFile].time_ns, 1'000'003U) << "the old offset, for less than a second";
  EXPECT_EQ(second[0].time_ns, 7 * kSecond + 1'000'000U + first.size());
  {
    auto port = open();
    send(*port, 0);
    unix_ns_at_zero_ += 7 * kSecond;
    send(*port, kSecond - 1);
    send(*port, kSecond);
  }
  const auto one_file = read_all(path_);
  ASSERT_EQ(one_file.size(), 3U);
  EXPECT_EQ(one_file[1].time_ns - one_file[0].time_ns, kSecond - 1U);
  EXPECT_EQ(one_file[2].time_ns - one_file[0].time_ns, 8U * kSecond);
}

TEST_P(CaptureTest, both_directions_with_pdc_and_drop_reason) {
  {
    auto port = open();
    std::array<RxPacket, 4> rx;
    offer(5);
    ASSERT_EQ(port->receive(Instant::from_ns(10), rx), 1U);
    trace_.emit(Instant::from_ns(10), base::EventId::kPacketReceived);
    trace_.drop(Instant::from_ns(10), base::DropReason::kUnknownPdc, wire::PdsRequest::kSize);
    offer(6);
    ASSERT_EQ(port->receive(Instant::from_ns(20), rx), 1U);
    trace_.emit(Instant::from_ns(20), base::EventId::kPacketReceived);
    trace_.drop(Instant::from_ns(20), base::DropReason::kTooLarge, 9000);  // of another source
    std::array<TxPacket, 2> tx;
    for (auto& t : tx) {
      t.packet = request(7, 5);
      t.destination = FabricAddress::from_v4(0x0a141e01);
    }
    EXPECT_EQ(port->send(Instant::from_ns(30), tx), 1U);  // the second does not fit
    rx = {};
    tx = {};
  }
  const auto seen = read_all(path_);
  ASSERT_EQ(seen.size(), 3U);
  EXPECT_EQ(seen[0].comment, "in pdc 5>7 drop unknown-pdc");
  EXPECT_EQ(seen[1].comment, "in pdc 6>7");
  EXPECT_EQ(seen[2].comment, "out pdc 7>5");
  EXPECT_EQ(seen[0].time_ns, 1'000'010U);
  EXPECT_TRUE(seen[0].is_inbound);
  EXPECT_FALSE(seen[2].is_inbound);
  for (const Seen& s : seen) {
    const auto report = dump::report_frame(wire::LinkType::kEthernet, s.data, s.data.size(),
                                           wire::DissectOptions{});
    EXPECT_TRUE(report.problems.empty());  // the made-up headers are as good as real ones
    EXPECT_NE(report.find("pds"), nullptr);
  }
}

// CRC and ICV cover these bits as they came: a reader of the capture needs them.
TEST_P(CaptureTest, reserved_bits_of_the_entropy_header_are_kept) {
  {
    auto port = open();
    std::array<RxPacket, 1> rx;
    offer(5);
    inner_->next.entropy_reserved = 0x8001;
    ASSERT_EQ(port->receive(Instant::from_ns(10), rx), 1U);
    rx = {};
  }
  const auto seen = read_all(path_);
  ASSERT_EQ(seen.size(), 1U);
  const std::size_t behind_entropy =
      wire::EthernetHeader::kSize + wire::Ipv4Header::kSize + sizeof(std::uint16_t);
  const bool is_native = GetParam();
  EXPECT_EQ(base::load_be<std::uint16_t>(seen[0].data.data() + behind_entropy),
            is_native ? 0x8001 : wire::kUdpPort);
}

TEST_P(CaptureTest, old_files_move_up_and_the_oldest_goes) {
  {
    auto port = open(600, 3);
    std::array<RxPacket, 4> rx;
    for (std::uint16_t i = 1; i <= 60; ++i) {
      offer(i);
      ASSERT_EQ(port->receive(Instant::from_ns(i), rx), 1U);
    }
    rx = {};
  }
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(directory_)) {
    ++files;
    EXPECT_LE(entry.file_size(), 600U);
  }
  EXPECT_EQ(files, 3U);
  EXPECT_EQ(read_all(path_).back().comment, "in pdc 60>7");
  EXPECT_FALSE(read_all(path_ + ".1").empty());
  EXPECT_FALSE(read_all(path_ + ".2").empty());
}

TEST_P(CaptureTest, what_the_test_tool_loses_is_written_with_that_reason) {
  for (const char* direction : {"rx", "tx"}) {
    {
      auto scripted = std::make_unique<ScriptedPort>(pool_, GetParam());
      inner_ = scripted.get();
      std::string error;
      ImpairConfig all_lost;
      ASSERT_TRUE(ImpairConfig::parse(std::string(direction) + "_loss=1", all_lost, error))
          << error;
      CapturePort port(
          std::make_unique<ImpairPort>(std::move(scripted), all_lost, trace_),
          CaptureFile::open({.path = path_, .interface_name = ""}, error),
          [] { return std::int64_t{0}; }, trace_);
      std::array<RxPacket, 1> rx;
      std::array<TxPacket, 1> tx;
      tx[0].packet = request(7, 5);
      tx[0].destination = FabricAddress::from_v4(0x0a141e01);
      offer(5);
      const bool is_rx = direction[0] == 'r';
      EXPECT_EQ(port.receive(Instant::from_ns(1), rx), is_rx ? 0U : 1U);
      EXPECT_EQ(port.send(Instant::from_ns(2), tx), 1U);
      rx = {};
      inner_ = nullptr;
    }
    const auto seen = read_all(path_);
    ASSERT_EQ(seen.size(), 2U);
    EXPECT_EQ(seen[0].comment, direction[0] == 'r' ? "in pdc 5>7 drop impaired" : "in pdc 5>7");
    EXPECT_EQ(seen[1].comment, direction[0] == 't' ? "out pdc 7>5 drop impaired" : "out pdc 7>5");
  }
}

TEST(CaptureFile, says_when_it_cannot_be_written) {
  std::string error;
  EXPECT_EQ(CaptureFile::open({.path = "/nonexistent/x.pcapng", .interface_name = ""}, error),
            nullptr);
  EXPECT_NE(error.find("/nonexistent/x.pcapng"), std::string::npos);
}

TEST(CaptureFile, a_full_disk__costs_packets_which_are_counted) {
  std::string error;
  const auto file = CaptureFile::open({.path = "/dev/full", .interface_name = ""}, error);
  ASSERT_NE(file, nullptr);
  testing::internal::CaptureStderr();
  const std::vector<std::uint8_t> big(100'000);
  for (int i = 0; i < 3; ++i) file->write({.data = big, .comment = {}});
  EXPECT_GT(file->packets_lost(), 0U);
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("cannot write /dev/full: No space left on device"), std::string::npos)
      << said;
}

TEST_P(CaptureTest, a_disk_that_was_full__leaves_a_gap_that_is_counted) {
  std::optional<FullDisk> full;
  testing::internal::CaptureStderr();
  std::uint64_t lost = 0;
  constexpr std::uint16_t kAll = 1500;
  {
    auto port = open();
    std::array<RxPacket, 1> rx;
    for (std::uint16_t i = 1; i <= kAll; ++i) {
      if (i == 1) full.emplace(10'001);
      if (i == 500) full.reset();
      offer(i);
      ASSERT_EQ(port->receive(Instant::from_ns(i), rx), 1U);
    }
    lost = port->file().packets_lost();
    rx = {};
  }
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("cannot write " + path_), std::string::npos) << said;
  const auto seen = read_all(path_);
  EXPECT_GT(lost, 100U);
  EXPECT_EQ(seen.size(), kAll - lost);
  EXPECT_EQ(seen.back().comment, "in pdc " + std::to_string(kAll) + ">7");
}

TEST(CaptureFile, a_packet__names_how_many_before_it_are_missing) {
  std::vector<std::uint8_t> with, without;
  wire::append_packet(without, {.comment = {}});
  wire::append_packet(with, {.comment = {}, .lost_before = 0x0102});
  const std::array<std::uint8_t, 12> option = {0, 4, 0, 8, 0, 0, 0, 0, 0, 0, 1, 2};
  EXPECT_EQ(with.size(), without.size() + option.size());
  EXPECT_NE(std::search(with.begin(), with.end(), option.begin(), option.end()), with.end());
}

}  // namespace
}  // namespace uet::net
