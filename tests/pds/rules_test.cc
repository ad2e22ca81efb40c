// Single rules of packet delivery, one scenario each. [PDS 21]
#include "tests/pds/harness.h"

namespace uet::pds::test {
namespace {

WorldOptions with(std::function<void(WorldOptions&)> change) {
  WorldOptions o;
  o.pds.forced_start_psn = 1000;
  change(o);
  return o;
}
bool first_copy(const Seen& s) {
  return s.is_request() && !s.retx;
}

/// Opens a PDC from host 0 to host 1 with one finished message, and says which.
struct Open {
  explicit Open(const WorldOptions& o) : w(o) {
    w.send(0, 1, 1, 100, mode);
    w.run_until_quiet();
    id0 = w.requests(0).at(0).spdcid;
    id1 = w.acks(1).at(0).spdcid;
    next = w.requests(0).back().psn + 1;
    w.log.clear();
  }
  Open() : Open(with([](auto&) {})) {}
  wire::PdsRequest request(Psn psn) const {
    wire::PdsRequest h;
    h.next_hdr = NextHdr::kRequestStd;
    h.psn = psn;
    h.clear_psn_offset = static_cast<std::int16_t>(next.distance_from(psn) - 1);
    h.spdcid = id0;
    h.dpdcid = id1;
    return h;
  }
  wire::PdsAck ack(Psn cack) const {
    wire::PdsAck h;
    h.cack_psn = cack;
    h.spdcid = id1;
    h.dpdcid = id0;
    return h;
  }
  wire::PdsNack nack(NackCode code, Psn psn) const {
    wire::PdsNack h;
    h.nack_code = code;
    h.nack_psn = psn;
    h.spdcid = id1;
    h.dpdcid = id0;
    return h;
  }
  void arrive(const wire::PdsRequest& h) {
    w.inject(1, w.host(0).address, h, w.segment_bytes(77, h.psn.value(), 100));
    w.pump();
  }
  Mode mode = Mode::kRud;
  World w;
  std::uint16_t id0 = 0, id1 = 0;
  Psn next;
};

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

// Covers: PDS-17
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
  w.host(1).ses.answer = [](auto&, auto&) { return ScriptedSes::refuse(NackCode::kNoSesMsgAvail); };
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

// Covers: PDS-52
TEST(Rud, window_wraps_with_a_loss) {
  World w(with([](auto& o) { o.pds.forced_start_psn = 0xfffffff0; }));
  w.drop_nth(0, 9, first_copy);
  w.send(0, 1, 64);
  w.run_until_quiet();
  EXPECT_EQ(w.host(1).ses.delivered.size(), 64u);
  EXPECT_EQ(w.host(0).ses.responses.size(), 64u);
  EXPECT_EQ(w.acks(1).back().cack, Psn(0xfffffff0) + 63);
}

// Covers: PDS-54
TEST(Rud, one_loss_is_one_retransmission) {
  World w;
  w.drop_nth(0, 17, first_copy);
  w.send(0, 1, 40);
  w.run_until_quiet();
  EXPECT_EQ(w.host(0).count(EventId::kPacketRetransmitted), 1u);
  EXPECT_EQ(w.host(1).ses.delivered.size(), 40u);
}

// Covers: PDS-55
TEST(Rud, periodic_losses_of_data_and_acks) {
  World w;
  int data = 0, acks = 0;
  w.add_rule([&](const Seen& s, Fate& f) {
    if (first_copy(s)) f.drop = ++data % 7 == 0;
    if (s.is_ack()) f.drop = ++acks % 11 == 0;
  });
  for (int i = 0; i < 40; ++i) w.send(0, 1, 5);
  w.run_until_quiet();
  EXPECT_EQ(w.host(1).ses.delivered.size(), 200u);
  EXPECT_EQ(w.host(0).ses.responses.size(), 200u);
  EXPECT_EQ(w.host(0).pds->gauges().outstanding_packets, 0u);
  EXPECT_EQ(w.host(0).count(EventId::kPdcClosed), 0u);
}

// Covers: PDS-56, PDS-8
TEST(Rud, small_window_is_never_exceeded) {
  World w(with([](auto& o) {
    o.pds.local_mp_range = 128;
    o.pds.default_mpr = 1;
  }));
  Psn cack(999);
  w.add_rule([&](const Seen& s, Fate& f) {
    if (first_copy(s)) {
      EXPECT_LE(s.psn.distance_from(cack), 128);
    }
    if (s.is_ack()) {
      EXPECT_EQ(s.mpr, 1);
      cack = s.cack;
    }
    f.extra_delay = us(3);
  });
  w.send(0, 1, 1024, 1024);
  w.run_until_quiet();
  EXPECT_EQ(w.host(1).ses.delivered.size(), 1024u);
}

// Covers: PDS-61, PDS-62
TEST(Rud, window_boundary) {
  Open x;
  const Psn cack = x.next - 1;
  x.arrive(x.request(cack + 1025));
  ASSERT_EQ(x.w.nacks(1).size(), 1u);
  EXPECT_EQ(x.w.nacks(1)[0].code, NackCode::kPsnOorWindow);
  x.arrive(x.request(cack + 1024));
  EXPECT_EQ(x.w.host(1).ses.delivered.size(), 2u);
}

// Covers: PDS-63
TEST(Rud, ancient_psn_is_dropped_and_recent_one_answered) {
  Open x(with([](auto& o) {
    o.pds.forced_start_psn = 0x7fff0000;
    o.pds.local_mp_range = 128;
    o.pds.default_mpr = 1;
  }));
  x.w.send(0, 1, 40000, 8);
  x.w.run_until_quiet(Duration::from_seconds(200));
  x.w.log.clear();
  const Psn cack = x.next - 1 + 40000;
  auto old = x.request(cack - 32640);
  old.retx = true;
  x.arrive(old);
  EXPECT_TRUE(x.w.acks(1).empty());
  EXPECT_EQ(x.w.host(1).drops(DropReason::kPsnTooOld), 1u);
  auto recent = x.request(cack - 129);
  recent.retx = true;
  x.arrive(recent);
  ASSERT_EQ(x.w.acks(1).size(), 1u);
  EXPECT_EQ(x.w.acks(1)[0].ack_psn, cack - 129);
}

// Covers: PDS-66
TEST(Rud, messages_do_not_interleave) {
  World w;
  const auto a = w.send(0, 1, 5);
  const auto b = w.send(0, 1, 5);
  w.run_until_quiet();
  const auto t = w.host(1).ses.tokens_delivered();
  EXPECT_EQ(t, (std::vector<MessageToken>{a, a, a, a, a, b, b, b, b, b}));
}

// Covers: PDS-71, PDS-72
TEST(Rud, other_mode_class_or_context_is_another_pdc) {
  World w;
  w.send(0, 1);
  w.send(0, 1, 1, 10, Mode::kRod);
  TxMessage m = w.message(1, 1, 10, Mode::kRod);
  m.rod_context = 5;
  w.send(0, m);
  m = w.message(1);
  m.traffic_class = 1;
  w.send(0, m);
  w.run_until_quiet();
  EXPECT_EQ(w.host(0).pds->gauges().pdcs_open, 4u);
}

// Covers: PDS-75, PDS-76
TEST(Ack, coalescing_by_bytes) {
  Open x;
  for (int i = 0; i < 8; ++i)
    x.w.inject(1, x.w.host(0).address, x.request(x.next + i), std::vector<std::uint8_t>(4096)),
        x.w.pump();
  ASSERT_EQ(x.w.acks(1).size(), 2u);
  EXPECT_EQ(x.w.acks(1)[0].cack, x.next + 3);
  EXPECT_EQ(x.w.acks(1)[1].cack, x.next + 7);
  for (int i = 8; i < 24; ++i)
    x.w.inject(1, x.w.host(0).address, x.request(x.next + i), std::vector<std::uint8_t>(64)),
        x.w.pump();
  ASSERT_EQ(x.w.acks(1).size(), 3u);
  EXPECT_EQ(x.w.acks(1)[2].cack, x.next + 23);
}

// Covers: PDS-79
TEST(Ack, ce_mark_is_acknowledged_at_once_or_remembered) {
  for (const bool at_once : {true, false}) {
    Open x(with([&](auto& o) { o.pds.ack_on_ecn = at_once; }));
    x.w.inject(1, x.w.host(0).address, x.request(x.next), std::vector<std::uint8_t>(64), 3);
    x.w.pump();
    ASSERT_EQ(x.w.acks(1).size(), at_once ? 1u : 0u);
    auto h = x.request(x.next + 1);
    h.ar = true;
    x.arrive(h);
    EXPECT_TRUE(x.w.acks(1)[0].m);
  }
}

// Covers: PDS-80, PDS-81
TEST(Ack, retx_is_echoed_and_every_packet_can_be_acknowledged) {
  Open x;
  auto h = x.request(x.next);
  h.retx = true;
  x.arrive(h);
  ASSERT_EQ(x.w.acks(1).size(), 1u);
  EXPECT_TRUE(x.w.acks(1)[0].retx);
  World w(with([](auto& o) { o.pds.enb_ack_per_pkt = true; }));
  w.send(0, 1, 10);
  w.run_until_quiet();
  EXPECT_EQ(w.acks(1).size(), 10u);
}

// Covers: PDS-82, PDS-83
TEST(Ack, late_answers_hold_back_the_ack_and_cack) {
  Open x;
  std::vector<RxHandle> open;
  x.w.host(1).ses.answer = [&](const RxRequest& r, auto&) {
    open.push_back(r.handle);
    return ScriptedSes::later();
  };
  auto h = x.request(x.next);
  h.ar = true;
  x.arrive(h);
  h.psn = x.next + 1;
  x.arrive(h);
  EXPECT_TRUE(x.w.acks(1).empty());
  x.w.host(1).pds->respond(x.w.now(), open[1], ScriptedSes::respond().response, false);
  x.w.pump();
  ASSERT_EQ(x.w.acks(1).size(), 1u);
  EXPECT_EQ(x.w.acks(1)[0].ack_psn, x.next + 1);
  EXPECT_EQ(x.w.acks(1)[0].cack, x.next - 1);
  x.w.host(1).pds->respond(x.w.now(), open[0], ScriptedSes::respond().response, false);
  x.w.pump();
  ASSERT_EQ(x.w.acks(1).size(), 2u);
  EXPECT_EQ(x.w.acks(1)[1].cack, x.next + 1);
}

// Covers: PDS-85, PDS-84
TEST(Ack, explicit_response_beats_the_default_and_old_acks_do_nothing) {
  Open x;
  x.w.add_rule([](const Seen& s, Fate& f) { f.drop = s.is_ack(); });
  x.w.send(0, 1, 4);
  x.w.run_for(us(20));
  const std::uint8_t body[12] = {0x77};
  auto a = x.ack(x.next + 2);
  a.next_hdr = NextHdr::kResponse;
  const auto before = x.w.host(0).ses.responses.size();
  x.w.inject(0, x.w.host(1).address, a, body);
  ASSERT_EQ(x.w.host(0).ses.responses.size(), before + 3);
  EXPECT_EQ(x.w.host(0).ses.responses[before].segment, 2u);
  EXPECT_EQ(x.w.host(0).ses.responses[before].bytes.at(0), 0x77);
  x.w.inject(0, x.w.host(1).address, x.ack(x.next));
  EXPECT_EQ(x.w.host(0).ses.responses.size(), before + 3);
}

// Covers: PDS-87, PDS-93
TEST(Clear, guaranteed_response_waits_for_its_clear) {
  Open x;
  x.w.host(1).ses.answer = [](auto&, auto&) { return ScriptedSes::respond(true); };
  x.w.send(0, 1);
  x.w.run_for(us(500));
  ASSERT_EQ(x.w.acks(1).size(), 1u);
  EXPECT_EQ(x.w.acks(1)[0].req, wire::AckReq::kClear);
  EXPECT_EQ(x.w.acks(1)[0].cack, x.next - 1);
  EXPECT_EQ(x.w.host(1).pds->gauges().stored_responses, 1u);
  EXPECT_TRUE(x.w.controls(0, ControlType::kClearCommand).empty());
  x.w.run_for(ms(1));
  ASSERT_EQ(x.w.controls(0, ControlType::kClearCommand).size(), 1u);
  EXPECT_EQ(x.w.controls(0, ControlType::kClearCommand)[0].payload, x.next.value());
  EXPECT_EQ(x.w.host(1).pds->gauges().stored_responses, 0u);
  EXPECT_EQ(x.w.acks(1).back().cack, x.next);
}

// Covers: PDS-91, PDS-92
TEST(Clear, maximum_counts_and_impossible_ones_are_ignored) {
  Open x;
  x.w.host(1).ses.answer = [](auto&, auto&) { return ScriptedSes::respond(true); };
  for (int i = 0; i < 4; ++i) x.arrive(x.request(x.next + i));
  EXPECT_EQ(x.w.host(1).pds->gauges().stored_responses, 4u);
  auto h = x.request(x.next + 5);
  h.clear_psn_offset = -3;  // next + 2
  x.arrive(h);
  EXPECT_EQ(x.w.host(1).pds->gauges().stored_responses, 2u);
  h = x.request(x.next + 6);
  h.clear_psn_offset = -6;  // older
  x.arrive(h);
  EXPECT_EQ(x.w.host(1).pds->gauges().stored_responses, 3u);
  h = x.request(x.next + 7);
  h.clear_psn_offset = -1;  // beyond the gap at next + 4
  x.arrive(h);
  h = x.request(x.next + 8);
  h.clear_psn_offset = 5;
  x.arrive(h);
  EXPECT_EQ(x.w.host(1).pds->gauges().stored_responses, 5u);
  EXPECT_EQ(x.w.host(1).ses.delivered.size(), 9u);
}

// Covers: PDS-89, PDS-95
TEST(Clear, more_guaranteed_responses_than_a_window_never_hang) {
  World w(with([](auto& o) {
    o.pds.local_mp_range = 128;
    o.pds.default_mpr = 1;
  }));
  w.host(1).ses.answer = [](auto&, auto&) { return ScriptedSes::respond(true); };
  int clears = 0;
  w.add_rule([&](const Seen& s, Fate& f) {
    if (s.is_control(ControlType::kClearCommand)) f.drop = ++clears <= 2;
  });
  w.send(0, 1, 400, 10);
  w.run_until_quiet();
  EXPECT_EQ(w.host(0).ses.responses.size(), 400u);
  EXPECT_TRUE(w.host(0).ses.failures.empty());
}

// Covers: PDS-96
TEST(Clear, lost_guaranteed_ack_is_answered_from_the_store) {
  Open x;
  x.w.host(1).ses.answer = [](auto&, auto&) { return ScriptedSes::respond(true); };
  x.w.drop_nth(1, 1, [](const Seen& s) { return s.is_ack(); });
  x.w.send(0, 1);
  x.w.run_for(ms(1) + us(50));
  ASSERT_EQ(x.w.acks(1).size(), 2u);
  EXPECT_TRUE(x.w.acks(1)[1].retx);
  EXPECT_EQ(x.w.host(0).ses.responses.back().bytes.at(0), 0xaa);
  EXPECT_EQ(x.w.host(1).ses.delivered.size(), 2u);
}

// Covers: PDS-98, PDS-99
TEST(Duplicate, answered_only_when_somebody_asks) {
  Open x;
  auto h = x.request(x.next - 1);
  x.arrive(h);
  EXPECT_TRUE(x.w.acks(1).empty());
  EXPECT_EQ(x.w.host(1).drops(DropReason::kDuplicate), 1u);
  h.retx = true;
  x.arrive(h);
  ASSERT_EQ(x.w.acks(1).size(), 1u);
  EXPECT_EQ(x.w.acks(1)[0].next_hdr, 0);
  EXPECT_TRUE(x.w.acks(1)[0].retx);
}

// Covers: PDS-100
TEST(Duplicate, busy_ses_is_reported_and_not_asked_again) {
  Open x;
  RxHandle open;
  x.w.host(1).ses.answer = [&](const RxRequest& r, auto&) {
    open = r.handle;
    return ScriptedSes::later();
  };
  x.w.send(0, 1);
  x.w.run_for(ms(1) + us(50));
  ASSERT_EQ(x.w.nacks(1).size(), 1u);
  EXPECT_EQ(x.w.nacks(1)[0].code, NackCode::kRcvdSesProcg);
  EXPECT_EQ(x.w.requests(0).size(), 2u);
  x.w.run_for(us(500));
  EXPECT_EQ(x.w.requests(0).size(), 2u);
  x.w.host(1).pds->respond(x.w.now(), open, ScriptedSes::respond().response, false);
  x.w.run_until_quiet();
  EXPECT_EQ(x.w.host(0).ses.responses.size(), 2u);
}

// Covers: PDS-102
TEST(Store, full_store_refuses_and_recovers) {
  World w(with([](auto& o) { o.pds.gtd_store_max = 4; }));
  w.host(1).ses.answer = [](auto&, auto&) { return ScriptedSes::respond(true); };
  int n = 0;
  w.add_rule([&](const Seen& s, Fate& f) {
    if (first_copy(s) && n++ == 0) f.drop = true;
  });  // a gap holds the others
  w.send(0, 1, 20, 10);
  w.run_until_quiet();
  bool refused = false;
  for (const Seen& s : w.nacks(1)) refused = refused || s.code == NackCode::kNoGtdDelAvail;
  EXPECT_TRUE(refused);
  EXPECT_EQ(w.host(1).ses.delivered.size(), 20u);
}

// Covers: PDS-107, PDS-104, PDS-105, PDS-106
TEST(Sack, marks_and_never_releases) {
  Open x;
  x.w.add_rule([](const Seen& s, Fate& f) { f.drop = s.is_ack(); });
  x.w.send(0, 1, 3);
  x.w.run_for(us(20));
  wire::PdsAckCcNscc a;
  a.cack_psn = x.next;
  a.sack_psn_offset = -3;                                        // older than CACK, unaligned
  a.sack_bitmap = ~std::uint64_t{0} & ~(std::uint64_t{1} << 4);  // everything but next + 1
  a.mpr = 8;
  a.spdcid = x.id1;
  a.dpdcid = x.id0;
  x.w.inject(0, x.w.host(1).address, a);
  EXPECT_EQ(x.w.host(0).ses.responses.size(), 2u);
  EXPECT_EQ(x.w.host(0).pds->gauges().outstanding_packets, 2u);
  EXPECT_EQ(x.w.host(0).count(EventId::kPacketRetransmitted), 0u);
  x.w.run_for(ms(1));
  // next + 1 is sent again as data, next + 2 is only asked about.
  EXPECT_EQ(x.w.controls(0, ControlType::kAckRequest).size(), 1u);
  EXPECT_EQ(x.w.controls(0, ControlType::kAckRequest)[0].psn, x.next + 2);
}

// Covers: PDS-108, PDS-109, PDS-110
TEST(Ack, impossible_and_foreign_acks_change_nothing) {
  Open x;
  x.w.add_rule([](const Seen& s, Fate& f) { f.drop = s.is_ack(); });
  x.w.send(0, 1, 3);
  x.w.run_for(us(20));
  x.w.inject(0, x.w.host(1).address, x.ack(x.next + 3));
  EXPECT_EQ(x.w.host(0).drops(DropReason::kAckNeverSent), 1u);
  x.w.inject(0, net::FabricAddress::from_v4(0x01020304), x.ack(x.next + 2));
  auto foreign = x.ack(x.next + 2);
  ++foreign.spdcid;
  x.w.inject(0, x.w.host(1).address, foreign);
  EXPECT_EQ(x.w.host(0).drops(DropReason::kPeerMismatch), 2u);
  EXPECT_EQ(x.w.host(0).ses.responses.size(), 1u);
  auto probe = x.ack(x.next);
  probe.p = true;
  probe.ack_psn_offset = 2;  // an opaque value, not a PSN
  x.w.inject(0, x.w.host(1).address, probe);
  EXPECT_EQ(x.w.host(0).ses.responses.size(), 2u);
}

// Covers: PDS-113, PDS-37
TEST(Timeout, doubles_and_gives_up) {
  World w(with([](auto& o) { o.pds.peer_timeout = Duration{}; }));
  w.add_rule([](const Seen&, Fate& f) { f.drop = true; });
  const Instant begin = w.now();
  const auto t = w.send(0, 1);
  w.run_for(ms(62));
  EXPECT_TRUE(w.host(0).ses.failures.empty());
  std::vector<std::int64_t> at;
  for (const Seen& s : w.requests(0)) at.push_back((s.at - begin).ms());
  EXPECT_EQ(at, (std::vector<std::int64_t>{0, 1, 3, 7, 15, 31}));
  w.run_for(ms(2));
  ASSERT_EQ(w.host(0).ses.failures.size(), 1u);
  EXPECT_EQ(w.host(0).ses.failures[0].token, t);
  EXPECT_EQ(w.host(0).ses.failures[0].error, PdsError::kRtoExhausted);
  EXPECT_EQ(w.host(0).pds->gauges().pdcs_open, 0u);
}

// Covers: PDS-114
TEST(Timeout, no_limit_means_never_and_the_interval_is_capped) {
  World w(with([](auto& o) {
    o.pds.max_rto_retx_cnt = 15;
    o.pds.rto_max = Duration::from_seconds(8);
    o.pds.peer_timeout = Duration{};
  }));
  w.add_rule([](const Seen&, Fate& f) { f.drop = true; });
  w.send(0, 1);
  w.run_for(Duration::from_seconds(60));
  EXPECT_TRUE(w.host(0).ses.failures.empty());
  const auto r = w.requests(0);
  EXPECT_EQ(r.back().at - r[r.size() - 2].at, Duration::from_seconds(8));
}

// Covers: PDS-115
TEST(Timeout, one_error_per_message) {
  World w;
  w.add_rule([](const Seen&, Fate& f) { f.drop = true; });
  for (int i = 0; i < 20; ++i) w.send(0, 1);
  w.run_for(ms(100));
  EXPECT_EQ(w.host(0).ses.failures.size(), 20u);
  EXPECT_EQ(w.host(0).ses.gone.size(), 1u);
  EXPECT_EQ(w.host(0).pool.available(), w.host(0).pool.capacity());
}

TEST(Timeout, silent_peer_fails_after_its_timeout) {
  World w(with([](auto& o) {
    o.pds.max_rto_retx_cnt = 15;
    o.pds.peer_timeout = Duration::from_seconds(3);
  }));
  w.add_rule([](const Seen&, Fate& f) { f.drop = true; });
  w.send(0, 1);
  w.run_for(Duration::from_seconds(2));
  EXPECT_TRUE(w.host(0).ses.failures.empty());
  w.run_for(Duration::from_seconds(2));
  ASSERT_EQ(w.host(0).ses.failures.size(), 1u);
  EXPECT_EQ(w.host(0).ses.failures[0].error, PdsError::kPeerSilent);
}

// Covers: PDS-116
TEST(Nack, resource_shortage_pauses_and_is_limited) {
  Open x;
  x.w.host(1).ses.answer = [](auto&, auto&) { return ScriptedSes::refuse(NackCode::kNoPktBuffer); };
  x.w.send(0, 1);
  x.w.run_for(ms(20));
  const auto r = x.w.requests(0);
  ASSERT_EQ(r.size(), 6u);
  for (std::size_t i = 1; i < 6; ++i) {
    EXPECT_TRUE(r[i].retx);
    EXPECT_EQ(r[i].psn, r[0].psn);
    EXPECT_GE(r[i].at - r[i - 1].at, ms(1));
  }
  ASSERT_EQ(x.w.host(0).ses.failures.size(), 1u);
  EXPECT_EQ(x.w.host(0).ses.failures[0].error, PdsError::kNackExhausted);
}

// Covers: PDS-118
TEST(Nack, psn_that_is_not_outstanding_changes_nothing) {
  Open x;
  for (const Psn psn : {x.next - 1, x.next, x.next + 100, Psn(0)})
    x.w.inject(0, x.w.host(1).address, x.nack(NackCode::kInvDpdcid, psn));
  EXPECT_EQ(x.w.host(0).drops(DropReason::kNackNotOutstanding), 4u);
  EXPECT_EQ(x.w.host(0).pds->gauges().pdcs_open, 1u);
}

// Covers: PDS-119, PDS-126
TEST(Nack, two_for_one_transmission_are_one_retransmission) {
  Open x;
  x.w.add_rule([](const Seen& s, Fate& f) { f.drop = s.is_request(); });
  x.w.send(0, 1);
  x.w.run_for(us(10));
  for (int i = 0; i < 2; ++i) {
    x.w.inject(0, x.w.host(1).address, x.nack(static_cast<NackCode>(3), x.next));
    x.w.pump();
  }
  EXPECT_EQ(x.w.requests(0).size(), 2u);
}

// Covers: PDS-120
TEST(Nack, trimming_never_kills_a_pdc) {
  Open x;
  int n = 0;
  x.w.add_rule([&](const Seen& s, Fate& f) { f.trim = s.is_request() && ++n <= 20; });
  x.w.send(0, 1);
  x.w.run_until_quiet();
  EXPECT_EQ(x.w.requests(0).size(), 21u);
  EXPECT_TRUE(x.w.host(0).ses.failures.empty());
}

// Covers: PDS-127
TEST(Nack, every_code_is_survived) {
  for (unsigned code = 0; code < 256; ++code) {
    Open x;
    x.w.add_rule([](const Seen& s, Fate& f) { f.drop = s.is_request(); });
    x.w.send(0, 1, 2);
    x.w.run_for(us(10));
    x.w.inject(0, x.w.host(1).address, x.nack(static_cast<NackCode>(code), x.next));
    x.w.run_for(us(10));
    const bool fatal = code == 0x0e || code == 0x0f || code == 0x10 || code == 0x11 ||
                       code == 0x13 || code == 0x15 || code == 0x16 || code == 0x19 || code == 0xff;
    EXPECT_EQ(x.w.host(0).ses.failures.size(), fatal ? 1u : 0u) << code;
    x.w.clear_rules();
    if (!fatal) x.w.run_until_quiet();
    EXPECT_EQ(x.w.host(0).ses.responses.size(), fatal ? 1u : 3u) << code;
  }
}

// Covers: PDS-124, PDS-125, PDS-121
TEST(Trim, last_hop_code_and_no_side_effects) {
  Open x;
  auto h = x.request(x.next);
  h.clear_psn_offset = -30000;
  x.w.inject(1, x.w.host(0).address, h, {}, net::TosByte::of(28, 0).value);
  x.w.pump();
  ASSERT_EQ(x.w.nacks(1).size(), 1u);
  EXPECT_EQ(x.w.nacks(1)[0].code, NackCode::kTrimmedLasthop);
  auto dup = x.request(x.next - 1);
  dup.retx = true;
  x.w.inject(1, x.w.host(0).address, dup, {}, net::TosByte::of(26, 0).value);
  x.w.pump();
  EXPECT_EQ(x.w.nacks(1).size(), 1u);
  EXPECT_EQ(x.w.acks(1).size(), 1u);
}

// Covers: PDS-144, PDS-145
TEST(Rod, gap_is_one_nack_and_one_round) {
  World w;
  w.send(0, 1, 1, 100, Mode::kRod);
  w.run_until_quiet();
  w.log.clear();
  w.drop_nth(0, 1, first_copy);
  const auto a = w.send(0, 1, 1, 100, Mode::kRod);
  w.send(0, 1, 19, 100, Mode::kRod);
  w.run_until_quiet();
  EXPECT_EQ(w.nacks(1).size(), 1u);
  EXPECT_EQ(w.nacks(1)[0].code, NackCode::kRodOoo);
  EXPECT_EQ(w.host(0).count(EventId::kPacketRetransmitted), 20u);
  EXPECT_EQ(w.host(1).ses.delivered.at(1).token, a);
  EXPECT_EQ(w.host(1).ses.delivered.size(), 21u);
}

TEST(Rod, reorder_buffer_needs_one_retransmission) {
  World w(with([](auto& o) { o.pds.rod_reorder = true; }));
  w.send(0, 1, 1, 100, Mode::kRod);
  w.run_until_quiet();
  w.drop_nth(0, 1, first_copy);
  w.send(0, 1, 20, 100, Mode::kRod);
  w.run_until_quiet();
  EXPECT_EQ(w.host(0).count(EventId::kPacketRetransmitted), 1u);
  EXPECT_EQ(w.host(1).ses.delivered.size(), 21u);
  for (std::uint32_t i = 0; i < 20; ++i) EXPECT_EQ(w.host(1).ses.delivered[i + 1].segment, i);
}

// Covers: PDS-149
TEST(Rod, acks_leave_in_psn_order) {
  World w(with([](auto& o) { o.pds.enb_ack_per_pkt = true; }));
  std::vector<RxHandle> open;
  w.host(1).ses.answer = [&](const RxRequest& r, auto&) {
    open.push_back(r.handle);
    return ScriptedSes::later();
  };
  w.send(0, 1, 3, 100, Mode::kRod);
  w.run_for(us(20));
  ASSERT_EQ(open.size(), 3u);
  for (int i : {2, 1, 0})
    w.host(1).pds->respond(w.now(), open[static_cast<std::size_t>(i)],
                           ScriptedSes::respond().response, false);
  w.pump();
  const auto acks = w.acks(1);
  ASSERT_EQ(acks.size(), 3u);
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(acks[static_cast<std::size_t>(i)].ack_psn, open[static_cast<std::size_t>(i)].psn);
}

// Covers: PDS-155, PDS-12
TEST(Close, idle_pdc_says_goodbye) {
  World w(with([](auto& o) { o.pds.pdc_idle_time = ms(10); }));
  w.send(0, 1);
  w.run_for(ms(30));
  const auto close = w.controls(0, ControlType::kCloseCommand);
  ASSERT_EQ(close.size(), 1u);
  EXPECT_EQ(close[0].psn, Psn(1001));
  EXPECT_TRUE(close[0].ar);
  EXPECT_EQ(w.host(0).pds->gauges().pdcs_open, 0u);
  EXPECT_EQ(w.host(1).pds->gauges().pdcs_open, 0u);
  EXPECT_EQ(w.host(1).pds->gauges().tombstones, 1u);
  EXPECT_TRUE(w.host(0).ses.gone.empty() && w.host(1).ses.gone.empty());
}

// Covers: PDS-157, PDS-158
TEST(Close, lost_command_or_lost_ack_still_closes) {
  for (const bool lose_ack : {false, true}) {
    Open x;
    x.w.drop_nth(lose_ack ? 1 : 0, 1, [](const Seen& s) {
      return s.is_ack() || s.is_control(ControlType::kCloseCommand);
    });
    x.w.host(0).pds->close_all(x.w.now());
    x.w.run_for(ms(20));
    EXPECT_EQ(x.w.host(0).pds->gauges().pdcs_open, 0u);
    EXPECT_EQ(x.w.host(1).pds->gauges().pdcs_open, 0u);
    EXPECT_EQ(x.w.controls(0, ControlType::kCloseCommand).size(), 2u);
    if (lose_ack) {
      EXPECT_EQ(x.w.nacks(1).at(0).code, NackCode::kInvDpdcid);
    }
    EXPECT_TRUE(x.w.host(0).ses.failures.empty());
  }
}

// Covers: PDS-156, PDS-160
TEST(Close, waits_for_acks_and_new_messages_go_elsewhere) {
  Open x;
  x.w.drop_nth(0, 1, first_copy);
  x.w.send(0, 1, 2);
  x.w.pump();
  x.w.host(0).pds->close_all(x.w.now());
  x.w.send(0, 1);
  x.w.run_for(ms(30));
  EXPECT_EQ(x.w.host(1).ses.delivered.size(), 4u);
  EXPECT_EQ(x.w.host(0).count(EventId::kPdcOpened), 2u);
  EXPECT_EQ(x.w.controls(0, ControlType::kCloseCommand).size(), 1u);
}

// Covers: PDS-162
TEST(Close, target_gives_up_on_an_initiator_that_does_not_react) {
  Open x;
  x.w.add_rule([](const Seen& s, Fate& f) { f.drop = s.from == 1; });
  x.w.host(1).pds->close_all(x.w.now());
  x.w.run_for(ms(20));
  EXPECT_EQ(x.w.host(1).pds->gauges().pdcs_open, 0u);
  EXPECT_EQ(x.w.host(1).ses.gone.size(), 1u);
  EXPECT_EQ(x.w.nacks(1).back().code, NackCode::kClosingInErr);
}

// Covers: PDS-161
TEST(Close, target_asks_and_initiator_closes) {
  Open x;
  x.w.host(1).pds->close_all(x.w.now());
  x.w.run_for(ms(20));
  EXPECT_EQ(x.w.controls(1, ControlType::kCloseRequest).size(), 1u);
  EXPECT_EQ(x.w.controls(0, ControlType::kCloseCommand).size(), 1u);
  EXPECT_EQ(x.w.host(0).pds->gauges().pdcs_open + x.w.host(1).pds->gauges().pdcs_open, 0u);
}

// Covers: PDS-168
TEST(Close, a_lock_keeps_the_pdc) {
  World w(with([](auto& o) { o.pds.pdc_idle_time = ms(5); }));
  TxMessage m = w.message(1);
  m.lock = true;
  w.send(0, m);
  w.run_for(ms(50));
  EXPECT_EQ(w.host(0).pds->gauges().pdcs_open, 1u);
  w.host(0).pds->unlock(w.now(), w.host(0).ses.sent_on.at(0));
  w.host(0).pds->unlock(w.now(), w.host(0).ses.sent_on.at(0));
  w.run_for(ms(50));
  EXPECT_EQ(w.host(0).pds->gauges().pdcs_open, 0u);
}

// Covers: PDS-35
TEST(Close, stray_syn_copy_meets_a_tombstone) {
  World w(with([](auto& o) { o.pds.pdc_idle_time = ms(5); }));
  w.send(0, 1);
  w.run_for(ms(20));
  const Seen old = w.requests(0).at(0);
  wire::PdsRequestSyn h;
  h.next_hdr = NextHdr::kRequestStd;
  h.psn = old.psn;
  h.spdcid = old.spdcid;
  w.inject(1, w.host(0).address, h, w.segment_bytes(1, 0, 1000));
  EXPECT_EQ(w.host(1).drops(DropReason::kStaleSyn), 1u);
  EXPECT_EQ(w.host(1).ses.delivered.size(), 1u);
  h.psn = old.psn + 100'000;
  w.inject(1, w.host(0).address, h, w.segment_bytes(2, 0, 1000));
  EXPECT_EQ(w.host(1).ses.delivered.size(), 2u);
}

// Covers: PDS-36
TEST(Close, waits_after_a_retransmitted_syn) {
  World w;
  w.drop_nth(0, 1, first_copy);
  w.send(0, 1);
  w.run_until_quiet();
  w.host(0).pds->close_all(w.now());
  w.run_for(ms(20));
  const Instant last_syn = w.requests(0).back().at;
  ASSERT_EQ(w.controls(0, ControlType::kCloseCommand).size(), 1u);
  EXPECT_GE(w.controls(0, ControlType::kCloseCommand)[0].at - last_syn, ms(5));
}

// Covers: PDS-169
TEST(Close, restarted_target_costs_exactly_the_unfinished_messages) {
  Open x;
  auto bad = x.request(x.next);
  bad.dpdcid = static_cast<std::uint16_t>(x.id1 ^ 0x5555);
  x.w.inject(1, x.w.host(0).address, bad, x.w.segment_bytes(5, 0, 1));
  x.w.pump();
  EXPECT_EQ(x.w.nacks(1).at(0).code, NackCode::kInvDpdcid);
  x.w.add_rule([](const Seen& s, Fate& f) { f.drop = s.is_request(); });
  x.w.send(0, 1);
  x.w.send(0, 1);
  x.w.run_for(us(10));
  auto n = x.nack(NackCode::kInvDpdcid, x.next);
  n.spdcid = 0;
  x.w.inject(0, x.w.host(1).address, n);
  ASSERT_EQ(x.w.host(0).ses.failures.size(), 2u);
  EXPECT_TRUE(is_retryable(x.w.host(0).ses.failures[0].error));
  EXPECT_EQ(x.w.host(0).pds->gauges().pdcs_open, 0u);
}

// Covers: PDS-171
TEST(Abort, unacknowledged_message_takes_the_pdc_with_it) {
  Open x;
  x.w.add_rule([](const Seen& s, Fate& f) { f.drop = s.is_ack(); });
  const auto a = x.w.send(0, 1, 2);
  const auto b = x.w.send(0, 1, 2);
  x.w.run_for(us(20));
  x.w.host(0).pds->abort(x.w.now(), a);
  ASSERT_EQ(x.w.host(0).ses.failures.size(), 1u);
  EXPECT_EQ(x.w.host(0).ses.failures[0].token, b);
  EXPECT_EQ(x.w.host(0).ses.failures[0].error, PdsError::kAborted);
}

// Covers: PDS-67
TEST(Abort, truncated_message_ends_and_the_next_goes_through) {
  World w(with([](auto& o) {
    o.pds.local_mp_range = 128;
    o.pds.default_mpr = 1;
  }));
  w.send(0, 1);
  w.run_until_quiet();
  w.add_rule([](const Seen& s, Fate& f) {
    if (s.is_ack()) f.extra_delay = us(200);
  });
  const auto a = w.send(0, 1, 500, 10);
  w.pump();
  const std::uint32_t sent = w.host(0).pds->truncate(w.now(), a, 1);
  EXPECT_LT(sent, 500u);
  w.host(0).ses.messages[a].payload_bytes = sent * 10;
  const auto b = w.send(0, 1);
  w.run_until_quiet();
  EXPECT_EQ(w.host(0).ses.responses_of(a), sent + 1);
  EXPECT_EQ(w.host(0).ses.responses_of(b), 1u);
}

// Covers: PDS-136, PDS-138
TEST(Return, read_data_comes_back_on_the_same_pdc_and_survives_loss) {
  Open x;
  x.w.host(1).ses.answer = [&](const RxRequest& r, auto&) {
    TxMessage m = x.w.message(0, 3, 500);
    x.w.host(1).ses.messages[m.token] = m;
    EXPECT_TRUE(x.w.host(1).pds->submit_return(x.w.now(), r.handle, m));
    return ScriptedSes::respond();
  };
  x.w.drop_nth(1, 2, first_copy);
  x.w.send(0, 1);
  x.w.run_until_quiet();
  const auto back = x.w.requests(1);
  ASSERT_EQ(back.size(), 4u);
  EXPECT_EQ(back[0].dpdcid, x.id0);
  EXPECT_EQ(back[0].psn, Psn(1000));
  EXPECT_EQ(x.w.host(0).ses.delivered.size(), 3u);
  EXPECT_TRUE(x.w.host(0).ses.delivered[0].handle.return_direction);
}

// Covers: PDS-28
TEST(Return, return_request_teaches_the_target_id) {
  World w;
  w.add_rule([](const Seen& s, Fate& f) { f.drop = s.is_ack(); });
  w.host(1).ses.answer = [&](const RxRequest& r, auto&) {
    TxMessage m = w.message(0, 1, 500);
    w.host(1).ses.messages[m.token] = m;
    w.host(1).pds->submit_return(w.now(), r.handle, m);
    return ScriptedSes::respond();
  };
  w.send(0, 1);
  w.run_for(us(20));
  EXPECT_EQ(w.host(0).count(EventId::kPdcEstablished), 1u);
  EXPECT_EQ(w.host(0).ses.delivered.size(), 1u);
}

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
  wire::PdsControl h;
  h.ctl_type = ControlType::kProbe;
  h.probe_opaque = 0xbeef;
  h.spdcid = x.id0;
  h.dpdcid = x.id1;
  h.payload = x.next.value();
  x.w.inject(1, x.w.host(0).address, h);
  x.w.pump();
  ASSERT_EQ(x.w.acks(1).size(), 1u);
  EXPECT_TRUE(x.w.acks(1)[0].p);
  EXPECT_EQ(x.w.acks(1)[0].opaque, 0xbeef);
  EXPECT_EQ(x.w.acks(1)[0].sack_base, x.next);
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

// Covers: PDS-190, PDS-191, PDS-192
TEST(Hostile, wrong_ids_are_refused) {
  Open x;
  auto h = x.request(x.next);
  for (const std::uint16_t id : {std::uint16_t{0}, std::uint16_t{65535}}) {
    h.dpdcid = id;
    x.arrive(h);
    EXPECT_EQ(x.w.nacks(1).back().code, NackCode::kInvDpdcid);
  }
  h = x.request(x.next);
  x.w.inject(1, net::FabricAddress::from_v4(0x01010101), h, x.w.segment_bytes(1, 0, 1));
  x.w.pump();
  EXPECT_EQ(x.w.nacks(1).back().code, NackCode::kPdcHdrMismatch);
  h.type = PdsType::kRodReq;
  x.arrive(h);
  EXPECT_EQ(x.w.nacks(1).back().code, NackCode::kPdcModeMismatch);
  EXPECT_EQ(x.w.host(1).ses.delivered.size(), 1u);
}

// Covers: PDS-193
TEST(Hostile, truncated_headers_are_dropped) {
  Open x;
  for (unsigned type = 0; type < 32; ++type)
    for (std::size_t size = 0; size < 40; ++size) {
      std::vector<std::uint8_t> bytes(size, 0xff);
      if (size > 0) bytes[0] = static_cast<std::uint8_t>(type << 3);
      x.w.inject_bytes(1, x.w.host(0).address, bytes);
      x.w.pump();
    }
  x.w.send(0, 1);
  x.w.run_until_quiet();
  EXPECT_TRUE(x.w.host(0).ses.failures.empty());
}

// Covers: PDS-196
TEST(Hostile, mutated_packets_harm_nobody) {
  Open x;
  base::Rng rng(7);
  x.w.add_rule([&](const Seen& s, Fate& f) {
    (void)s;
    if (!rng.chance(0.3)) return;
    f.copies = 2;
    f.edit = [&](std::vector<std::uint8_t>& b) {
      for (int i = 0; i < 3; ++i)
        b[rng.below(static_cast<std::uint32_t>(std::min<std::size_t>(b.size(), 16)))] =
            static_cast<std::uint8_t>(rng.next_u32());
    };
  });
  for (int i = 0; i < 200; ++i) {
    SubmitResult r{};
    x.w.send(0, x.w.message(1, 1 + rng.below(8), 100), &r);
    x.w.run_for(us(300));
  }
  SUCCEED();
}

// Covers: PDS-177, PDS-178
TEST(Rudi, completes_under_loss_and_repeats_with_the_same_id) {
  World w;
  base::Rng rng(3);
  w.add_rule([&](const Seen&, Fate& f) { f.drop = rng.chance(0.1); });
  const auto t = w.send(0, 1, 200, 1000, Mode::kRudi);
  w.run_until_quiet();
  EXPECT_EQ(w.host(0).ses.responses_of(t), 200u);
  EXPECT_GE(w.host(1).ses.delivered.size(), 200u);
  std::map<std::uint32_t, int> copies;
  for (const Seen& s : w.sent(0, [](const Seen& p) { return p.type == PdsType::kRudiReq; }))
    EXPECT_EQ(s.retx, copies[s.psn.value()]++ > 0);
}

// Covers: PDS-179, PDS-181
TEST(Rudi, unknown_answers_are_dropped_and_trims_sent_again) {
  World w;
  int n = 0;
  w.add_rule([&](const Seen& s, Fate& f) { f.trim = s.type == PdsType::kRudiReq && n++ == 0; });
  const auto t = w.send(0, 1, 1, 1000, Mode::kRudi);
  w.run_for(us(50));
  EXPECT_EQ(w.host(0).ses.responses_of(t), 1u);
  ASSERT_EQ(w.nacks(1).size(), 1u);
  EXPECT_TRUE(w.nacks(1)[0].nt);
  wire::PdsRudi h;
  h.type = PdsType::kRudiResp;
  h.next_hdr = NextHdr::kResponse;
  h.pkt_id = 12345;
  w.inject(0, w.host(1).address, h);
  EXPECT_EQ(w.host(0).drops(DropReason::kUnknownPktId), 1u);
}

// Covers: PDS-180
TEST(Rudi, window_is_bounded) {
  World w;
  w.add_rule([](const Seen& s, Fate& f) {
    f.extra_delay = us(50);
    (void)s;
  });
  std::size_t most = 0;
  w.after_step = [&] { most = std::max(most, w.host(0).pds->gauges().rudi_outstanding); };
  const auto t = w.send(0, 1, 4096, 100, Mode::kRudi);
  w.run_until_quiet();
  EXPECT_EQ(w.host(0).ses.responses_of(t), 4096u);
  EXPECT_LE(most, 128u);
}

// Covers: PDS-182
TEST(Rudi, limit_fails_only_its_message) {
  World w;
  const auto bad = w.send(0, 1, 1, 10, Mode::kRudi);
  w.add_rule([](const Seen& s, Fate& f) { f.drop = s.type == PdsType::kRudiReq; });
  const auto good = w.send(0, 1);
  w.run_for(ms(100));
  ASSERT_EQ(w.host(0).ses.failures.size(), 1u);
  EXPECT_EQ(w.host(0).ses.failures[0].token, bad);
  EXPECT_EQ(w.host(0).ses.responses_of(good), 1u);
}

// Covers: PDS-183
TEST(Uud, one_packet_no_answer) {
  World w;
  const auto t = w.send(0, 1, 1, 100, Mode::kUud);
  const auto two = w.send(0, 1, 2, 100, Mode::kUud);
  w.run_until_quiet();
  w.run_for(ms(1));
  EXPECT_EQ(w.host(1).ses.delivered.size(), 1u);
  EXPECT_EQ(w.host(1).ses.delivered[0].token, t);
  ASSERT_EQ(w.host(0).ses.failures.size(), 1u);
  EXPECT_EQ(w.host(0).ses.failures[0].token, two);
  EXPECT_TRUE(w.sent(1, [](const Seen&) { return true; }).empty());
}

// Covers: PDS-184, PDS-176
TEST(Modes, all_at_once_both_ways) {
  World w;
  for (int h : {0, 1})
    for (Mode m : {Mode::kRud, Mode::kRod, Mode::kRudi, Mode::kUud}) w.send(h, 1 - h, 1, 100, m);
  w.run_until_quiet();
  w.run_for(ms(2));
  for (int h : {0, 1}) EXPECT_EQ(w.host(h).ses.delivered.size(), 4u);
}

// Covers: PDS-197
TEST(Answer, for_a_dead_or_answered_handle_is_ignored) {
  Open x;
  RxHandle h;
  x.w.host(1).ses.answer = [&](const RxRequest& r, auto&) {
    h = r.handle;
    return ScriptedSes::later();
  };
  x.w.send(0, 1);
  x.w.run_for(us(20));
  const auto response = ScriptedSes::respond().response;
  x.w.host(1).pds->respond(x.w.now(), h, response, false);
  x.w.host(1).pds->respond(x.w.now(), h, response, false);
  h.pdc.value ^= 0x10000;
  x.w.host(1).pds->respond(x.w.now(), h, response, false);
  EXPECT_EQ(x.w.host(1).drops(DropReason::kStaleAnswer), 2u);
}

TEST(Self, an_endpoint_talks_to_itself) {
  World w(with([](auto& o) { o.hosts = 1; }));
  w.send(0, 0, 5);
  w.run_until_quiet();
  EXPECT_EQ(w.host(0).ses.delivered.size(), 5u);
  EXPECT_EQ(w.host(0).ses.responses.size(), 5u);
  EXPECT_EQ(w.host(0).pds->gauges().pdcs_open, 2u);
}

TEST(Flood, syns_and_strays_of_many_sources_are_bounded) {
  World w(with([](auto& o) { o.pds.max_pdc = 16; }));
  for (std::uint32_t i = 0; i < 20000; ++i) {
    wire::PdsRequestSyn h;
    h.next_hdr = NextHdr::kRequestStd;
    h.psn = Psn(i);
    h.spdcid = static_cast<std::uint16_t>(i | 1);
    w.inject(1, net::FabricAddress::from_v4(0x0b000000 + i), h, w.segment_bytes(1, 0, 1));
  }
  EXPECT_EQ(w.host(1).pds->gauges().pdcs_open, 16u);
  w.pump();
  EXPECT_LE(w.nacks(1).size(), 256u);
}

}  // namespace
}  // namespace uet::pds::test
