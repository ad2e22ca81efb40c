// What scripts mean, piece by piece: heads, packets as text, and what is left open at the end.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "apps/drill/headers.h"
#include "apps/drill/interpreter.h"
#include "apps/drill/packet_text.h"
#include "apps/drill/pdc_ledger.h"
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
