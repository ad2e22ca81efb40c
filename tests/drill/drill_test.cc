// What scripts mean, piece by piece: heads, packets as text, and what is left open at the end.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <deque>
#include <fstream>
#include <sstream>

#include "apps/drill/headers.h"
#include "apps/drill/interpreter.h"
#include "apps/drill/packet_text.h"
#include "apps/drill/pdc_ledger.h"
#include "apps/drill/peer.h"
#include "apps/drill/script.h"
#include "apps/drill/testbed.h"

namespace uet::drill {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

std::vector<std::string> words(const std::string& text) {
  std::istringstream in(text);
  return {std::istream_iterator<std::string>(in), {}};
}

std::vector<std::uint8_t> packet(const std::string& text) {
  std::string why;
  auto bytes = build_packet(words(text), {}, why);
  EXPECT_EQ(why, "") << text;
  return bytes;
}

Match match(const std::string& wanted, const std::string& sent, Variables& variables) {
  return match_packet(words(wanted), SeenPacket{.bytes = packet(sent)}, variables);
}
Match match(const std::string& wanted, const std::string& sent) {
  Variables variables;
  return match(wanted, sent, variables);
}

TEST(DrillScript, head__ends_with_the_first_step) {
  std::istringstream in(
      "# of a live endpoint\nlive\ntitle Two words\nitem PDS-1 SES-2\nsays One.\nsays Two.\n"
      "needs memory\npatience 5s\nset RTO_Max 1s\n\nwait 1ms # and so on\ntitle no more\n");
  const Script s = read_script(in, "folder/PDS-042-name.drill");
  EXPECT_TRUE(s.is_live);
  EXPECT_EQ(s.name, "PDS-042-name");
  EXPECT_EQ(s.title, "Two words");
  EXPECT_THAT(s.items, ElementsAre("PDS-1", "SES-2"));
  EXPECT_EQ(s.says, "One. Two.");
  EXPECT_THAT(s.needs, ElementsAre("memory"));
  EXPECT_EQ(s.patience, base::Duration::from_seconds(5));
  EXPECT_THAT(s.settings, SizeIs(1));
  ASSERT_THAT(s.steps, SizeIs(2));
  EXPECT_EQ(s.steps[0].text, "wait 1ms");
  EXPECT_EQ(s.steps[0].line, 11u);
}

TEST(DrillScript, name__tells_the_item_where_no_line_does) {
  std::istringstream one("wait 1ms\n"), other("wait 1ms\n");
  EXPECT_THAT(read_script(one, "PDS-042-name.drill").items, ElementsAre("PDS-42"));
  EXPECT_THAT(read_script(other, "my-own.drill").items, IsEmpty());
}

TEST(DrillScript, wrong_line_of_the_head__is_named) {
  std::istringstream in("live\npatience soon\nwait 1ms\n");
  EXPECT_THAT(read_script(in, "name.drill").wrong, HasSubstr("'patience soon'"));
}

/// Nothing arrives in it; it remembers the PSNs that the script sends.
class DeafTestbed final : public Testbed {
 public:
  std::string lacks(const Script&) override { return {}; }
  void begin(const Script&, Variables&, Definitions&) override {}
  base::Instant now() const override { return {}; }
  base::Duration patience() const override { return {}; }
  base::Duration quiet() const override { return {}; }
  void arrive(std::span<const std::uint8_t> bytes, const Travel&) override {
    psns.push_back(find_header("request")->decode(bytes)->at("psn"));
  }
  std::optional<SeenPacket> next(base::Instant) override { return {}; }
  void pass(base::Duration) override {}
  StepResult step(Words) override { return {.is_known = false}; }
  std::string trouble() override { return {}; }

