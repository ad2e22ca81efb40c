// Control packets. [PDS 15]
#include "tests/pds/open_pdc.h"

namespace uet::pds::test {
namespace {

// Covers: PDS-185
TEST(Control, ack_request_in_each_state) {
  Open x;
  RxHandle pending;
  x.w.host(1).ses.answer = [&](const RxRequest& r, auto&) {
    pending = r.handle;
    return ScriptedSes::later();
  };
  x.arrive(x.request(x.next + 1));
  x.w.host(1).ses.answer = [](auto&, auto&) { return ScriptedSes::respond(true); };
  x.arrive(x.request(x.next + 2));
  x.w.log.clear();
  const auto ask = [&](Psn psn) {
    wire::PdsControl h;
    h.ctl_type = ControlType::kAckRequest;
    h.ar = true;
    h.psn = psn;
    h.spdcid = x.id0;
    h.dpdcid = x.id1;
    x.w.inject(1, x.w.host(0).address, h);
    x.w.pump();
  };
  ask(x.next - 1);
  ASSERT_EQ(x.w.acks(1).size(), 1u);
  EXPECT_EQ(x.w.acks(1)[0].ack_psn, x.next - 1);
  ask(x.next);
  EXPECT_EQ(x.w.nacks(1).at(0).code, NackCode::kPktNotRcvd);
  ask(x.next + 1);
  EXPECT_EQ(x.w.nacks(1).at(1).code, NackCode::kRcvdSesProcg);
  ask(x.next + 2);
  ASSERT_EQ(x.w.acks(1).size(), 2u);
  EXPECT_EQ(x.w.acks(1)[1].next_hdr, 4);
  ask(x.next + 5000);
  EXPECT_EQ(x.w.nacks(1).size(), 2u);
}

// Covers: PDS-186
TEST(Control, probe_is_answered_with_its_opaque_value) {
  Open x;
  x.inject_probe(x.next, 0xbeef);
  x.w.pump();
  ASSERT_EQ(x.w.acks(1).size(), 1u);
  EXPECT_TRUE(x.w.acks(1)[0].p);
  EXPECT_EQ(x.w.acks(1)[0].opaque, 0xbeef);
  EXPECT_EQ(x.w.acks(1)[0].sack_base, x.next);
}

// Covers: PDS-186
TEST(Control, probe_answer__begins_its_sack_where_the_probe_asks_for_it) {
  Open x;
  x.arrive(x.request(x.next + 12));
  const auto base_of = [&](Psn asked) {
    x.w.log.clear();
    x.inject_probe(asked);
    x.w.pump();
    return x.w.acks(1).back();
  };
  const Psn cack = x.next - 1;
  EXPECT_EQ(base_of(cack + 10).sack_base, cack + 10);
  EXPECT_EQ(base_of(cack + 10).sack, 1u << 3);
  EXPECT_EQ(base_of(cack + 200).sack_base, cack + 200);
  EXPECT_EQ(base_of(cack - 5).sack_base, cack + 1);
  EXPECT_EQ(base_of(cack + 100'000).sack_base, cack + 1);
}

// Its answer says how long the Probe waited and how it came, not a packet that came after it.
TEST(Control, a_probe_answer_tells_of_the_probe) {
  Open x;
  x.inject_probe(x.next);
  x.w.inject(1, x.w.host(0).address, x.request(x.next), x.w.segment_bytes(900, 0, 30),
             net::TosByte::of(0, 3).value);  // congestion experienced
  x.w.pump();
  const auto answers = x.w.sent(1, [](const Seen& s) { return s.is_ack() && s.p; });
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_FALSE(answers[0].m);
}

// Covers: PDS-166, PDS-189
TEST(Control, wrong_role_and_unknown_pdc_are_dropped) {
  Open x;
  wire::PdsControl h;
  h.ctl_type = ControlType::kCloseRequest;
  h.psn = x.next;
  h.spdcid = x.id0;
  h.dpdcid = x.id1;
  x.w.inject(1, x.w.host(0).address, h);
  EXPECT_EQ(x.w.host(1).drops(DropReason::kRoleMismatch), 1u);
  h.ctl_type = ControlType::kCredit;
  h.dpdcid = 0;
  x.w.inject(1, x.w.host(0).address, h);
  EXPECT_EQ(x.w.host(1).drops(DropReason::kUnknownPdc), 1u);
  x.w.pump();
  EXPECT_TRUE(x.w.nacks(1).empty());
}

}  // namespace
}  // namespace uet::pds::test
