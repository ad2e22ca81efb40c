// Acknowledgements: what they say, when they are sent, what the source makes of them. [PDS 10, 21.1, 21.5]
#include "tests/pds/open_pdc.h"

namespace uet::pds::test {
namespace {

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

// A target answers NO_RESPONSE and gives its verdict later, in an ACK for the same PSN: at the left edge of the window, where
// the record is gone, and above it, where the record waits. [SES 11.2 row 9]
TEST(Ack, a_further_response_to_an_answered_packet_goes_up) {
  Open x;
  x.w.add_rule([](const Seen& s, Fate& f) { f.drop = s.is_ack(); });
  x.w.send(0, 1, 3);
  x.w.run_for(us(20));
  ScriptedSes& ses = x.w.host(0).ses;
  const auto before = ses.responses.size();
  const auto answer = [&](Psn psn, Psn cack, std::uint8_t what) {
    const std::uint8_t body[12] = {what};
    auto a = x.ack(cack);
    a.ack_psn_offset = static_cast<std::int16_t>(psn.distance_from(cack));
    a.next_hdr = NextHdr::kResponse;
    x.w.inject(0, x.w.host(1).address, a, body);
  };
  answer(x.next, x.next - 1, 3);
  answer(x.next + 2, x.next - 1, 3);
  EXPECT_EQ(ses.responses.size(), before + 2);
  EXPECT_TRUE(ses.further.empty());
  answer(x.next, x.next - 1, 1);
  answer(x.next + 2, x.next - 1, 1);
  EXPECT_EQ(ses.responses.size(), before + 2);
  ASSERT_EQ(ses.further.size(), 2u);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(ses.further[i].next_hdr, static_cast<std::uint8_t>(NextHdr::kResponse));
    EXPECT_EQ(ses.further[i].bytes.at(0), 1);
    EXPECT_EQ(ses.further_pdcs[i], ses.sent_on.back());
  }
  // Nothing is said again, and nothing is said of what was never sent.
  x.w.inject(0, x.w.host(1).address, x.ack(x.next));
  answer(x.next + 3, x.next - 1, 1);
  answer(x.next - 3, x.next - 2, 1);
  EXPECT_EQ(ses.further.size(), 2u);
  EXPECT_EQ(x.w.host(0).drops(DropReason::kAckNeverSent), 2u);
  // The message is whole when its last packet is answered, as ever.
  x.w.inject(0, x.w.host(1).address, x.ack(x.next + 2));
  EXPECT_EQ(ses.responses.size(), before + 3);
}

// Covers: PDS-98, PDS-99
TEST(Duplicate, answered_only_when_asked) {
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

// Covers: PDS-1, PDS-2, PDS-10
TEST(Ack, offset_names_the_psn_over_the_wrap_and_backwards) {
  Open x(with([](auto& o) { o.pds.forced_start_psn = 0xfffffff3; }));
  silence(x.w, 1);
  const auto token = x.w.send(0, 1, 40, 8);
  x.w.pump();
  const std::uint8_t body[12] = {0x77};
  const auto answer = [&](std::uint32_t cack, std::uint16_t offset) {
    auto a = x.ack(Psn(cack));
    a.next_hdr = NextHdr::kResponse;
    a.ack_psn_offset = static_cast<std::int16_t>(offset);
    const auto before = x.w.host(0).ses.responses.size();
    x.w.inject(0, x.w.host(1).address, a, body);
    return std::vector<Response>(x.w.host(0).ses.responses.begin() + static_cast<int>(before),
                                 x.w.host(0).ses.responses.end());
  };
  auto got = answer(0xfffffff3, 0x0010);
  ASSERT_EQ(got.size(), 1u);
  EXPECT_EQ(got[0].segment, Psn(3).distance_from(x.next));
  EXPECT_EQ(got[0].bytes.at(0), 0x77);
  // CACK 8 covers 21 PSNs, of which PSN 3 has its answer and PSN 6 = 8 - 2 gets its own.
  got = answer(8, 0xfffe);
  ASSERT_EQ(got.size(), 20u);
  EXPECT_EQ(got[0].segment, Psn(6).distance_from(x.next));
  EXPECT_EQ(x.w.host(0).ses.responses_of(token), 21u);
}

// Covers: PDS-6
TEST(Ack, clear_offset_minus_one_is_the_psn_before) {
  Open x;
  x.w.host(1).ses.answer = [](auto&, auto&) { return ScriptedSes::respond(true); };
  x.arrive(x.request(x.next));
  auto h = x.request(x.next + 1);
  h.clear_psn_offset = -1;
  x.arrive(h);
  EXPECT_EQ(x.w.host(1).pds->gauges().stored_responses, 1u);
  EXPECT_EQ(x.w.acks(1).back().cack, x.next);
}

// Covers: PDS-86
TEST(Ack, cumulative_ack_gives_one_default_response_each) {
  Open x;
  x.w.drop_nth(1, 1, [](const Seen& s) { return s.is_ack(); });
  const auto a = x.w.send(0, 1);
  x.w.run_for(us(30));
  EXPECT_EQ(x.w.host(0).ses.responses_of(a), 0u);
  const auto b = x.w.send(0, 1);
  x.w.run_for(us(30));
  EXPECT_EQ(x.w.host(0).ses.responses_of(a), 1u);
  EXPECT_EQ(x.w.host(0).ses.responses_of(b), 1u);
  for (const Response& r : x.w.host(0).ses.responses)
    if (r.token == a) {
      EXPECT_EQ(r.next_hdr, 0);
    }
}

// Covers: PDS-111
TEST(Ack, plain_and_congestion_acks_mix) {
  Open x;
  silence(x.w, 1);
  const auto token = x.w.send(0, 1, 4);
  x.w.pump();
  x.w.inject(0, x.w.host(1).address, x.ack(x.next));
  EXPECT_EQ(x.w.host(0).ses.responses_of(token), 1u);
  wire::PdsAckCcNscc a;
  a.cack_psn = x.next + 1;
  a.sack_psn_offset = 1;
  a.mpr = 8;
  a.spdcid = x.id1;
  a.dpdcid = x.id0;
  x.w.inject(0, x.w.host(1).address, a);
  EXPECT_EQ(x.w.host(0).ses.responses_of(token), 2u);
  wire::PdsAckCcx ccx;
  ccx.cack_psn = x.next + 2;
  ccx.sack_psn_offset = 1;
  ccx.mpr = 8;
  ccx.spdcid = x.id1;
  ccx.dpdcid = x.id0;
  x.w.inject(0, x.w.host(1).address, ccx);
  EXPECT_EQ(x.w.host(0).ses.responses_of(token), 3u);
  x.w.inject(0, x.w.host(1).address, x.ack(x.next + 3));
  EXPECT_EQ(x.w.host(0).ses.responses_of(token), 4u);
}

// Covers: PDS-112
TEST(Ack, one_that_could_not_be_built_is_there_for_the_duplicate) {
  Open x;
  auto h = x.request(x.next);
  h.ar = true;
  x.w.inject(1, x.w.host(0).address, h, x.w.segment_bytes(77, 0, 100));
  auto held = hold_all(x.w.host(1).pool);
  x.w.pump();
  EXPECT_TRUE(x.w.acks(1).empty());
  held.clear();
  h.retx = true;
  x.arrive(h);
  ASSERT_FALSE(x.w.acks(1).empty());
  EXPECT_EQ(x.w.acks(1).back().cack, x.next);
  EXPECT_EQ(x.w.host(1).ses.delivered.size(), 2u);
}

// Covers: PDS-7
TEST(Serial, order_up_to_half_the_range) {
  const Psn a(0x1234'5678);
  EXPECT_TRUE(a.is_before(a + 0x7fff'ffff));
  EXPECT_TRUE((a + 0x7fff'ffff).is_after(a));
  EXPECT_TRUE(Psn(0xffff'ffff).is_before(Psn(0)));
  EXPECT_TRUE(Psn(0xffff'ff00).is_before(Psn(0x7fff'feff)));
  EXPECT_EQ(Psn(2).distance_from(Psn(0xffff'ffff)), 3);
}

// PDCs of a source share its window: the ACKs of one must not take back what those of the other asked for. [CC 4.8]
TEST(Ack, all_pdcs_of_a_source_tell_of_the_resource_that_one_of_them_fills) {
  Open x;
  ScriptedSes& ses = x.w.host(1).ses;
  ses.fills = {{7, 900}, {8, 10}};
  std::uint32_t resource = 7;
  ses.answer = [&](const RxRequest& request, const Delivery&) {
    Answer answer = ScriptedSes::respond();
    if (request.mode == Mode::kRud) answer.resource = resource;
    return answer;
  };
  x.w.send(0, 1);
  x.w.run_until_quiet();
  resource = 8;  // that one has room; the other has not
  x.w.send(0, 1);
  x.w.run_until_quiet();
  int slowed = 0, restored = 0;
  x.w.add_rule([&](const Seen& s, Fate& f) {
    if (s.from != 1 || s.type != PdsType::kAckCc) return;
    f.edit = [&](std::vector<std::uint8_t>& bytes) {
      const auto ack = wire::parse<wire::PdsAckCcNscc>(bytes);
      ASSERT_TRUE(ack);
      slowed += ack->rcv_cwnd_pend > 0 ? 1 : 0;
      restored += ack->restore_cwnd && ack->rcv_cwnd_pend == 0 ? 1 : 0;
    };
  });
  x.w.send(0, 1, 20, 1000, Mode::kRod);
  x.w.run_until_quiet();
  EXPECT_GT(slowed, 0);
  EXPECT_EQ(restored, 0);
  ses.fills[7] = 100;
  x.w.send(0, 1, 20, 1000, Mode::kRod);
  x.w.run_until_quiet();
  EXPECT_GT(restored, 0);
}

}  // namespace
}  // namespace uet::pds::test