  std::vector<std::uint64_t> psns;
};

std::string run(const std::string& text, DeafTestbed& testbed) {
  std::istringstream in(text);
  return run_script(read_script(in, "name.drill"), testbed).why;
}

TEST(DrillRun, repeat__may_stand_in_another) {
  DeafTestbed testbed;
  EXPECT_EQ(
      run("let n 10\nrepeat 2\nlet n $n+10\nrepeat 3\nlet n $n+1\n< request psn=$n\nend\nend\n"
          "< request psn=0\n",
          testbed),
      "");
  EXPECT_THAT(testbed.psns, ElementsAre(21, 22, 23, 34, 35, 36, 0));
}

TEST(DrillRun, repeat__is_bounded_and_has_an_end) {
  DeafTestbed testbed;
  EXPECT_EQ(run("repeat 2\n< request psn=1\n", testbed), "repeat without end");
  EXPECT_EQ(run("end\n", testbed), "end without repeat");
  EXPECT_THAT(run("repeat 0\nend\n", testbed), HasSubstr("repeat 1 to"));
  EXPECT_THAT(run("repeat 100001\nend\n", testbed), HasSubstr("repeat 1 to"));
}

/// An endpoint that sends what it sends when it sends it, whatever comes.
class StubbornTestbed final : public Testbed {
 public:
  std::string lacks(const Script&) override { return {}; }
  void begin(const Script&, Variables& variables, Definitions& definitions) override {
    for (const auto& [name, value] : std::map<std::string, std::uint64_t>{{"id", 9},
                                                                          {"id2", 10},
                                                                          {"start", 500},
                                                                          {"msg", 4},
                                                                          {"key", 7},
                                                                          {"base", 0},
                                                                          {"mtu", 1024}})
      variables.set(name, value);
    definitions["to"] = {"rel=1"};
  }
  base::Instant now() const override { return now_; }
  base::Duration patience() const override { return base::Duration::from_seconds(5); }
  base::Duration quiet() const override { return base::Duration::from_ms(150); }
  void arrive(std::span<const std::uint8_t>, const Travel&) override {}
  std::optional<SeenPacket> next(base::Instant until) override {
    if (packets.empty() || packets.front().first > until) {
      now_ = std::max(now_, until);
      return {};
    }
    now_ = std::max(now_, packets.front().first);
    SeenPacket seen{.bytes = packets.front().second};
    packets.pop_front();
    return seen;
  }
  void pass(base::Duration span) override { now_ = now_ + span; }
  StepResult step(Words words) override { return {.is_known = words[0] == "initiate"}; }
  std::string trouble() override { return {}; }

