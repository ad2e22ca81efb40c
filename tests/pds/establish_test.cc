// Opening PDCs. [PDS 5, 6]
#include "tests/pds/open_pdc.h"

namespace uet::pds::test {
namespace {

// Covers: PDS-12
TEST(Establish, first_packet_opens_and_carries_data) {
  World w;
  w.send(0, 1);
  w.run_until_quiet();
  const auto req = w.requests(0);
  ASSERT_EQ(req.size(), 1u);
  EXPECT_TRUE(req[0].syn);
  EXPECT_EQ(req[0].psn_offset, 0);
  const auto ack = w.acks(1);
  ASSERT_EQ(ack.size(), 1u);
  EXPECT_NE(ack[0].spdcid, 0);
  EXPECT_EQ(ack[0].dpdcid, req[0].spdcid);
  EXPECT_EQ(w.host(1).ses.delivered.size(), 1u);
  EXPECT_EQ(w.host(0).ses.responses.size(), 1u);
  EXPECT_EQ(w.host(0).count(EventId::kPdcEstablished), 1u);
}

// Covers: PDS-13
TEST(Establish, syn_until_the_first_ack) {
  World w;
  w.send(0, 1, 10);
  w.run_until_quiet();
  w.send(0, 1, 3);
  w.run_until_quiet();
  const auto req = w.requests(0);
  ASSERT_EQ(req.size(), 13u);
  const auto ack = w.acks(1);
  for (unsigned i = 0; i < 10; ++i) {
    EXPECT_TRUE(req[i].syn);
    EXPECT_EQ(req[i].psn_offset, i);
  }
  for (unsigned i = 10; i < 13; ++i) {
    EXPECT_FALSE(req[i].syn);
    EXPECT_EQ(req[i].dpdcid, ack[0].spdcid);
  }
}

// Covers: PDS-16
TEST(Establish, lost_ack_of_syn_does_not_deliver_twice) {
  World w;
  w.drop_nth(1, 1, [](const Seen& s) { return s.is_ack(); });
  w.send(0, 1);
  w.run_until_quiet();
  EXPECT_EQ(w.host(1).ses.delivered.size(), 1u);
  EXPECT_EQ(w.host(0).ses.responses.size(), 1u);
  EXPECT_EQ(w.host(1).pds->gauges().pdcs_open, 1u);
  EXPECT_EQ(w.requests(0).size(), 2u);
}

// Covers: PDS-3, PDS-4, PDS-5
TEST(Syn, start_psn_is_psn_minus_unsigned_offset) {
  World w(with([](auto& o) { o.pds.local_mp_range = 8192; }));
  wire::PdsRequestSyn h;
  h.next_hdr = NextHdr::kRequestStd;
  h.psn = Psn(2);
  h.psn_offset = 5;
  h.spdcid = 7;
  w.inject(1, w.host(0).address, h, w.segment_bytes(1, 0, 10));
  w.pump();
  ASSERT_EQ(w.acks(1).size(), 1u);
  EXPECT_EQ(w.acks(1)[0].cack, Psn(0xfffffffc));  // nothing in order yet: Start_PSN - 1
  h.psn = Psn(5000);
  h.psn_offset = 0x0fff;
  h.spdcid = 8;
  w.inject(1, w.host(0).address, h, w.segment_bytes(2, 0, 10));
  w.pump();
  ASSERT_EQ(w.acks(1).size(), 2u);
  EXPECT_EQ(w.acks(1)[1].cack, Psn(5000 - 4095 - 1));
}

// Covers: PDS-14
TEST(Syn, reversed_arrival_opens_one_pdc) {
  World w;
  int n = 0;
  w.add_rule([&](const Seen& s, Fate& f) {
    if (first_copy(s)) f.extra_delay = us(100 - 10 * n++);
  });
  w.send(0, 1, 10);
  w.run_until_quiet();
  EXPECT_EQ(w.host(1).pds->gauges().pdcs_open, 1u);
  EXPECT_EQ(w.host(1).ses.delivered.size(), 10u);
}

// Covers: PDS-15
TEST(Syn, lost_first_packet_is_sent_again_with_syn) {
  World w;
  w.drop_nth(0, 1, first_copy);
  w.send(0, 1);
  w.run_until_quiet();
  const auto r = w.requests(0);
  ASSERT_EQ(r.size(), 2u);
  EXPECT_TRUE(r[1].syn && r[1].retx);
  EXPECT_EQ(r[1].psn, r[0].psn);
  EXPECT_EQ(w.host(1).ses.delivered.size(), 1u);
}

// Covers: PDS-17, SES-23
TEST(Syn, network_duplicate_is_acknowledged_and_not_delivered) {
  World w;
  w.add_rule([](const Seen& s, Fate& f) {
    if (s.is_request()) f.copies = 2;
  });
  w.send(0, 1);
  w.run_until_quiet();
  w.run_for(ms(1));
  EXPECT_EQ(w.acks(1).size(), 2u);
  EXPECT_EQ(w.host(1).ses.delivered.size(), 1u);
  EXPECT_EQ(w.host(1).pds->gauges().pdcs_open, 1u);
}

// Covers: PDS-18
TEST(Syn, same_spdcid_of_two_initiators_is_two_pdcs) {
  World w;
  wire::PdsRequestSyn h;
  h.next_hdr = NextHdr::kRequestStd;
  h.psn = Psn(10);
  h.spdcid = 5;
  w.inject(1, net::FabricAddress::from_v4(0x0a0000aa), h, w.segment_bytes(1, 0, 1));
  w.inject(1, net::FabricAddress::from_v4(0x0a0000ab), h, w.segment_bytes(2, 0, 1));
  EXPECT_EQ(w.host(1).pds->gauges().pdcs_open, 2u);
}

// Covers: PDS-19
TEST(Syn, second_message_uses_the_pdc_that_is_being_created) {
  World w;
  w.send(0, 1);
  w.pump();
  w.send(0, 1);
  w.run_until_quiet();
  EXPECT_EQ(w.host(0).pds->gauges().pdcs_open, 1u);
}

// Covers: PDS-20
TEST(Syn, no_psn_beyond_the_assumed_window_before_the_first_ack) {
  World w(with([](auto& o) {
    o.pds.local_mp_range = 8192;
    o.pds.default_mpr = 255;
    o.cc.algorithm = cc::Algorithm::kNone;
    o.pds.max_messages_per_pdc = 8192;
    o.pds.max_messages = 8192;
    o.pds.pdc_spread_bytes = 1 << 30;
  }));
  w.add_rule([](const Seen& s, Fate& f) {
    if (s.is_ack()) f.extra_delay = us(500);
  });
  for (int i = 0; i < 5000; ++i) w.send(0, 1, 1, 10);
  w.pump();
  EXPECT_EQ(w.requests(0).back().psn, Psn(1000 + 4095));
  w.run_until_quiet();
  EXPECT_EQ(w.host(1).ses.delivered.size(), 5000u);
}

// Covers: PDS-21
TEST(Syn, retransmission_after_learning_the_target_is_rebuilt) {
  World w;
  w.drop_nth(0, 2, first_copy);
  w.send(0, 1, 4);
  w.run_until_quiet();
  const auto r = w.requests(0);
  ASSERT_EQ(r.size(), 5u);
  EXPECT_TRUE(r[1].syn);
  EXPECT_FALSE(r[4].syn);
  EXPECT_EQ(r[4].psn, r[1].psn);
  EXPECT_EQ(r[4].dpdcid, w.acks(1)[0].spdcid);
  EXPECT_EQ(r[4].clear, r[1].psn - 1);
}

// Covers: PDS-23, PDS-24
TEST(Syn, full_target_says_no_pdc_avail) {
  WorldOptions o = with([](auto& x) {
    x.hosts = 3;
    x.pds.max_pdc = 2;
  });
  World w(o);
  w.host(2).ses.answer = [](auto&, auto&) { return ScriptedSes::later(); };  // keeps its PDCs busy
  w.send(0, 2);
  w.send(1, 2);
  w.run_for(us(100));
  const auto t = w.send(1, w.message(2, 1, 10, Mode::kRod));
  w.run_for(ms(100));
  ASSERT_FALSE(w.nacks(2).empty());
  EXPECT_EQ(w.nacks(2)[0].code, NackCode::kNoPdcAvail);
  EXPECT_EQ(w.nacks(2)[0].spdcid, 0);
  ASSERT_EQ(w.host(1).ses.failures.size(), 1u);
  EXPECT_EQ(w.host(1).ses.failures[0].token, t);
  EXPECT_TRUE(is_retryable(w.host(1).ses.failures[0].error));
}

// Covers: PDS-25
TEST(Syn, full_initiator_closes_an_idle_pdc_and_goes_on) {
  World w(with([](auto& x) {
    x.hosts = 4;
    x.pds.max_pdc = 2;
  }));
  w.send(0, 1);
  w.send(0, 2);
  w.run_until_quiet();
  SubmitResult r{};
  TxMessage m = w.message(3);
  w.host(0).ses.messages[m.token] = m;
  bool sent = false;
  w.host(0).ses.on_resume_hook = [&] {
    sent = sent || w.host(0).pds->submit(w.now(), m) == SubmitResult::kQueued;
  };
  r = w.host(0).pds->submit(w.now(), m);
  EXPECT_EQ(r, SubmitResult::kAgain);
  w.run_for(ms(20));
  w.run_until_quiet();
  EXPECT_TRUE(sent);
  EXPECT_EQ(w.host(3).ses.delivered.size(), 1u);
  EXPECT_TRUE(w.host(0).ses.failures.empty());
}

// Covers: PDS-29
TEST(Syn, only_noop_and_negotiation_open) {
  World w;
  for (auto t : {ControlType::kProbe, ControlType::kClearCommand, ControlType::kCloseCommand,
                 ControlType::kAckRequest}) {
    wire::PdsControlSyn h;
    h.ctl_type = t;
    h.psn = Psn(5);
    h.spdcid = 9;
    w.inject(1, w.host(0).address, h);
  }
  EXPECT_EQ(w.host(1).pds->gauges().pdcs_open, 0u);
  EXPECT_EQ(w.host(1).drops(DropReason::kSynNotAllowed), 4u);
}

// Covers: PDS-30, PDS-187, PDS-188
TEST(Syn, noop_opens_a_rod_pdc_and_negotiation_is_acknowledged) {
  World w;
  wire::PdsControlSyn h;
  h.ctl_type = ControlType::kNoop;
  h.isrod = true;
  h.ar = true;
  h.psn = Psn(5);
  h.spdcid = 9;
  w.inject(1, w.host(0).address, h);
  w.pump();
  ASSERT_EQ(w.acks(1).size(), 1u);
  EXPECT_EQ(w.acks(1)[0].cack, Psn(5));
  EXPECT_EQ(w.acks(1)[0].next_hdr, 0);
  wire::PdsControl n;
  n.ctl_type = ControlType::kNegotiation;
  n.isrod = true;
  n.psn = Psn(6);
  n.spdcid = 9;
  n.dpdcid = w.acks(1)[0].spdcid;
  n.payload = 0xffffffff;
  w.inject(1, w.host(0).address, n);
  w.pump();
  ASSERT_EQ(w.acks(1).size(), 2u);
  EXPECT_EQ(w.acks(1)[1].cack, Psn(6));
}

// Covers: PDS-31
TEST(Syn, contradicting_start_psn_is_refused_and_harmless) {
  Open x;
  wire::PdsRequestSyn h;
  h.next_hdr = NextHdr::kRequestStd;
  h.psn = Psn(5);
  h.spdcid = x.id0;
  x.w.inject(1, x.w.host(0).address, h, x.w.segment_bytes(1, 0, 1));
  x.w.run_for(ms(1));
  ASSERT_EQ(x.w.nacks(1).size(), 1u);
  EXPECT_EQ(x.w.nacks(1)[0].code, NackCode::kInvalidSyn);
  EXPECT_EQ(x.w.host(0).drops(DropReason::kNackNotOutstanding), 1u);
  x.w.send(0, 1);
  x.w.run_until_quiet();
  EXPECT_TRUE(x.w.host(0).ses.failures.empty());
}

// Covers: PDS-32
TEST(Syn, rod_opens_only_with_its_first_packet) {
  World w;
  w.drop_nth(0, 1, first_copy);
  w.send(0, 1, 3, 100, Mode::kRod);
  w.run_for(us(20));
  ASSERT_FALSE(w.nacks(1).empty());
  EXPECT_EQ(w.nacks(1)[0].code, NackCode::kRodOoo);
  EXPECT_EQ(w.nacks(1)[0].spdcid, 0);
  EXPECT_EQ(w.nacks(1)[0].payload, w.requests(0)[0].psn.value());
  w.run_until_quiet();
  EXPECT_EQ(w.host(1).ses.delivered.size(), 3u);
}

// Covers: PDS-33
TEST(Syn, refused_first_packet_leaves_no_pdc) {
  World w;
  w.host(1).ses.answer = [](auto&, auto&) { return ScriptedSes::refuse(); };
  w.send(0, 1);
  w.run_for(us(20));
  EXPECT_EQ(w.host(1).pds->gauges().pdcs_open, 0u);
  EXPECT_EQ(w.nacks(1)[0].spdcid, 0);
  w.host(1).ses.answer = nullptr;
  w.run_until_quiet();
  EXPECT_EQ(w.host(1).ses.delivered.size(), 1u);
}

// Covers: PDS-38
TEST(Syn, trimmed_syn_creates_nothing) {
  World w;
  w.add_rule([](const Seen& s, Fate& f) {
    if (first_copy(s)) f.trim = true;
  });
  w.send(0, 1);
  w.run_for(us(7));
  EXPECT_EQ(w.host(1).pds->gauges().pdcs_open, 0u);
  ASSERT_EQ(w.nacks(1).size(), 1u);
  EXPECT_EQ(w.nacks(1)[0].code, NackCode::kTrimmed);
  w.run_until_quiet();
  EXPECT_EQ(w.host(1).ses.delivered.size(), 1u);
  EXPECT_LT(w.requests(0).back().at - w.requests(0).front().at, us(50));
}

// A control packet of the target tells who it is and brings no credit. What is left of the message, one packet refused and the
// others given up, must not wait for credit that is never requested.
TEST(Establish, who_learns_its_target_from_a_control_packet_asks_for_credit) {
  World w(with([](auto& o) {
    o.cc.algorithm = cc::Algorithm::kRccc;
    o.pds.nack_retx_time = ms(40);
    o.pds.max_nack_retx_cnt = 31;
  }));
  w.add_rule([](const Seen& s, Fate& f) { f.drop = s.from == 0; });
  w.send(0, 1, 400);
  w.run_for(us(10));
  const Seen first = w.requests(0).at(0);
  wire::PdsNack refusal;
  refusal.nack_code = NackCode::kNoPdcAvail;
  refusal.nack_psn = first.psn;
  refusal.dpdcid = first.spdcid;
  w.inject(0, w.host(1).address, refusal);
  w.run_for(ms(10));
  EXPECT_TRUE(w.controls(0, ControlType::kCreditRequest).empty());
  wire::PdsControl noop;
  noop.ctl_type = ControlType::kNoop;
  noop.psn = first.psn;
  noop.spdcid = 77;
  noop.dpdcid = first.spdcid;
  w.inject(0, w.host(1).address, noop);
  const auto losses = w.host(0).count(EventId::kInferredLoss);
  w.run_for(us(100));
  ASSERT_EQ(w.host(0).count(EventId::kInferredLoss), losses) << "that would be a reason to ask";
  EXPECT_EQ(w.host(0).count(EventId::kPdcEstablished), 1u);
  EXPECT_FALSE(w.controls(0, ControlType::kCreditRequest).empty());
}

}  // namespace
}  // namespace uet::pds::test
