/// Each irregularity by its name.
#include <gtest/gtest.h>

#include <algorithm>

#include "apps/dump/report.h"
#include "lib/wire/ses_rules.h"
#include "tests/wire/vectors.h"

namespace uet::wire::test {
namespace {

using Bytes = std::vector<std::uint8_t>;

const VectorPacket& vector(const std::string& name) {
  const auto& all = golden_packets();
  return *std::find_if(all.begin(), all.end(), [&](const auto& p) { return p.name == name; });
}
Bytes bytes_of(const std::string& name) {
  return vector(name).bytes;
}

dump::Report report_uet(const Bytes& bytes) {
  return dump::report_frame(LinkType::kUet, bytes, bytes.size(), DissectOptions{});
}
dump::Report report_frame(const Bytes& bytes, const DissectOptions& options = {},
                          LinkType link = LinkType::kEthernet) {
  return dump::report_frame(link, bytes, bytes.size(), options);
}
bool has(const dump::Report& report, Problem problem) {
  return std::any_of(report.problems.begin(), report.problems.end(),
                     [&](const auto& p) { return p.problem == problem; });
}

/// `bytes` with some of them replaced.
Bytes with(Bytes bytes, std::initializer_list<std::pair<std::size_t, unsigned>> changes) {
  for (const auto& [at, value] : changes) bytes.at(at) = static_cast<std::uint8_t>(value);
  return bytes;
}
Bytes concat(Bytes a, const Bytes& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}
/// The IP packet of a golden frame without tag.
Bytes ip_of(const std::string& name) {
  const Bytes frame = bytes_of(name);
  return {frame.begin() + 14, frame.end()};
}
/// Recomputes the checksum of the IPv4 header at `at`, so that only the change under test shows.
Bytes fix_ipv4(Bytes bytes, std::size_t at) {
  const std::uint16_t sum = ipv4_checksum(std::span(bytes).subspan(at, (bytes[at] & 15U) * 4));
  base::store_be(bytes.data() + at + 10, sum);
  return bytes;
}

// [decision 141]
TEST(Ses, numbered_messages_have_names_and_fields) {
  const Bytes first = {0x11, 0x80, 0x00, 0x00, 0x00, 0x00, 0x07, 0x77, 0x01, 0x10, 0x02, 0x20,
                       0x32, 0x0b, 0x00, 0x44, 0x00, 0x00, 0xc0, 0xde, 0x00, 0x03, 0x00, 0x02,
                       0xab, 0xcd, 0xef, 0x3f, 0xff, 0x00, 0x00, 0x05, 0x00, 0x00, 0x00, 0x10,
                       0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0x00, 0x00, 0x00, 0x00,
                       0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00};
  EXPECT_EQ(name_of(static_cast<SesOpcode>(0x32)), "SEQUENCED_TSEND");
  const dump::Report report = report_uet(first);
  EXPECT_TRUE(report.problems.empty());
  const dump::Layer& ses = *report.find("ses");
  EXPECT_EQ(ses.form, "sequenced_som1");
  EXPECT_EQ(ses.number("stream"), 0xabcdefU);
  EXPECT_EQ(ses.number("behind"), 0x3fffU);
  EXPECT_EQ(ses.number("number"), 5U);
  EXPECT_EQ(ses.number("match_bits"), 0x0102030405060708U);
  EXPECT_EQ(report_uet(with(first, {{13, 0x0a}})).find("ses")->form, "sequenced_som0");
  EXPECT_EQ(report_uet(with(first, {{12, 0x37}})).find("ses")->form, "standard_som1");
}

// [decision 105]
TEST(Ses, question_about_a_delivery_has_a_name) {
  const Bytes question = {0x11, 0x80, 0x00, 0x00, 0x00, 0x00, 0x07, 0x77, 0x01, 0x10, 0x02, 0x20,
                          0x30, 0x0b, 0x00, 0x44, 0x00, 0x00, 0xc0, 0xde, 0x00, 0x03, 0x00, 0x02,
                          0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x10,
                          0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0x00, 0x00, 0x00, 0x00,
                          0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00};
  EXPECT_EQ(name_of(static_cast<SesOpcode>(0x30)), "AWAIT_DELIVERY");
  const dump::Report report = report_uet(question);
  EXPECT_TRUE(report.problems.empty());
  EXPECT_EQ(report.find("ses")->form, "standard_som1");
  EXPECT_EQ(report.find("ses")->number("message_id"), 0x44U);
}

TEST(Link, cooked_and_raw_captures_reach_the_same_layers) {
  const Bytes ip = ip_of("V01");
  EXPECT_NE(report_frame(ip, {}, LinkType::kRaw).find("crc"), nullptr);
  EXPECT_NE(report_frame(ip, {}, LinkType::kIpv4).find("crc"), nullptr);
  Bytes sll(16);
  sll[14] = 8;
  EXPECT_NE(report_frame(concat(sll, ip), {}, LinkType::kLinuxSll).find("crc"), nullptr);
  Bytes sll2(20);
  sll2[0] = 8;
  EXPECT_NE(report_frame(concat(sll2, ip), {}, LinkType::kLinuxSll2).find("crc"), nullptr);
}

TEST(Link, unknown_types_and_protocols_are_named) {
  EXPECT_TRUE(has(report_frame(ip_of("V01"), {}, LinkType{999}), Problem::kLinkType));
  EXPECT_TRUE(has(report_frame(with(bytes_of("V01"), {{13, 6}})), Problem::kNotIp));
  EXPECT_TRUE(has(report_frame(Bytes(10)), Problem::kLinkTruncated));
  EXPECT_TRUE(has(report_frame(Bytes(14)), Problem::kNotIp));
  EXPECT_TRUE(has(report_frame({}, {}, LinkType::kRaw), Problem::kIpTruncated));
  EXPECT_TRUE(has(report_frame({0x50}, {}, LinkType::kRaw), Problem::kIpVersion));
}

TEST(Link, two_tags_are_fine_and_three_are_not) {
  const Bytes frame = bytes_of("V04");
  const Bytes tag = {0x81, 0x00, 0x00, 0x05};
  Bytes two(frame.begin(), frame.begin() + 12);
  two = concat(concat(two, tag), Bytes(frame.begin() + 12, frame.end()));
  EXPECT_TRUE(report_frame(two).problems.empty());
  Bytes three(frame.begin(), frame.begin() + 12);
  three = concat(concat(concat(three, tag), tag), Bytes(frame.begin() + 12, frame.end()));
  EXPECT_TRUE(has(report_frame(three), Problem::kTooManyTags));
}

TEST(Link, padding_is_not_part_of_the_packet) {
  const auto report = report_frame(concat(bytes_of("V04"), Bytes(6)));
  EXPECT_TRUE(report.problems.empty());
  ASSERT_NE(report.find("padding"), nullptr);
  EXPECT_EQ(report.find("padding")->length, 6U);
}

TEST(Ip, header_faults_are_named) {
  const Bytes v01 = bytes_of("V01");
  EXPECT_TRUE(has(report_frame(with(v01, {{24, 0}})), Problem::kIpChecksum));
  EXPECT_TRUE(has(report_frame(fix_ipv4(with(v01, {{14, 0x44}}), 14)), Problem::kIpHeaderLength));
  EXPECT_TRUE(has(report_frame(fix_ipv4(with(v01, {{16, 9}}), 14)), Problem::kIpLength));
  EXPECT_TRUE(has(report_frame(fix_ipv4(with(v01, {{16, 0}, {17, 3}}), 14)), Problem::kIpLength));
  EXPECT_TRUE(has(report_frame(fix_ipv4(with(v01, {{20, 0x20}}), 14)), Problem::kIpFragment));
  EXPECT_TRUE(has(report_frame(fix_ipv4(with(v01, {{23, 6}}), 14)), Problem::kNotUet));
  EXPECT_TRUE(has(report_frame(with(v01, {{36, 0}})), Problem::kNotUet));
  EXPECT_TRUE(has(report_frame(with(v01, {{39, 1}})), Problem::kUdpLength));
  const Bytes short_udp = with(v01, {{38, 0}, {39, 40}});
  EXPECT_TRUE(has(report_frame(short_udp), Problem::kUdpLength));
}

TEST(Ip, options_are_named_and_passed) {
  Bytes ip = ip_of("V04");  // the tag's four bytes are still in front
  ip.erase(ip.begin(), ip.begin() + 4);
  ip = with(ip, {{0, 0x46}, {3, ip[3] + 4U}});
  ip.insert(ip.begin() + 20, {1, 1, 1, 0});
  const auto report = report_frame(fix_ipv4(ip, 0), {}, LinkType::kRaw);
  EXPECT_TRUE(has(report, Problem::kIpOptions));
  EXPECT_EQ(report.problems.size(), 1U);
  EXPECT_NE(report.find("ses"), nullptr);
  const Bytes cut(ip.begin(), ip.begin() + 22);
  EXPECT_TRUE(has(report_frame(cut, {}, LinkType::kRaw), Problem::kIpTruncated));
}

/// The IPv6 packet of V02 with an extension header in front of UDP.
Bytes with_extension(std::uint8_t type, Bytes extension) {
  Bytes ip = ip_of("V02");
  extension[0] = 17;
  ip[6] = type;
  base::store_be(
      ip.data() + 4,
      static_cast<std::uint16_t>(base::load_be<std::uint16_t>(ip.data() + 4) + extension.size()));
  ip.insert(ip.begin() + 40, extension.begin(), extension.end());
  return ip;
}

TEST(Ip, ipv6_extension_headers_are_named_and_passed) {
  for (const auto& [type, size] : {std::pair{0, 8}, {43, 16}, {60, 8}, {44, 8}, {51, 12}}) {
    Bytes extension(static_cast<std::size_t>(size));
    extension[1] = static_cast<std::uint8_t>(type == 51 ? 1 : type == 44 ? 0 : size / 8 - 1);
    const auto report = report_frame(with_extension(static_cast<std::uint8_t>(type), extension), {},
                                     LinkType::kRaw);
    EXPECT_TRUE(has(report, Problem::kIpExtension)) << type;
    EXPECT_EQ(report.problems.size(), 1U) << type;
    EXPECT_NE(report.find("crc"), nullptr) << type;
  }
  const Bytes fragment = with_extension(44, {0, 0, 0, 9, 0, 0, 0, 0});
  EXPECT_TRUE(has(report_frame(fragment, {}, LinkType::kRaw), Problem::kIpFragment));
  const Bytes endless = with_extension(0, {0, 255, 0, 0, 0, 0, 0, 0});
  EXPECT_TRUE(has(report_frame(endless, {}, LinkType::kRaw), Problem::kIpTruncated));
}

TEST(Crc, is_checked_as_told) {
  const Bytes good = bytes_of("V01");
  const Bytes bad = with(good, {{112, 0xff}});
  EXPECT_TRUE(has(report_frame(bad), Problem::kBadCrc));
  EXPECT_TRUE(has(report_frame(bad, {.crc = CrcPolicy::kAlways}), Problem::kBadCrc));
  EXPECT_TRUE(report_frame(good, {.crc = CrcPolicy::kAlways}).problems.empty());
  EXPECT_TRUE(has(report_frame(good, {.crc = CrcPolicy::kNever}), Problem::kSurplus));
  // Without a trailer the last bytes are taken for one when one is demanded.
  EXPECT_TRUE(has(report_frame(bytes_of("V04"), {.crc = CrcPolicy::kAlways}), Problem::kBadCrc));
}

TEST(Crc, a_udp_checksum_counts_as_zero) {
  EXPECT_TRUE(report_frame(with(bytes_of("V01"), {{40, 0x12}, {41, 0x34}})).problems.empty());
}

TEST(Capture, a_cut_packet_keeps_what_is_there) {
  const Bytes whole = bytes_of("V01");
  const Bytes cut(whole.begin(), whole.begin() + 100);
  for (const CrcPolicy policy : {CrcPolicy::kDetect, CrcPolicy::kAlways}) {
    const auto report = dump::report_frame(LinkType::kEthernet, cut, whole.size(), {.crc = policy});
    EXPECT_TRUE(has(report, Problem::kCaptureCut));
    EXPECT_NE(report.find("ses"), nullptr);
  }
}

TEST(Trimmed, a_cut_prefix_is_no_fault) {
  Bytes frame = with(bytes_of("V01"), {{15, 26 << 2}});
  frame.resize(98);
  const auto report = report_frame(fix_ipv4(frame, 14));
  EXPECT_TRUE(report.is_trimmed);
  EXPECT_TRUE(report.problems.empty());
  EXPECT_NE(report.find("ses"), nullptr);
}

TEST(Tss, too_short_for_its_parts) {
  const Bytes v05 = bytes_of("V05");
  const Bytes header(v05.begin() + 42, v05.begin() + 54);
  EXPECT_TRUE(has(report_uet(concat(header, Bytes(19))), Problem::kTssNoIcv));
  EXPECT_FALSE(has(report_uet(concat(header, Bytes(20))), Problem::kTssNoIcv));
  EXPECT_TRUE(has(report_uet(Bytes(header.begin(), header.begin() + 11)), Problem::kTssTruncated));
}

TEST(Pds, faults_are_named) {
  const Bytes request = {0x10, 0x00, 0xff, 0xff, 0, 0, 0, 9, 0, 1, 0, 2};
  EXPECT_TRUE(report_uet(request).problems.empty());
  EXPECT_TRUE(has(report_uet(with(request, {{2, 0}, {3, 1}})), Problem::kClearOffset));
  EXPECT_TRUE(has(report_uet(with(request, {{9, 0}})), Problem::kPdcidZero));
  EXPECT_TRUE(has(report_uet(with(request, {{11, 0}})), Problem::kPdcidZero));
  EXPECT_TRUE(has(report_uet(with(request, {{1, 0x01}})), Problem::kReservedBits));
  EXPECT_TRUE(has(report_uet(with(request, {{0, 0x13}, {1, 0x80}})), Problem::kNextHdrReserved));
  EXPECT_TRUE(has(report_uet(with(request, {{0, 0x12}})), Problem::kNextHdrImpossible));
  EXPECT_TRUE(has(report_uet(with(request, {{0, 0x78}})), Problem::kPdsType));
  EXPECT_TRUE(has(report_uet(concat(request, Bytes(4))), Problem::kSurplus));
}

TEST(Pds, ack_faults_are_named) {
  const Bytes v08 = bytes_of("V08");
  EXPECT_TRUE(has(report_uet(with(v08, {{12, 0x20}})), Problem::kCcType));
  EXPECT_FALSE(has(report_uet(with(v08, {{12, 0xe0}})), Problem::kCcType));
  EXPECT_TRUE(has(report_uet(with(v08, {{1, 0x16}})), Problem::kAckReq));
  EXPECT_TRUE(has(report_uet(with(bytes_of("V09"), {{12, 0}})), Problem::kCcType));
  // [WIRE 4.7] The later extension is skipped.
  const auto report = report_uet(concat(with(bytes_of("V14"), {{1, 0x40}}), Bytes(4)));
  EXPECT_TRUE(has(report, Problem::kEpsn));
  EXPECT_EQ(report.problems.size(), 1U);
  EXPECT_EQ(report.layers.back().header, "EXPECTED_PSN");
}

TEST(Pds, nack_and_control_faults_are_named) {
  const Bytes nack = bytes_of("V10");
  EXPECT_TRUE(has(report_uet(with(nack, {{2, 0x0c}})), Problem::kNackCode));
  EXPECT_TRUE(has(report_uet(with(nack, {{0, 0x52}})), Problem::kNextHdrImpossible));
  EXPECT_TRUE(has(report_uet(with(nack, {{1, 0x08}})), Problem::kPdcidNotZero));
  EXPECT_TRUE(has(report_uet(with(nack, {{10, 0}, {11, 0}})), Problem::kPdcidZero));
  const Bytes probe = bytes_of("V13");
  EXPECT_TRUE(has(report_uet(with(probe, {{1, 0x0c}})), Problem::kSynNotAllowed));
  EXPECT_TRUE(has(report_uet(with(probe, {{0, 0x5d}})), Problem::kControlType));
  const Bytes close = bytes_of("V15");
  EXPECT_TRUE(has(report_uet(with(close, {{2, 1}})), Problem::kReservedBits));
  // NEGOTIATION may carry more.
  const Bytes negotiation = with(close, {{0, 0x5c}, {1, 0x88}});
  EXPECT_TRUE(report_uet(concat(negotiation, Bytes(32))).problems.empty());
}

TEST(Ses, request_faults_are_named) {
  const Bytes read = bytes_of("V19");  // RUDI_REQ, standard READ
  EXPECT_TRUE(has(report_uet(with(read, {{8, 0x10}})), Problem::kSesOpcode));
  EXPECT_TRUE(has(report_uet(with(read, {{9, 0x43}})), Problem::kSesVersion));
  EXPECT_TRUE(has(report_uet(with(read, {{8, 0x05}})), Problem::kSesOpcodeMode));
  EXPECT_TRUE(has(report_uet(concat(read, Bytes(8))), Problem::kPayloadUnexpected));
  const Bytes datagram = bytes_of("V21");
  EXPECT_TRUE(has(report_uet(with(datagram, {{5, 0x1d}})), Problem::kSesFlags));
  EXPECT_TRUE(has(report_uet(with(datagram, {{4, 0x05}})), Problem::kSesOpcodeMode));
  const Bytes medium = bytes_of("V24");
  EXPECT_TRUE(has(report_uet(with(medium, {{12, 0x0f}})), Problem::kSesOpcodeForm));
  EXPECT_TRUE(has(report_uet(with(medium, {{13, 0x0a}})), Problem::kSesFlags));
  Bytes small = {0x10, 0x80, 0xff, 0xff, 0, 0, 0, 9, 0, 1, 0, 2, 0x01, 0x07, 0, 0};
  small.resize(32);
  EXPECT_TRUE(has(report_uet(small), Problem::kSmallHd));
}

TEST(Ses, extension_faults_are_named) {
  const Bytes atomic = bytes_of("V24");
  EXPECT_TRUE(has(report_uet(with(atomic, {{44, 0x20}})), Problem::kAmoOpcode));
  EXPECT_TRUE(has(report_uet(with(atomic, {{45, 0x20}})), Problem::kAmoDatatype));
  EXPECT_FALSE(has(report_uet(with(atomic, {{45, 0xe0}})), Problem::kAmoDatatype));
  EXPECT_TRUE(has(report_uet(with(atomic, {{45, 0x09}})), Problem::kAmoLength));
  const Bytes swap = bytes_of("V25");
  EXPECT_TRUE(has(report_uet(with(swap, {{55, 0x21}})), Problem::kAmoLength));
}

TEST(Ses, lengths_must_agree) {
  const Bytes v29 = bytes_of("V29");
  // A WRITE in the place of MSG_ERROR: 4096 + 16 of 65536 bytes, not the last packet.
  const Bytes write = with(v29, {{12, 0x01}, {13, 0x08}, {47, 16}});
  EXPECT_TRUE(has(report_uet(write), Problem::kPayloadMissing));
  EXPECT_TRUE(has(report_uet(write), Problem::kPayloadNotMtu));
  EXPECT_TRUE(has(report_uet(with(write, {{51, 1}})), Problem::kOffsetNotMtu));
  EXPECT_TRUE(has(report_uet(with(write, {{48, 1}})), Problem::kBeyondMessage));
  // One of our READs that asks for 8 times 1280 bytes, and says so with hd. [decision 170]
  const Bytes wide =
      with(v29, {{12, 0x02}, {13, 0x0c}, {46, 0x02}, {47, 0x05}, {49, 0}, {50, 0x28}, {51, 0}});
  EXPECT_FALSE(has(report_uet(wide), Problem::kPayloadNotMtu));
  EXPECT_FALSE(has(report_uet(wide), Problem::kOffsetNotMtu));
  EXPECT_TRUE(has(report_uet(with(wide, {{13, 0x08}})), Problem::kPayloadNotMtu)) << "no hd";
  EXPECT_TRUE(has(report_uet(with(wide, {{47, 0x06}})), Problem::kPayloadNotMtu)) << "8 of 1536";
  const Bytes at_the_end = with(wide, {{49, 1}, {50, 0}});
  EXPECT_TRUE(has(report_uet(at_the_end), Problem::kBeyondMessage));
  Bytes data = bytes_of("V20");
  EXPECT_TRUE(has(report_uet(with(data, {{23, 4}})), Problem::kBeyondMessage));
}

TEST(Ses, response_faults_are_named) {
  const Bytes v30 = bytes_of("V30");
  EXPECT_TRUE(has(report_uet(with(v30, {{13, 0x25}})), Problem::kReturnCode));
  EXPECT_FALSE(has(report_uet(with(v30, {{13, 0x30}})), Problem::kReturnCode));
  EXPECT_TRUE(has(report_uet(with(v30, {{12, 0x02}})), Problem::kSesOpcodeForm));
  EXPECT_TRUE(has(report_uet(with(v30, {{12, 0x04}})), Problem::kSesOpcode));
  EXPECT_FALSE(has(report_uet(with(v30, {{12, 0x30}})), Problem::kSesOpcodeForm));
  EXPECT_TRUE(has(report_uet(with(v30, {{13, 0x45}})), Problem::kSesVersion));
}

TEST(Payload, full_packets_are_one_mtu) {
  const Bytes first = bytes_of("V22");  // som=1, eom=0
  EXPECT_TRUE(report_uet(concat(first, Bytes(4096))).problems.empty());
  EXPECT_TRUE(has(report_uet(concat(first, Bytes(4095))), Problem::kPayloadNotMtu));
  EXPECT_TRUE(report_uet(concat(first, Bytes(1280))).problems.empty()) << "ours, decision 169";
  const DissectOptions small{.payload_mtu = 1024};
  EXPECT_TRUE(has(report_frame(concat(first, Bytes(4096)), small, LinkType::kUet),
                  Problem::kPayloadNotMtu));
}

TEST(Rules, elements_have_their_sizes) {
  const std::pair<AmoDatatype, std::size_t> sizes[] = {
      {AmoDatatype::kInt8, 1},        {AmoDatatype::kFloat16, 2},
      {AmoDatatype::kFloat, 4},       {AmoDatatype::kFloatComplex, 8},
      {AmoDatatype::kLongDouble, 16}, {AmoDatatype::kLongDoubleComplex, 32},
      {AmoDatatype{0x40}, 0}};
  for (const auto& [type, bytes] : sizes) EXPECT_EQ(amo_bytes(type), bytes);
}

TEST(Problems, read_as_sentences) {
  const dump::ReportedProblem p{.problem = Problem::kPdsTruncated, .offset = 0, .a = 12, .b = 7};
  EXPECT_EQ(p.to_string(), "pds-truncated: PDS header needs 12 bytes, 7 are there");
}

/// A visitor that can open sealed packets: here by knowing the clear text.
struct OpeningVisitor final : DissectVisitor {
  std::vector<std::uint8_t> clear;
  std::vector<std::string> seen;
  bool can_open = true;

