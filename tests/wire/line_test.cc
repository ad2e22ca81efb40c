/// What uet-dump shows and what it refuses: names, filters, columns, both ends side by side.
#include "apps/dump/line.h"

#include <gtest/gtest.h>

#include "apps/dump/filter.h"
#include "apps/dump/ladder.h"
#include "apps/dump/names.h"
#include "lib/wire/headers.h"

namespace uet::dump {
namespace {

using Bytes = std::vector<std::uint8_t>;

/// UDP ports of processes that share an address; 0: the port of UET.
struct Ports {
  std::uint16_t source = 0, destination = 0;
};

/// A request in a raw IPv4 packet from 10.0.0.`from`.
Bytes request(std::uint8_t from, std::uint8_t to, std::uint32_t psn, bool retx = false,
              Ports ports = {}) {
  const std::size_t return_port = ports.source == 0 ? 0 : wire::ReturnPort::kSize;
  Bytes out(wire::Ipv4Header::kSize + wire::UdpHeader::kSize + return_port +
            wire::PdsRequest::kSize);
  wire::Ipv4Header ip{.total_length = static_cast<std::uint16_t>(out.size()),
                      .protocol = wire::IpProtocol::kUdp};
  ip.src = {10, 0, 0, from};
  ip.dst = {10, 0, 0, to};
  wire::emit(ip, out.data());
  wire::emit(
      wire::UdpHeader{.dst_port = ports.destination == 0 ? wire::kUdpPort : ports.destination,
                      .length = static_cast<std::uint16_t>(out.size() - wire::Ipv4Header::kSize)},
      out.data() + wire::Ipv4Header::kSize);
  if (return_port != 0)
    wire::emit(wire::ReturnPort{.udp_port = ports.source},
               out.data() + wire::Ipv4Header::kSize + wire::UdpHeader::kSize);
  wire::PdsRequest pds{.spdcid = 5, .dpdcid = 6};
  pds.retx = retx;
  pds.psn = base::Psn(psn);
  wire::emit(pds, out.data() + wire::Ipv4Header::kSize + wire::UdpHeader::kSize + return_port);
  return out;
}

DecodedPacket decoded(const Bytes& bytes, std::uint64_t ns, bool is_outbound = true,
                      const char* comment = "") {
  static std::uint64_t number = 0;
  DecodedPacket p;
  p.number = ++number;
  p.captured.link = wire::LinkType::kRaw;
  p.captured.time_ns = ns;
  p.captured.data = bytes;
  p.captured.wire_length = bytes.size();
  p.captured.comment = comment;
  p.captured.is_outbound = is_outbound;
  p.captured.is_inbound = !is_outbound;
  p.report = report_frame(p.captured.link, bytes, bytes.size(), {.crc = wire::CrcPolicy::kNever});
  return p;
}

TEST(DumpNames, misspelt_names_are_refused_with_the_nearest) {
  EXPECT_EQ(why_unknown("type", "rud_req", known_types()), "");
  EXPECT_EQ(why_unknown("type", "NACK", known_types()), "");
  EXPECT_EQ(why_unknown("type", "SEND", known_types()), "");
  EXPECT_EQ(why_unknown("type", "NEW_START_PSN", known_types()), "");
  EXPECT_EQ(why_unknown("layer", "ses", known_layers()), "");
  EXPECT_EQ(why_unknown("layer", "crc", known_layers()), "");
  EXPECT_EQ(why_unknown("type", "RUD_REG", known_types()),
            "no type is called 'RUD_REG'; did you mean RUD_REQ?");
  EXPECT_EQ(why_unknown("layer", "sse", known_layers()),
            "no layer is called 'sse'; did you mean ses?");
  EXPECT_NE(why_unknown("layer", "transport", known_layers()).find("known are: cipher"),
            std::string::npos);
}

TEST(DumpFilter, psn_takes_requests_in_a_range_that_may_wrap) {
  Filter filter;
  filter.psn = {0xfffffffe, 1};
  EXPECT_TRUE(filter.matches(decoded(request(1, 2, 0xffffffff), 0).report));
  EXPECT_TRUE(filter.matches(decoded(request(1, 2, 0), 0).report));
  EXPECT_FALSE(filter.matches(decoded(request(1, 2, 2), 0).report));
  EXPECT_FALSE(filter.matches(decoded(request(1, 2, 0xfffffffd), 0).report));
}

TEST(DumpFilter, retransmissions) {
  Filter filter;
  filter.only_retransmissions = true;
  EXPECT_TRUE(filter.matches(decoded(request(1, 2, 7, true), 0).report));
  EXPECT_FALSE(filter.matches(decoded(request(1, 2, 7, false), 0).report));
}

TEST(LinePrinter, psns_count_from_the_first_of_the_direction) {
  LinePrinter lines({});
  EXPECT_NE(lines.line(decoded(request(1, 2, 4'000'000'000), 0)).find(" psn 0"), std::string::npos);
  EXPECT_NE(lines.line(decoded(request(1, 2, 4'000'000'003), 0)).find(" psn 3"), std::string::npos);
  EXPECT_NE(lines.line(decoded(request(1, 2, 3'999'999'999), 0)).find(" psn -1"),
            std::string::npos);
  EXPECT_NE(lines.line(decoded(request(2, 1, 70), 0)).find(" psn 0"), std::string::npos);
  LinePrinter absolute({.absolute_psns = true});
  EXPECT_NE(absolute.line(decoded(request(1, 2, 4'000'000'000), 0)).find(" psn 4000000000"),
            std::string::npos);
}

TEST(LinePrinter, processes_of_one_address_are_told_apart_by_their_ports) {
  LinePrinter lines({});
  const std::string there = lines.line(decoded(request(1, 1, 70, false, {0, 20480}), 0));
  const std::string back = lines.line(decoded(request(1, 1, 90, false, {20480, 0}), 0));
  const std::string two = lines.line(decoded(request(1, 1, 91, false, {20480, 20481}), 0));
  EXPECT_NE(there.find(" 10.0.0.1 > 10.0.0.1:20480 "), std::string::npos) << there;
  EXPECT_NE(back.find(" 10.0.0.1:20480 > 10.0.0.1 "), std::string::npos) << back;
  EXPECT_NE(two.find(" 10.0.0.1:20480 > 10.0.0.1:20481 "), std::string::npos) << two;
  for (const std::string& line : {there, back, two})
    EXPECT_NE(line.find(" psn 0"), std::string::npos) << line;
}

TEST(LinePrinter, discovery_of_neighbors_is_no_problem) {
  Bytes arp(wire::EthernetHeader::kSize + 28);
  wire::emit(wire::EthernetHeader{.type = wire::EtherType::kArp}, arp.data());
  DecodedPacket packet;
  packet.report = report_frame(wire::LinkType::kEthernet, arp, arp.size(), wire::DissectOptions{});
  const std::string line = LinePrinter({}).line(packet);
  EXPECT_NE(line.find(" ARP"), std::string::npos) << line;
  EXPECT_EQ(line.find('!'), std::string::npos) << line;
  Filter filter;
  filter.only_problems = true;
  EXPECT_FALSE(filter.matches(packet.report));
}

TEST(LinePrinter, packets_that_are_not_shown_count_as_the_first_too) {
  LinePrinter lines({});
  lines.skip(decoded(request(1, 2, 100), 1000));
  const std::string line = lines.line(decoded(request(1, 2, 101), 3000));
  EXPECT_NE(line.find(" psn 1"), std::string::npos) << line;
  EXPECT_NE(line.find(" 0.000002000 "), std::string::npos) << line;
}

TEST(LinePrinter, times_are_relative_delta_or_of_the_day) {
  LinePrinter delta({.time = TimeForm::kDelta});
  delta.line(decoded(request(1, 2, 1), 1000));
  delta.line(decoded(request(1, 2, 2), 5000));
  EXPECT_NE(delta.line(decoded(request(1, 2, 3), 6000)).find(" 0.000001000 "), std::string::npos);
  LinePrinter day({.time = TimeForm::kDay});
  EXPECT_NE(day.line(decoded(request(1, 2, 1), 3'661'000'000'005)).find(" 01:01:01.000000005 "),
            std::string::npos);
}

TEST(LinePrinter, colour_only_when_asked_for) {
  const Bytes again = request(1, 2, 1, true);
  EXPECT_EQ(LinePrinter({}).line(decoded(again, 0)).find('\033'), std::string::npos);
  EXPECT_NE(LinePrinter({.colour = true}).line(decoded(again, 0)).find('\033'), std::string::npos);
}

class LadderTest : public testing::Test {
 protected:
  void left(const Bytes& b, std::uint64_t ns, bool out, const char* comment = "") {
    ladder_.add(Ladder::kLeft, decoded(b, ns, out, comment), "summary");
  }
  void right(const Bytes& b, std::uint64_t ns, bool out, const char* comment = "") {
    ladder_.add(Ladder::kRight, decoded(b, ns, out, comment), "summary");
  }
  std::size_t count(const std::string& text, const char* what) {
    std::size_t n = 0;
    for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++n;
    return n;
  }
  static constexpr std::uint64_t kMs = 1'000'000;
  Ladder ladder_;
};

TEST_F(LadderTest, pairs_what_was_sent_with_what_came) {
  left(request(1, 2, 1), 10 * kMs, true);
  right(request(1, 2, 1), 10 * kMs + 35'000, false);
  right(request(2, 1, 9), 11 * kMs, true);
  left(request(2, 1, 9), 11 * kMs + 12'000, false);
  const std::string text = ladder_.to_text(false);
  EXPECT_NE(text.find("-----------> +35.0 us"), std::string::npos) << text;
  EXPECT_NE(text.find("+12.0 us <-----------"), std::string::npos) << text;
  EXPECT_NE(text.find("10.0.0.1"), std::string::npos) << text;
  EXPECT_EQ(ladder_.lost(), 0U);
}

TEST_F(LadderTest, processes_of_one_address_have_their_own_headings) {
  left(request(1, 1, 1, false, {0, 20480}), 10 * kMs, true);
  right(request(1, 1, 1, false, {0, 20480}), 10 * kMs + 35'000, false);
  EXPECT_EQ(ladder_.names()[Ladder::kLeft], "10.0.0.1");
  EXPECT_EQ(ladder_.names()[Ladder::kRight], "10.0.0.1:20480");
}

TEST_F(LadderTest, says_what_was_lost_and_by_whom) {
  right(request(1, 2, 0), 9 * kMs, false);
  left(request(1, 2, 1), 10 * kMs, true);
  left(request(1, 2, 2), 10 * kMs, true, "out drop impaired");
  left(request(1, 2, 3), 10 * kMs, true);
  right(request(1, 2, 3), 10 * kMs, false, "in drop impaired");
  const std::string text = ladder_.to_text(false);
  EXPECT_EQ(ladder_.lost(), 2U);
  EXPECT_NE(text.find("-----X       lost\n"), std::string::npos) << text;
  EXPECT_NE(text.find("lost: impaired"), std::string::npos) << text;
  EXPECT_NE(text.find("+0.0 us, dropped: impaired"), std::string::npos) << text;
  EXPECT_NE(text.find("?------>"), std::string::npos) << text;
}

TEST_F(LadderTest, the_same_as_data) {
  right(request(1, 2, 0), 9 * kMs, false);
  left(request(1, 2, 1), 10 * kMs, true);
  left(request(1, 2, 2), 11 * kMs, true, "out drop impaired");
  left(request(1, 2, 3), 12 * kMs, true);
  right(request(1, 2, 3), 13 * kMs, false, "in drop bad-crc");
  left(request(1, 2, 4), 14 * kMs, true);
  right(request(1, 2, 4), 15 * kMs, false);
  right(request(1, 2, 4), 16 * kMs, false);
  const auto rungs = ladder_.rungs();
  ASSERT_EQ(rungs.size(), 6U);
  EXPECT_EQ(rungs[0].fate, "lost");
  EXPECT_EQ(rungs[1].fate, "impaired");
  EXPECT_EQ(rungs[2].fate, "bad-crc");
  EXPECT_EQ(rungs[2].arrived_ns, 13 * kMs);
  EXPECT_EQ(rungs[3].fate, "");
  EXPECT_EQ(rungs[3].arrived_ns - rungs[3].sent_ns, kMs);
  for (const std::size_t copy : {4U, 5U}) {
    EXPECT_EQ(rungs[copy].sent_ns, 0U);
    EXPECT_NE(rungs[copy].fate.find("a copy"), std::string::npos);
  }
}

TEST_F(LadderTest, one_capture_alone_calls_nothing_lost) {
  left(request(1, 2, 1), 10 * kMs, true);
  left(request(2, 1, 5), 11 * kMs, false);
  const auto rungs = ladder_.rungs();
  ASSERT_EQ(rungs.size(), 2U);
  EXPECT_EQ(rungs[0].fate, "");
  EXPECT_EQ(rungs[1].fate, "");
  EXPECT_EQ(rungs[1].from, Ladder::kRight);
}

TEST_F(LadderTest, an_arrival_belongs_to_the_copy_that_was_sent_last) {
  right(request(1, 2, 0), kMs, false);
  left(request(1, 2, 1), 10 * kMs, true);
  left(request(1, 2, 1), 20 * kMs, true);
  right(request(1, 2, 1), 20 * kMs + 5'000, false);
  const std::string text = ladder_.to_text(false);
  EXPECT_EQ(ladder_.lost(), 1U);
  EXPECT_NE(text.find("+5.0 us"), std::string::npos) << text;
}

TEST_F(LadderTest, what_was_sent_before_the_other_capture_began_is_not_called_lost) {
  left(request(1, 2, 1), 10 * kMs, true);
  right(request(1, 2, 7), 500 * kMs, false);
  const std::string text = ladder_.to_text(false);
  EXPECT_EQ(ladder_.lost(), 0U);
  EXPECT_EQ(count(text, "before that capture"), 1U) << text;
}

}  // namespace
}  // namespace uet::dump