  void send_at(std::int64_t ms, const std::string& text) {
    packets.emplace_back(base::Instant{} + base::Duration::from_ms(ms), packet(text));
  }
  /// And again after 400 ms, and after twice as long each time.
  void send_for_ever(const std::string& text) {
    for (std::int64_t at = 0, gap = 400; at < 60'000; at += gap, gap *= at == 400 ? 1 : 2)
      send_at(at, text + (at == 0 ? "" : " retx=1") + rest);
  }

  std::string rest;  ///< the headers behind the first
  std::deque<std::pair<base::Instant, std::vector<std::uint8_t>>> packets;

 private:
  base::Instant now_;
};

Outcome play(const std::string& name, StubbornTestbed& testbed) {
  const std::string path = std::string(UET_DRILL_SCRIPTS) + "/" + name + ".drill";
  std::ifstream in(path);
  EXPECT_TRUE(in) << path;
  return run_script(read_script(in, path), testbed);
}

TEST(DrillScripts, copies_behind_the_ack__are_noticed_though_their_timeout_doubles) {
  for (const char* const name : {"INI-012-opening", "INI-015-lost-syn"}) {
    StubbornTestbed endpoint;
    endpoint.rest =
        " next_hdr=REQUEST_STD / standard_som1 opcode=WRITE eom=1 request_length=100 message_id=6 "
        "/ "
        "payload 100";
    endpoint.send_for_ever("request_syn psn=70 ar=1 spdcid=33");
    EXPECT_EQ(play(name, endpoint).why, "that packet was sent") << name;
  }
  StubbornTestbed initiator;
  initiator.send_at(
      0,
      "request_syn psn=70 spdcid=33 next_hdr=REQUEST_STD / standard_som1 opcode=WRITE "
      "eom=1 request_length=100");
  initiator.send_for_ever("control ctl_type=CLOSE_COMMAND psn=71 ar=1 spdcid=33 dpdcid=9");
  EXPECT_EQ(play("INI-161-target-asks-for-the-close", initiator).why, "that packet was sent");
  for (const char* const name :
       {"PDS-136-read-data-in-the-return-direction", "PDS-138-retransmission"}) {
    StubbornTestbed target;
    target.rest =
        " next_hdr=RESPONSE_DATA / response_data return_code=RC_OK message_id=8 "
        "read_request_message_id=5 "
        "payload_length=64 modified_length=64 / payload 64 fill=7";
    target.send_at(0, "ack cack_psn=500 spdcid=33 dpdcid=9");
    target.send_for_ever("request psn=500 spdcid=33 dpdcid=9");
    EXPECT_EQ(play(name, target).why, "that packet was sent") << name;
  }
}

TEST(DrillScripts, granted_window__is_neither_passed_nor_out_of_reach) {
  for (const std::uint64_t sent : {100u, 128u, 129u}) {
    StubbornTestbed endpoint;
    endpoint.send_at(0,
                     "request_syn psn=70 spdcid=33 next_hdr=REQUEST_STD / standard_som1 "
                     "opcode=WRITE eom=1 request_length=100");
    endpoint.send_at(200,
                     "request psn=71 spdcid=33 dpdcid=9 next_hdr=REQUEST_STD / standard_som1 "
                     "opcode=WRITE request_length=1638400");
    for (std::uint64_t n = 2; n <= sent; ++n)
      endpoint.send_at(200, fmt::format("request psn={} spdcid=33 dpdcid=9", 70 + n));
    endpoint.send_at(5000, "request psn=199 spdcid=33 dpdcid=9");
    const std::string why = play("INI-056-window-that-was-granted", endpoint).why;
    if (sent < 128) {
      EXPECT_THAT(why, HasSubstr("no such packet was sent"));
    }
    if (sent == 128) {
      EXPECT_EQ(why, "");
    }
    if (sent > 128) {
      EXPECT_EQ(why, "that packet was sent");
    }
  }
}

TEST(DrillScripts, hole_in_a_sack__may_be_shown_from_any_base) {
  const auto sack = [](int offset, const char* bitmap) {
    StubbornTestbed target;
    target.send_at(0, "ack cack_psn=500 spdcid=33 dpdcid=9");
    target.send_at(1, fmt::format("ack_cc_nscc cack_psn=500 ack_psn_offset=2 sack_psn_offset={} "
                                  "sack_bitmap={} spdcid=33 dpdcid=9",
                                  offset, bitmap));
    target.send_at(2, "ack cack_psn=502 spdcid=33 dpdcid=9");
    std::ifstream in(std::string(UET_DRILL_SCRIPTS) + "/PDS-009-sack-bits.drill");
    std::string text, line;
    while (std::getline(in, line))  // what a request is, does not matter here
      text += line.substr(0, line.find(" / @request")) + "\n";
    std::istringstream script(text);
    return run_script(read_script(script, "name.drill"), target).why;
  };
  EXPECT_EQ(sack(1, "2"), "");
  EXPECT_EQ(sack(2, "1"), "");
  EXPECT_EQ(sack(-8, "0x401"), "");
  EXPECT_EQ(sack(-61, "0x8000000000000000"), "");
  for (const char* const wrong : {"0", "1", "3"}) EXPECT_NE(sack(1, wrong), "") << wrong;
}

TEST(DrillScripts, what_the_text_leaves_open__needs_a_capability) {
  std::ifstream in(std::string(UET_DRILL_SCRIPTS) + "/SES-014-same-bytes-again.drill");
  EXPECT_THAT(read_script(in, "name.drill").needs, testing::Contains("overlaps"));
  EXPECT_FALSE(Peer{}.can.contains("overlaps"));
}

TEST(DrillScripts, operation_of_one_packet__may_have_any_header_of_a_request) {
  for (const char* const header :
       {"next_hdr=REQUEST_STD / standard_som1 message_id=6", "next_hdr=REQUEST_MEDIUM / medium",
        "next_hdr=REQUEST_SMALL / small"}) {
    StubbornTestbed endpoint;
    const auto syn = [&](const char* more) {
      return fmt::format(
          "request_syn psn=70 spdcid=33 ar=1{} {} opcode=WRITE eom=1 request_length=100 / payload "
          "100",
          more, header);
    };
    endpoint.send_at(0, syn(""));
    endpoint.send_at(400, syn(" retx=1"));
    EXPECT_EQ(play("INI-012-opening", endpoint).why, "") << header;
  }
}

TEST(DrillRun, quiet__takes_a_time_or_a_gap_that_was_seen) {
  StubbornTestbed testbed;
  const auto run_text = [&testbed](const std::string& text) {
    std::istringstream in(text);
    return run_script(read_script(in, "name.drill"), testbed).why;
  };
  EXPECT_THAT(run_text("quiet gap\n"), HasSubstr("fewer than two"));
  EXPECT_THAT(run_text("quiet\n"), HasSubstr("quiet TIME"));
  testbed.send_at(500, "ack cack_psn=5");
  EXPECT_EQ(run_text("never ack\n"), "");
  EXPECT_EQ(run_text("quiet 1s\nnever ack\n"), "that packet was sent");
}

TEST(DrillRun, misspelt_packet__is_an_error_whatever_comes) {
  const std::pair<const char*, const char*> wrongs[] = {
      {"nakk nack_code=INV_DPDCID", "there is no header 'nakk'"},
      {"nack nack_kode=INV_DPDCID", "no header has 'nack_kode'"},
      {"nack cack_psn=5", "nack has no 'cack_psn'"},
      {"any_request nack_code=INV_DPDCID", "any_request has no 'nack_code'"},
      {"nack sacked=5", "nack has no 'sacked'"},
      {"nack nack_code=NOSUCHCODE", "'NOSUCHCODE' is no number"},
      {"nack nack_code=INV_DPDCID|NOSUCHCODE", "'NOSUCHCODE' is no number"},
      {"nack nack_psn=?a dpdcid=$nowhere", "$nowhere has no value yet"},
      {"nack / payload some", "'some' is no number"},
      {"psn=5 request", "a header must come before"},
      {"", "which packet?"},
  };
  for (const auto& [packet, why] : wrongs) {
    for (const char* const step : {"never", ">", ">>"}) {
      const std::string line = fmt::format("{} {}\n", step, packet);
      DeafTestbed silent;
      EXPECT_THAT(run(line, silent), HasSubstr(why)) << line;
      StubbornTestbed speaks;
      speaks.send_at(0, "ack cack_psn=5");
      std::istringstream in(line);
      EXPECT_THAT(run_script(read_script(in, "name.drill"), speaks).why, HasSubstr(why)) << line;
    }
  }
  DeafTestbed silent;
  EXPECT_EQ(
      run("never any_ack sack_bitmap=!0 cack_psn=?a sacked=$a+1 / any_message som=1\n", silent),
      "");
  EXPECT_EQ(run("never to=2 dscp=?d entropy=5|6 any_request psn=-1\n", silent), "");
}

TEST(DrillRun, words_that_a_step_does_not_read__are_an_error) {
  const std::pair<const char*, const char*> wrongs[] = {
      {"skip 7 packets", "skip wants no more words"},
      {"settle 3s", "settle wants no more words"},
      {"wait 1ms please", "wait wants one word"},
      {"dscp", "dscp wants one word"},
      {"entropy 1 2", "entropy wants one word"},
      {"repeat 2 3\nend", "repeat wants one word"},
      {"> nothing 5s", "quiet TIME"},
  };
  for (const auto& [line, why] : wrongs) {
    DeafTestbed testbed;
    EXPECT_THAT(run(std::string(line) + "\n", testbed), HasSubstr(why)) << line;
  }
}

TEST(DrillRun, values_that_do_not_fit__are_an_error) {
  for (const char* const line :
       {"dscp 64", "ecn 4", "entropy 65536", "< standard_som1 message_id=65536",
        "< standard_som1 opcode=0x1ff", "< request psn=-4294967296",
        "every 1ms nack nack_psn=0x100000000"}) {
    DeafTestbed testbed;
    EXPECT_THAT(run(std::string(line) + "\n", testbed),
                testing::AnyOf(HasSubstr("is more than"), HasSubstr("does not fit into the field")))
        << line;
  }
  DeafTestbed testbed;
  EXPECT_EQ(run("dscp 63\necn 3\nentropy 65535\nlet n -1\n< request psn=-1\n< request psn=$n+2\n"
                "< request psn=0xffffffff\n",
                testbed),
            "");
  EXPECT_THAT(testbed.psns, ElementsAre(0xffffffff, 1, 0xffffffff));
}

TEST(DrillMatch, sacked__reckons_from_base_and_cack) {
  const std::string ack = "ack_cc_nscc cack_psn=0xfffffffe sack_psn_offset=1 sack_bitmap=5";
  EXPECT_TRUE(match("any_ack sacked=0xffffffff sacked=!0 sacked=1 sacked=!2", ack).is_exact());
  EXPECT_EQ(text_of(match("any_ack sacked=0", ack)), "sacked is 0x5 from 4294967295, not 0");
  EXPECT_THAT(match("any_ack sacked=!1", ack).differences, SizeIs(1));
  EXPECT_THAT(match("any_ack sacked=1", "ack").differences, SizeIs(1)) << "it has no SACK";
  EXPECT_TRUE(match("any_ack sacked=!1", "ack").is_exact());
}

TEST(DrillMatch, any_message__lacks_no_field_that_is_remembered) {
  Variables v;
  EXPECT_TRUE(match("request / any_message request_length=9 message_id=?m",
                    "request next_hdr=REQUEST_MEDIUM / medium request_length=9", v)
                  .is_exact());
  std::string why;
  EXPECT_EQ(v.read("$m", why), 0u);
  EXPECT_FALSE(
      match("request / any_message message_id=3", "request next_hdr=REQUEST_MEDIUM / medium")
          .is_exact());
  EXPECT_FALSE(
      match("request / any_message", "request next_hdr=REQUEST_STD / standard_som0").is_kind);
  EXPECT_FALSE(match("any_message", "medium").is_kind) << "what it is, the header before tells";
}

TEST(DrillMatch, every_field_that_differs_is_told) {
  const Match m = match("nack nack_code=INVALID_SYN nack_psn=7 dpdcid=9 spdcid=1",
                        "nack nack_code=UNEXP_EVENT nack_psn=8 dpdcid=9 spdcid=1");
  ASSERT_THAT(m.differences, SizeIs(2));
  EXPECT_EQ(m.differences[0].field, "nack_code");
  EXPECT_EQ(m.differences[0].expected, "INVALID_SYN");
  EXPECT_EQ(m.differences[0].got, "UNEXP_EVENT");
  EXPECT_EQ(text_of(m), "nack_code is UNEXP_EVENT, not INVALID_SYN; nack_psn is 8, not 7");
}

TEST(DrillMatch, value__may_have_alternatives_or_be_excluded) {
  EXPECT_TRUE(match("ack req=CLEAR|CLOSE", "ack req=CLOSE").is_exact());
  EXPECT_FALSE(match("ack req=CLEAR|CLOSE", "ack req=NONE").is_exact());
  EXPECT_TRUE(match("ack req=!CLEAR|CLOSE", "ack req=NONE").is_exact());
  EXPECT_FALSE(match("ack req=!CLEAR|CLOSE", "ack req=CLEAR").is_exact());
}

TEST(DrillMatch, family__takes_each_of_its_kind_and_no_other) {
  for (const char* const ack : {"ack", "ack_cc_nscc", "ack_cc_credit cc_type=1", "ack_ccx"}) {
    const std::string sent =
        std::string(ack) + " cack_psn=5 next_hdr=RESPONSE / response message_id=3";
    EXPECT_TRUE(match("any_ack cack_psn=5 / response message_id=3", sent).is_exact()) << ack;
  }
  EXPECT_FALSE(match("any_ack", "nack").is_kind);
  EXPECT_FALSE(match("any_request", "request_syn").is_kind);
  EXPECT_TRUE(match("any_request psn=4", "request_cc type=ROD_CC_REQ psn=4").is_exact());
  EXPECT_TRUE(match("any_request_syn psn=4", "request_cc_syn psn=4").is_exact());
}

TEST(DrillMatch, field_of_another_kind__is_a_difference_and_a_misspelt_one_an_error) {
  EXPECT_THAT(match("any_ack sack_bitmap=2", "ack").differences, SizeIs(1));
  EXPECT_THAT(match("any_ack sack_bitmpa=2", "ack").error, HasSubstr("sack_bitmpa"));
}

TEST(DrillMatch, payload__is_verified_byte_by_byte) {
  const std::string sent = "ack / payload 300 fill=7 at=1024";
  EXPECT_TRUE(match("ack / payload 300 fill=7 at=1024", sent).is_exact());
  EXPECT_TRUE(match("ack / payload 300", sent).is_exact());
  for (const char* const other : {"payload 300 fill=7", "payload 300 fill=8 at=1024",
                                  "payload 299 fill=7 at=1024", "payload 300 fill=7 at=2048"})
    EXPECT_FALSE(match(std::string("ack / ") + other, sent).is_exact()) << other;
}

TEST(DrillMatch, variables__are_remembered_and_reckoned_with) {
  Variables v;
  EXPECT_TRUE(match("ack cack_psn=?a spdcid=?b", "ack cack_psn=40 spdcid=2", v).is_exact());
  EXPECT_TRUE(match("ack cack_psn=$a+$b spdcid=$a-38", "ack cack_psn=42 spdcid=2", v).is_exact());
}

TEST(DrillMatch, noise__never_matches_and_is_always_shown) {
  std::uint32_t seed = 1;
  for (std::size_t size = 0; size < 200; ++size) {
    SeenPacket noise;
    for (std::size_t i = 0; i < size; ++i)
      noise.bytes.push_back(static_cast<std::uint8_t>((seed = seed * 1664525 + 1013904223) >> 24));
    Variables v;
    const auto wanted = words("any_ack cack_psn=123456 dpdcid=4711 / response message_id=99");
    EXPECT_FALSE(match_packet(wanted, noise, v).is_exact());
    EXPECT_FALSE(show_packet(noise.bytes).empty());
  }
}

TEST(DrillLedger, own_pdc__is_cleared_and_closed) {
  PdcLedger ledger;
  ledger.begin({9, 10});
  ledger.on_sent(packet("request_syn psn=500 spdcid=9"));
  ledger.on_sent(packet("request psn=501 spdcid=9 dpdcid=33"));
  EXPECT_FALSE(ledger.is_anything_open()) << "the peer has not answered";
  ledger.on_received(packet("ack cack_psn=501 spdcid=33 dpdcid=9"));
  ASSERT_TRUE(ledger.is_anything_open());
  const auto farewells = ledger.farewells();
  ASSERT_THAT(farewells, SizeIs(2));
  Variables v;
  EXPECT_TRUE(match_packet(words("control ctl_type=CLOSE_COMMAND psn=502 spdcid=9 dpdcid=33 ar=1"),
                           SeenPacket{.bytes = farewells[1]}, v)
                  .is_exact());
  ledger.on_sent(farewells[1]);
  ledger.on_received(packet("ack cack_psn=502 spdcid=33 dpdcid=9"));
  EXPECT_FALSE(ledger.is_anything_open());
}

TEST(DrillLedger, unanswered_opening_of_the_peer__is_ended_too) {
  PdcLedger ledger;
  ledger.begin({9, 10});
  ledger.on_received(packet("request_syn psn=0xfffffffe spdcid=70"));
  ASSERT_THAT(ledger.farewells(), SizeIs(1));
  const auto again = packet(
      "request_syn psn=0xfffffffe retx=1 spdcid=70 next_hdr=REQUEST_STD / standard_som1 "
      "message_id=6");
  const auto answer = ledger.answer_at_the_end(again);
  Variables v;
  EXPECT_EQ(text_of(match_packet(words("ack req=CLOSE cack_psn=0xfffffffe spdcid=9 dpdcid=70 / "
                                       "response return_code=RC_OK message_id=6"),
                                 SeenPacket{.bytes = answer}, v)),
            "");
}

TEST(DrillLedger, past__is_told_apart_and_answered_as_by_an_endpoint_at_rest) {
  PdcLedger ledger;
  ledger.begin({9});
  ledger.on_received(packet("request_syn psn=501 psn_offset=1 spdcid=70"));
  ledger.begin({10});
  EXPECT_TRUE(ledger.is_of_the_past(packet("request psn=7 spdcid=33 dpdcid=9")));
  EXPECT_FALSE(ledger.is_of_the_past(packet("request psn=7 spdcid=33 dpdcid=10")));
  EXPECT_TRUE(ledger.is_of_the_past(packet("request_syn psn=500 spdcid=70")));
  EXPECT_FALSE(ledger.is_of_the_past(packet("request_syn psn=501 spdcid=70")));
  Variables v;
  const auto nack = ledger.answer_to_the_past(packet("request psn=7 spdcid=33 dpdcid=9"));
  EXPECT_TRUE(match_packet(words("nack nack_code=INV_DPDCID nack_psn=7 spdcid=0 dpdcid=33"),
                           SeenPacket{.bytes = nack}, v)
                  .is_exact());
  EXPECT_THAT(ledger.answer_to_the_past(packet("nack spdcid=33 dpdcid=9")), IsEmpty());
}

TEST(DrillLedger, pdc_of_a_process_before__is_unknown_and_answers_are_not) {
  PdcLedger ledger;
  ledger.begin({9});
  const auto asks = packet("control ctl_type=CLOSE_REQUEST psn=70 spdcid=33 dpdcid=4711");
  EXPECT_TRUE(ledger.is_of_the_past(asks));
  Variables v;
  EXPECT_TRUE(match_packet(words("nack nack_code=INV_DPDCID nack_psn=70 dpdcid=33"),
                           SeenPacket{.bytes = ledger.answer_to_the_past(asks)}, v)
                  .is_exact());
  EXPECT_FALSE(ledger.is_of_the_past(packet("nack nack_code=INV_DPDCID dpdcid=4711")));
  EXPECT_FALSE(ledger.is_of_the_past(packet("ack spdcid=33 dpdcid=4711")));
}

TEST(DrillLedger, unfinished_operation_of_the_past__succeeds) {
  PdcLedger ledger;
  ledger.begin({9});
  ledger.on_received(packet("request_syn psn=500 spdcid=70"));
  ledger.on_sent(packet("ack cack_psn=500 spdcid=9 dpdcid=70"));
  ledger.begin({10});
  const auto answer = ledger.answer_to_the_past(packet(
      "request psn=501 spdcid=70 dpdcid=9 next_hdr=REQUEST_STD / standard_som0 message_id=6"));
  Variables v;
  EXPECT_EQ(text_of(match_packet(words("ack req=CLOSE cack_psn=501 spdcid=9 dpdcid=70 / "
                                       "response return_code=RC_OK message_id=6"),
                                 SeenPacket{.bytes = answer}, v)),
            "");
  const auto closed = ledger.answer_to_the_past(
      packet("control ctl_type=CLOSE_COMMAND psn=502 spdcid=70 dpdcid=9"));
  EXPECT_TRUE(match_packet(words("ack cack_psn=502"), SeenPacket{.bytes = closed}, v).is_exact());
  EXPECT_TRUE(match_packet(words("nack nack_code=INV_DPDCID"),
                           SeenPacket{.bytes = ledger.answer_to_the_past(
                                          packet("request psn=503 spdcid=70 dpdcid=9"))},
                           v)
                  .is_exact());
}

}  // namespace
}  // namespace uet::drill