  void on_header(const HeaderType&, std::string_view name, std::size_t,
                 std::span<const std::uint8_t>) override {
    seen.emplace_back(name);
  }
  void on_bytes(BytesKind kind, std::size_t, std::span<const std::uint8_t> b) override {
    seen.push_back("bytes " + std::to_string(static_cast<int>(kind)) + " " +
                   std::to_string(b.size()));
  }
  void on_problem(Problem, std::size_t, std::uint64_t, std::uint64_t) override {
    seen.emplace_back("!");
  }
  std::optional<std::span<const std::uint8_t>> open(const SealedPacket& packet) override {
    EXPECT_EQ(packet.tss_header.size(), 12U);
    EXPECT_EQ(packet.context.source.size(), 4U);
    EXPECT_EQ(packet.context.encapsulation.size(), 8U);
    EXPECT_EQ(packet.sealed.size(), clear.size() + kTssIcvBytes);
    if (!can_open) return std::nullopt;
    return clear;
  }
};

TEST(Tss, a_visitor_may_open_the_packet) {
  OpeningVisitor visitor;
  for (const VectorLayer& layer : vector("V05").layers)
    if (layer.layer == "pds" || layer.layer == "ses" || layer.layer == "data")
      visitor.clear = concat(visitor.clear, layer.bytes);
  const Bytes frame = bytes_of("V05");
  dissect_frame(LinkType::kEthernet, frame, frame.size(), DissectOptions{}, visitor);
  const std::vector<std::string> want = {"ETHERNET", "IPV4",           "UDP",       "TSS",
                                         "RUD_REQ",  "REQUEST_MEDIUM", "bytes 0 4", "bytes 2 16"};
  EXPECT_EQ(visitor.seen, want);
  visitor.seen.clear();
  visitor.can_open = false;
  dissect_frame(LinkType::kEthernet, frame, frame.size(), DissectOptions{}, visitor);
  EXPECT_EQ(visitor.seen.size(), 6U);
}

}  // namespace
}  // namespace uet::wire::test
