// NO_RESPONSE, and the verdict that follows or does not. [SES 11.2]
#include "tests/ses/outcome_fixture.h"

namespace uet::ses::testing {
namespace {

// Covers: SES-66
TEST_F(OutcomeTest, only_no_response__is_not_complete) {
  open();
  Bytes into(2 * kM);
  post(into);
  send(pattern(2 * kM));
  fabric.cut_all();
  const pds::MessageToken token = fabric.flights[0].token;
  fabric.flights.clear();
  wire::SesResponse h;
  h.opcode = ResponseOpcode::kNoResponse;
  h.return_code = wire::ReturnCode::kOk;
  h.job_id = 7;
  Bytes none(wire::SesResponse::kSize);
  wire::emit(h, none.data());
  for (std::uint32_t s = 0; s < 2; ++s)
    sa().on_response(fabric.now, token, s, static_cast<std::uint8_t>(wire::NextHdr::kResponse),
                     none);
  EXPECT_TRUE(at_a.all.empty());
}

/// A send of one packet, delivered and answered NO_RESPONSE.
struct VerdictTest : OutcomeTest {
  void undecided() {
    open();
    post(into);
    Bytes data = pattern(kM);
    send_with(data, true, false, 1);
    fabric.cut_all();
    const Flight flight = fabric.flights[0];
    fabric.flights.clear();
    pdc = flight.channel->ref_at_from;
    verdict.message_id = flight.view(kM).message_id;
    verdict.job_id = flight.view(kM).job_id;
    wire::SesResponse none = verdict;
    none.opcode = ResponseOpcode::kNoResponse;
    Bytes bytes(wire::SesResponse::kSize);
    wire::emit(none, bytes.data());
    sa().on_response(fabric.now, flight.token, 0, kPlain, bytes);
    verdict.opcode = ResponseOpcode::kResponse;
    verdict.return_code = wire::ReturnCode::kOk;
  }
  void say(const wire::SesResponse& h, pds::PdcRef on) {
    Bytes bytes(wire::SesResponse::kSize);
    wire::emit(h, bytes.data());
    sa().on_further_response(fabric.now, on, kPlain, bytes);
  }
  static constexpr auto kPlain = static_cast<std::uint8_t>(wire::NextHdr::kResponse);
  Bytes into = Bytes(kM);
  pds::PdcRef pdc;
  wire::SesResponse verdict;
};

TEST_F(VerdictTest, response_after_no_response__completes_once) {
  undecided();
  EXPECT_TRUE(at_a.all.empty());
  say(verdict, pdc);
  ASSERT_EQ(at_a.all.size(), 1u);
  EXPECT_EQ(at_a.all[0].code, ReturnCode::kOk);
  say(verdict, pdc);
  EXPECT_EQ(at_a.all.size(), 1u);
  EXPECT_EQ(sa().gauges().sends_active, 0u);
}

TEST_F(VerdictTest, error_after_no_response__is_the_outcome) {
  undecided();
  verdict.return_code = wire::ReturnCode::kPermViolation;
  say(verdict, pdc);
  ASSERT_EQ(at_a.all.size(), 1u);
  EXPECT_EQ(at_a.all[0].code, ReturnCode::kPermViolation);
}

// What a PDS makes for a duplicate is no verdict; nor is what names another message, job or PDC.
TEST_F(VerdictTest, what_is_not_its_verdict__changes_nothing) {
  undecided();
  wire::SesResponse h = verdict;
  h.opcode = ResponseOpcode::kDefaultResponse;
  say(h, pdc);
  h.opcode = ResponseOpcode::kNoResponse;
  say(h, pdc);
  h = verdict;
  h.message_id = static_cast<std::uint16_t>(h.message_id ^ 0x8000);
  say(h, pdc);
  h = verdict;
  ++h.job_id;
  say(h, pdc);
  say(verdict, pds::PdcRef{pdc.value + 1});
  sa().on_further_response(fabric.now, pdc, kPlain, {});
  EXPECT_TRUE(at_a.all.empty());
  EXPECT_EQ(sa().gauges().sends_active, 1u);
  say(verdict, pdc);
  EXPECT_EQ(at_a.all.size(), 1u);
}

// A response that is not to be had twice: the first one has decided, a second one is a copy or forged.
TEST_F(OutcomeTest, further_response_to_a_decided_message__changes_nothing) {
  open();
  Bytes into(2 * kM);
  post(into);
  send(pattern(2 * kM));
  fabric.cut_all();
  const Flight flight = fabric.flights[0];
  fabric.deliver(0);
  sa().on_response(fabric.now, flight.token, 0, 0, {});
  wire::SesResponse h;
  h.opcode = ResponseOpcode::kResponse;
  h.return_code = wire::ReturnCode::kPermViolation;
  h.message_id = flight.view(kM).message_id;
  h.job_id = flight.view(kM).job_id;
  Bytes bytes(wire::SesResponse::kSize);
  wire::emit(h, bytes.data());
  sa().on_further_response(fabric.now, flight.channel->ref_at_from,
                           static_cast<std::uint8_t>(wire::NextHdr::kResponse), bytes);
  fabric.replies.clear();
  fabric.deliver(0);
  fabric.run();
  ASSERT_EQ(at_a.all.size(), 1u);
  EXPECT_EQ(at_a.all[0].code, ReturnCode::kOk);
}

// A target that says nothing more and lets the PDC end leaves no operation open for ever.
TEST_F(OutcomeTest, no_verdict_before_the_pdc_closes__is_an_error) {
  open();
  Bytes into(kM);
  post(into);
  send(pattern(kM));
  fabric.cut_all();
  const pds::MessageToken token = fabric.flights[0].token;
  const pds::PdcRef pdc = fabric.flights[0].channel->ref_at_from;
  fabric.flights.clear();
  wire::SesResponse h;
  h.opcode = ResponseOpcode::kNoResponse;
  h.job_id = 7;
  Bytes none(wire::SesResponse::kSize);
  wire::emit(h, none.data());
  sa().on_response(fabric.now, token, 0, static_cast<std::uint8_t>(wire::NextHdr::kResponse), none);
  sa().on_pdc_closed(fabric.now, pds::PdcRef{pdc.value + 1000}, b.address);
  EXPECT_TRUE(at_a.all.empty());
  sa().on_pdc_closed(fabric.now, pdc, b.address);
  ASSERT_EQ(at_a.all.size(), 1u);
  EXPECT_EQ(at_a.all[0].code, ReturnCode::kUncor);
  EXPECT_EQ(sa().gauges().sends_active, 0u);
}

}  // namespace
}  // namespace uet::ses::testing
