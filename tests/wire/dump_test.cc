/// Capture files, filters, statistics and printing.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "apps/dump/filter.h"
#include "apps/dump/line.h"
#include "apps/dump/stats.h"
#include "lib/wire/pcapng_writer.h"
#include "tests/wire/vectors.h"

namespace uet::dump {
namespace {

using wire::test::golden_packets;
using Bytes = std::vector<std::uint8_t>;

class MemorySource : public wire::ByteSource {
 public:
  explicit MemorySource(Bytes bytes) : bytes_(std::move(bytes)) {}
  std::size_t read(std::span<std::uint8_t> out) override {
    const std::size_t n = std::min(out.size(), bytes_.size() - at_);
    std::copy_n(bytes_.begin() + static_cast<long>(at_), n, out.begin());
    at_ += n;
    return n;
  }

 private:
  Bytes bytes_;
  std::size_t at_ = 0;
};

DecodedPacket decoded(const Bytes& bytes, wire::LinkType link, std::uint64_t ns = 0) {
  DecodedPacket p;
  p.number = 1;
  p.captured = {
      .link = link, .time_ns = ns, .wire_length = bytes.size(), .data = bytes, .comment = {}};
  p.report = report_frame(link, bytes, bytes.size(), wire::DissectOptions{});
  return p;
}
DecodedPacket golden(std::size_t i) {
  const auto& p = golden_packets()[i];
  return decoded(p.bytes, p.is_frame ? wire::LinkType::kEthernet : wire::LinkType::kUet);
}
std::string error_of(const Bytes& file) {
  MemorySource source(file);
  wire::CaptureReader reader(source);
  wire::CapturedPacket packet;
  while (reader.next(packet)) {
  }
  return reader.error();
}

TEST(Pcapng, what_is_written_can_be_read) {
  Bytes file;
  wire::append_file_start(file, {wire::LinkType::kEthernet, "test", "if0"});
  const auto& frame = golden_packets()[0].bytes;
  wire::append_packet(file, {.time_ns = 1'700'000'000'123'456'789,
                             .data = frame,
                             .direction = wire::PacketDirection::kInbound,
                             .comment = "in pdc 1>2"});
  wire::append_packet(file, {.data = std::span(frame).first(50),
                             .wire_length = 113,
                             .direction = wire::PacketDirection::kOutbound,
                             .comment = {}});
  MemorySource source(file);
  wire::CaptureReader reader(source);
  wire::CapturedPacket packet;
  ASSERT_TRUE(reader.next(packet));
  EXPECT_EQ(packet.time_ns, 1'700'000'000'123'456'789U);
  EXPECT_EQ(packet.comment, "in pdc 1>2");
  EXPECT_TRUE(packet.is_inbound);
  EXPECT_TRUE(std::equal(packet.data.begin(), packet.data.end(), frame.begin(), frame.end()));
  ASSERT_TRUE(reader.next(packet));
  EXPECT_TRUE(packet.is_outbound);
  EXPECT_EQ(packet.data.size(), 50U);
  EXPECT_EQ(packet.wire_length, 113U);
  EXPECT_FALSE(reader.next(packet));
  EXPECT_EQ(reader.error(), "");
}

TEST(CaptureReader, says_why_it_stops) {
  EXPECT_EQ(error_of({}), "the file is empty");
  EXPECT_EQ(error_of(Bytes(24, 7)), "neither a pcap nor a pcapng file");
  EXPECT_EQ(error_of({0xa1, 0xb2, 0xc3, 0xd4, 0, 2}),
            "the file ends in the middle of a packet or block");
  Bytes pcap = {0xa1, 0xb2, 0xc3, 0xd4, 0, 2, 0,   4,   0, 0, 0, 0,
                0,    0,    0,    0,    0, 0, 255, 255, 0, 0, 0, 1};
  EXPECT_EQ(error_of(pcap), "");
  Bytes huge = pcap;
  huge.insert(huge.end(), {0, 0, 0, 1, 0, 0, 0, 1, 0xff, 0, 0, 0, 0, 0, 0, 1});
  EXPECT_EQ(error_of(huge), "a packet of more than 16 MiB");
  Bytes start;
  wire::append_file_start(start, {wire::LinkType::kEthernet, "t", "i"});
  EXPECT_EQ(error_of(start), "");
  const auto with = [&](std::initializer_list<std::uint8_t> block) {
    Bytes file = start;
    file.insert(file.end(), block);
    return error_of(file);
  };
  EXPECT_EQ(with({0, 0, 0, 6, 0, 0, 0, 3}), "a block of bad length");
  EXPECT_EQ(with({0, 0, 0, 6, 0, 0, 0, 12, 0, 0, 0, 16}), "a block of two lengths");
  EXPECT_EQ(with({0, 0, 0, 6, 0, 0, 0, 12, 0, 0, 0, 12}), "a packet block without its header");
  EXPECT_EQ(with({0, 0, 0, 3, 0, 0, 0, 12, 0, 0, 0, 12}), "a packet block without its header");
  EXPECT_EQ(with({0, 0, 0, 6, 0, 0, 0, 32, 0, 0, 0, 9, 0, 0, 0, 0,
                  0, 0, 0, 0, 0, 0, 0, 0,  0, 0, 0, 0, 0, 0, 0, 32}),
            "a packet of an interface that was never described");
  EXPECT_EQ(with({0, 0, 0, 6, 0, 0, 0, 32, 0, 0, 0, 0, 0, 0, 0, 0,
                  0, 0, 0, 0, 0, 0, 0, 9,  0, 0, 0, 9, 0, 0, 0, 32}),
            "a packet longer than its block");
  EXPECT_EQ(with({10, 13, 13, 10, 0, 0, 0, 28, 1, 2, 3, 4}),
            "a section without its byte-order magic");
  EXPECT_EQ(with({10, 13, 13, 10, 0, 0, 0, 8, 0x1a, 0x2b, 0x3c, 0x4d}), "a block of bad length");
}

TEST(CaptureReader, counts_time_in_the_units_of_the_interface) {
  const auto time_of = [](std::uint8_t resolution, std::uint8_t offset) {
    Bytes file;
    wire::append_file_start(file, {wire::LinkType::kEthernet, "t", "i"});
    // A second section whose interface has the options under test.
    Bytes interface = {0, 0, 0, 1, 0, 0,          0, 44, 0, 1, 0,  0, 0, 0, 0,
                       0, 0, 9, 0, 1, resolution, 0, 0,  0, 0, 14, 0, 8, 0, 0,
                       0, 0, 0, 0, 0, offset,     0, 0,  0, 0, 0,  0, 0, 44};
    file.insert(file.end(), interface.begin(), interface.end());
    Bytes packet = {0, 0, 0,    6, 0, 0, 0, 32, 0, 0, 0, 1, 0, 0, 0, 0,
                    0, 0, 0x10, 0, 0, 0, 0, 0,  0, 0, 0, 0, 0, 0, 0, 32};
    file.insert(file.end(), packet.begin(), packet.end());
    MemorySource source(file);
    wire::CaptureReader reader(source);
    wire::CapturedPacket got;
    EXPECT_TRUE(reader.next(got)) << reader.error();
    return got.time_ns;
  };
  EXPECT_EQ(time_of(9, 0), 4096U);
  EXPECT_EQ(time_of(6, 2), 2'004'096'000U);
  EXPECT_EQ(time_of(0x80 | 12, 0), 1'000'000'000U);
  EXPECT_EQ(time_of(12, 0), 4U);
  EXPECT_EQ(time_of(99, 0), 4'096'000U);  // nonsense: microseconds
}

TEST(Filter, every_condition_must_hold) {
  const Report report = golden(0).report;  // RUD_REQ, SEND, pdc 0x101, job 0xc0de, message 7
  EXPECT_TRUE(Filter{}.matches(report));
  const auto matches = [&](auto change) {
    Filter f;
    change(f);
    return f.matches(report);
  };
  EXPECT_TRUE(matches([](Filter& f) { f.type = "rud_req"; }));
  EXPECT_TRUE(matches([](Filter& f) { f.type = "SEND"; }));
  EXPECT_FALSE(matches([](Filter& f) { f.type = "WRITE"; }));
  EXPECT_TRUE(matches([](Filter& f) { f.layer = "ses"; }));
  EXPECT_FALSE(matches([](Filter& f) { f.layer = "tss"; }));
  EXPECT_TRUE(matches([](Filter& f) { f.pdc = 0x101; }));
  EXPECT_FALSE(matches([](Filter& f) { f.pdc = 1; }));
  EXPECT_TRUE(matches([](Filter& f) { f.job = 0xc0de; }));
  EXPECT_FALSE(matches([](Filter& f) { f.job = 1; }));
  EXPECT_TRUE(matches([](Filter& f) { f.message = 7; }));
  EXPECT_FALSE(matches([](Filter& f) { f.message = 8; }));
  EXPECT_FALSE(matches([](Filter& f) { f.only_problems = true; }));
}

TEST(PsnTracker, tells_new_late_and_again_apart) {
  using Seen = PsnTracker::Seen;
  PsnTracker t;
  EXPECT_EQ(t.add(0xfffffffe), Seen::kNew);
  EXPECT_EQ(t.add(1), Seen::kNew);  // across the wrap
  EXPECT_EQ(t.gaps(), 2U);
  EXPECT_EQ(t.add(0xffffffff), Seen::kNewButLate);
  EXPECT_EQ(t.add(0), Seen::kNewButLate);
  EXPECT_EQ(t.add(0), Seen::kAgain);
  EXPECT_EQ(t.gaps(), 0U);
  EXPECT_EQ(t.add(5), Seen::kNew);
  EXPECT_EQ(t.add(4), Seen::kNewButLate);
  EXPECT_EQ(t.gaps(), 2U);
  EXPECT_EQ(t.distinct(), 6U);
  EXPECT_EQ(t.add(0x70000000), Seen::kNew);  // another life
  EXPECT_EQ(t.gaps(), 2U);
}

TEST(PsnTracker, memory_is_bounded) {
  PsnTracker t;
  for (std::uint32_t i = 0; i < 3 * PsnTracker::kRangesMax; ++i) t.add(2 * i);
  EXPECT_EQ(t.gaps(), 3 * PsnTracker::kRangesMax - 1);
}

TEST(Statistics, sum_up_a_capture) {
  Statistics s;
  const Bytes first = golden_packets()[0].bytes;  // RUD_REQ, 11 bytes
  s.add(decoded(first, wire::LinkType::kEthernet, 1'000'000'000));
  Bytes again = first;
  again[43] |= 0x10;  // retx
  s.add(decoded(again, wire::LinkType::kEthernet, 2'000'000'000));
  for (std::size_t i = 1; i < golden_packets().size(); ++i) {
    auto p = golden(i);
    p.captured.time_ns = 2'000'000'000;
    s.add(p);
  }
  const auto json = s.to_json();
  EXPECT_EQ(json["packets"], 33);
  EXPECT_EQ(json["seconds"], 1.0);
  EXPECT_EQ(json["retransmissions"], 1);
  EXPECT_EQ(json["psns_seen_again"], 1);
  EXPECT_EQ(json["nacks"]["TRIMMED"], 1);
  EXPECT_EQ(json["types"]["ACK"], 4);
  EXPECT_EQ(json["types"]["(sealed)"], 2);
  EXPECT_EQ(json["payload_bytes"], 42);
  EXPECT_EQ(json["goodput_bps"], 42 * 8.0);
  EXPECT_NE(s.to_text().find("NEW_START_PSN"), std::string::npos);
}

/// The first golden packet, a SEND that is one packet, under another PSN.
Bytes with_psn(std::uint32_t psn, bool is_retransmission = false) {
  Bytes bytes = golden_packets()[0].bytes;
  constexpr std::size_t kPds = 42;
  base::store_be(bytes.data() + kPds + 4, psn);
  if (is_retransmission) bytes[kPds + 1] |= 0x10;
  return bytes;
}

TEST(Statistics, messages__whose_identifier_comes_again_are_counted_each) {
  Statistics s;
  for (std::uint32_t psn = 100; psn < 400; ++psn)
    s.add(decoded(with_psn(psn), wire::LinkType::kEthernet));
  EXPECT_EQ(s.to_json()["messages"], 300);
  EXPECT_EQ(s.to_json()["messages_ended"], 300);
}

TEST(Statistics, messages__copies_of_a_packet_are_none) {
  Statistics s;
  for (const bool is_retransmission : {false, false, true})
    s.add(decoded(with_psn(100, is_retransmission), wire::LinkType::kEthernet));
  // Lost in front of the capture the first time.
  s.add(decoded(with_psn(101, true), wire::LinkType::kEthernet));
  EXPECT_EQ(s.to_json()["messages"], 2);
  EXPECT_EQ(s.to_json()["messages_ended"], 2);
}

TEST(Statistics, processes_of_one_address_have_their_own_pdcs) {
  Statistics s;
  for (const std::uint16_t port : {4793, 20480, 20481}) {
    Bytes bytes = with_psn(100);
    base::store_be(bytes.data() + 36, port);
    s.add(decoded(bytes, wire::LinkType::kEthernet));
  }
  const auto json = s.to_json();
  EXPECT_EQ(json["messages"], 3);
  EXPECT_EQ(json["psns_seen_again"], 0);
  ASSERT_EQ(json["pdcs"].size(), 3U);
  EXPECT_EQ(json["pdcs"][0]["dst"], "10.20.30.2");
  EXPECT_EQ(json["pdcs"][2]["dst"], "10.20.30.2:20481");
}

TEST(Statistics, discovery_of_neighbors_is_no_problem) {
  Bytes arp = golden_packets()[0].bytes;
  arp[13] = 0x06;
  Statistics s;
  s.add(decoded(arp, wire::LinkType::kEthernet));
  EXPECT_EQ(s.to_json()["packets"], 1);
  EXPECT_EQ(s.to_json()["packets_with_problems"], 0);
  EXPECT_TRUE(s.to_json()["problems"].empty());
}

class FabricCaptureTest : public testing::Test {
 protected:
  void add(const Bytes& bytes, bool is_from_host) {
    DecodedPacket packet = decoded(bytes, wire::LinkType::kEthernet);
    packet.captured.is_inbound = is_from_host;
    packet.captured.is_outbound = !is_from_host;
    packet.captured.comment = is_from_host ? "from host0" : "to host1, marked";
    sums_.add(packet);
  }
  CaptureStatistics sums_;
};

TEST_F(FabricCaptureTest, what_hosts_sent_and_what_came_to_them_are_summed_apart) {
  add(with_psn(100), true);
  add(with_psn(101), true);
  add(with_psn(101), false);
  add(with_psn(100), false);
  add(with_psn(102), true);
  add(with_psn(102, true), true);
  add(with_psn(102, true), false);
  const auto json = sums_.to_json();
  const auto& sent = json["from_hosts"];
  const auto& came = json["to_hosts"];
  EXPECT_EQ(sent["packets"], 4);
  EXPECT_EQ(sent["messages"], 3);
  EXPECT_EQ(sent["psns_seen_again"], 1);
  EXPECT_EQ(sent["out_of_order"], 0);
  EXPECT_EQ(sent["retransmissions"], 1);
  EXPECT_EQ(came["packets"], 3);
  EXPECT_EQ(came["messages"], 3);
  EXPECT_EQ(came["psns_seen_again"], 0);
  EXPECT_EQ(came["out_of_order"], 1);
  EXPECT_FALSE(json.contains("others"));
  const std::string text = sums_.to_text();
  EXPECT_EQ(text.find("What hosts sent\n"), 0U) << text;
  EXPECT_NE(text.find("\nWhat came to hosts\n"), std::string::npos) << text;
}

TEST_F(FabricCaptureTest, another_capture_has_one_set_of_sums) {
  sums_.add(decoded(with_psn(100), wire::LinkType::kEthernet));
  EXPECT_EQ(sums_.to_json()["packets"], 1);
  EXPECT_EQ(sums_.to_text().find("packets "), 0U);
}

TEST(Statistics, trimmed_request__is_not_the_packet_that_comes_again_whole) {
  Statistics s;
  auto packet = golden(0);  // RUD_REQ, 11 bytes
  const auto whole = packet.report.payload_wire_bytes;
  packet.report.is_trimmed = true;
  packet.report.payload_wire_bytes = 0;
  s.add(packet);
  Bytes again = golden_packets()[0].bytes;
  again[43] |= 0x10;  // retx
  s.add(decoded(again, wire::LinkType::kEthernet, 2'000'000'000));
  const auto json = s.to_json();
  EXPECT_EQ(json["trimmed"], 1);
  EXPECT_EQ(json["retransmissions"], 1);
  EXPECT_EQ(json["psns_seen_again"], 0);
  EXPECT_EQ(json["payload_bytes"], whole);
  EXPECT_EQ(json["pdcs"][0]["packets"], 2);
  EXPECT_EQ(json["pdcs"][0]["psns"], 1);
}

TEST(Render, json_has_the_names_of_the_specification) {
  const auto json = to_json(golden(0));
  EXPECT_EQ(json["n"], 1);
  EXPECT_EQ(json["payload_len"], 11);
  EXPECT_TRUE(json["problems"].empty());
  EXPECT_EQ(json["layers"][3]["header"], "RUD_REQ");
  EXPECT_EQ(json["layers"][3]["fields"]["clear_psn_offset"], -1);
  EXPECT_EQ(json["layers"][3]["fields"]["psn"], 0x0a1b2c3d);
  EXPECT_EQ(json["layers"][1]["fields"]["src"], "10.20.30.1");
  // Every golden packet can be printed in every way.
  for (std::size_t i = 0; i < golden_packets().size(); ++i) {
    EXPECT_FALSE(LinePrinter({}).line(golden(i)).empty());
    EXPECT_FALSE(to_detailed_text(golden(i)).empty());
    EXPECT_FALSE(to_json(golden(i)).dump().empty());
  }
}

TEST(Filter, psns_are_one_or_a_range_in_its_order) {
  EXPECT_EQ(parse_psns("7"), PsnRange(7, 7));
  EXPECT_EQ(parse_psns("7..9"), PsnRange(7, 9));
  EXPECT_EQ(parse_psns("4294967290..3"), PsnRange(4294967290, 3)) << "PSNs wrap";
  for (const char* wrong : {"", "x", "-1", "7..", "..9", "7.9", "7..9x", "4294967296", "5..3"})
    EXPECT_EQ(parse_psns(wrong), std::nullopt) << wrong;
}

}  // namespace
}  // namespace uet::dump
