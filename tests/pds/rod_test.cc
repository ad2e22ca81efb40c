// Reliable ordered delivery. [PDS 17.1, 21.8]
#include "tests/pds/open_pdc.h"

namespace uet::pds::test {
namespace {

void expect_in_order(const ScriptedSes& ses, std::size_t first, std::uint32_t segments) {
  ASSERT_EQ(ses.delivered.size(), first + segments);
  for (std::uint32_t i = 0; i < segments; ++i) EXPECT_EQ(ses.delivered[first + i].segment, i);
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

void hold(WorldOptions& o) {
  o.pds.rod_reorder = true;
  o.pds.tail_loss_time = ms(1);
  o.pds.tail_loss_asks = true;
  o.pds.reorder_window = us(50);
  o.pds.rto_init_time = ms(20);
}

// A round trip for each gap in turn would make ordered traffic slower with the square of the loss.
TEST(Rod, reorder_buffer_names_every_gap_in_one_round) {
  World w(with(hold));
  w.send(0, 1, 1, 100, Mode::kRod);
  w.run_until_quiet();
  w.log.clear();
  w.add_rule([first = Psn(1001)](const Seen& s, Fate& f) {
    const auto n = s.psn.value() - first.value();
    f.drop = s.is_request() && !s.retx && n < 20 && (n == 2 || n == 7 || n == 11);
  });
  w.send(0, 1, 20, 100, Mode::kRod);
  w.run_for(us(60));
  EXPECT_EQ(w.host(0).count(EventId::kPacketRetransmitted), 3u);
  EXPECT_EQ(w.nacks(1).size(), 3u);
  expect_in_order(w.host(1).ses, 1, 20);
}

// Nothing more overtakes the lost copy, so the destination is silent until the source asks; then it names the gap again, and the
// rest of the window does not go a second time.
TEST(Rod, reorder_buffer_names_a_gap_again_when_its_copy_is_lost) {
  World w(with(hold));
  w.send(0, 1, 1, 100, Mode::kRod);
  w.run_until_quiet();
  int copies = 0;
  w.add_rule([&](const Seen& s, Fate& f) {
    if (s.is_request() && s.psn == Psn(1003)) f.drop = ++copies <= 2;
  });
  w.send(0, 1, 20, 100, Mode::kRod);
  w.run_for(ms(2));
  EXPECT_EQ(copies, 3);
  EXPECT_EQ(w.host(0).count(EventId::kPacketRetransmitted), 2u);
  expect_in_order(w.host(1).ses, 1, 20);
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

// Each copy of a window can draw several NACKs, each naming a later gap. If each sent the rest of the window again, what is
// under way would grow with every round trip, where no window of congestion control stops it.
TEST(Rod, gaps_named_within_a_round_trip_are_one_round) {
  Open x(with([](auto& o) { o.cc.algorithm = cc::Algorithm::kNone; }), Mode::kRod);
  silence(x.w, 0);
  x.w.send(0, 1, 20, 100, Mode::kRod);
  x.w.run_for(us(30));
  const auto name = [&](std::uint32_t gap) {
    auto nack = x.nack(NackCode::kRodOoo, x.next + 19);
    nack.payload = (x.next + gap).value();
    x.w.inject(0, x.w.host(1).address, nack);
    x.w.pump();
    return x.w.host(0).count(EventId::kPacketRetransmitted);
  };
  EXPECT_EQ(name(2), 18u);
  x.w.run_for(us(2));
  EXPECT_EQ(name(5), 18u);
  EXPECT_EQ(name(9), 18u);
  EXPECT_EQ(x.w.host(0).drops(DropReason::kStaleNack), 2u);
  x.w.run_for(us(20));
  EXPECT_EQ(name(9), 29u) << "the copy was lost too";
}

// Covers: PDS-146
TEST(Rod, lost_retransmission_of_the_gap_recovers) {
  World w(with([](auto&) {}));
  int copies = 0;
  w.add_rule([&](const Seen& s, Fate& f) {
    if (s.is_request() && s.psn == Psn(1003)) f.drop = ++copies <= 2;
  });
  w.send(0, 1, 20, 100, Mode::kRod);
  w.run_until_quiet();
  EXPECT_GE(copies, 3);
  expect_in_order(w.host(1).ses, 0, 20);
}

// Covers: PDS-147
TEST(Rod, duplicate_is_acknowledged_and_not_refused) {
  World w(with([](auto&) {}));
  w.send(0, 1, 3, 100, Mode::kRod);
  w.run_until_quiet();
  wire::PdsRequest h;
  h.type = PdsType::kRodReq;
  h.next_hdr = NextHdr::kRequestStd;
  h.psn = Psn(1001);
  h.clear_psn_offset = -2;
  h.retx = true;
  h.spdcid = w.requests(0)[0].spdcid;
  h.dpdcid = w.acks(1)[0].spdcid;
  w.log.clear();
  w.inject(1, w.host(0).address, h, w.segment_bytes(1, 1, 100));
  w.pump();
  ASSERT_EQ(w.acks(1).size(), 1u);
  EXPECT_EQ(w.acks(1)[0].cack, Psn(1002));
  EXPECT_TRUE(w.nacks(1).empty());
  EXPECT_EQ(w.host(1).ses.delivered.size(), 3u);
}

// Covers: PDS-148
TEST(Rod, guaranteed_response_in_the_middle_holds_only_cack) {
  World w(with([](auto& o) { o.pds.enb_ack_per_pkt = true; }));
  int n = 0;
  w.host(1).ses.answer = [&](auto&, auto&) { return ScriptedSes::respond(n++ == 2); };
  w.send(0, 1, 6, 100, Mode::kRod);
  w.run_for(us(50));
  expect_in_order(w.host(1).ses, 0, 6);
  EXPECT_EQ(w.acks(1).back().cack, Psn(1001));
  w.run_for(ms(5));
  EXPECT_EQ(w.host(1).pds->gauges().stored_responses, 0u);
  EXPECT_EQ(w.acks(1).back().cack, Psn(1005));
}

/// What came in behind an answer that takes its time is acknowledged when it is asked for, so it is sent twice and not for ever.
TEST(Rod, requested_acks_overtake_an_answer_that_is_missing) {
  World w(with([](auto& o) {
    o.pds.enb_ack_per_pkt = true;  // an ACK of each waits for the one before
    o.pds.max_rto_retx_cnt = 15;
  }));
  std::optional<RxHandle> open;
  w.host(1).ses.answer = [&](const RxRequest& r, auto&) {
    if (open) return ScriptedSes::respond(r.handle.psn == Psn(1005));
    open = r.handle;
    return ScriptedSes::later();
  };
  w.send(0, 1, 20, 100, Mode::kRod);
  w.run_for(ms(500));
  expect_in_order(w.host(1).ses, 0, 20);
  EXPECT_LE(w.host(0).count(EventId::kPacketRetransmitted), 20u);
  EXPECT_EQ(w.host(0).ses.responses.size(), 19u);
  w.host(1).pds->respond(w.now(), *open, ScriptedSes::respond().response, false);
  w.run_for(ms(5));
  EXPECT_EQ(w.host(0).ses.responses.size(), 20u);
  EXPECT_EQ(w.host(1).pds->gauges().stored_responses, 0u);
}

// Covers: PDS-150
TEST(Rod, wrap_with_a_loss_keeps_the_order) {
  World w(with([](auto& o) { o.pds.forced_start_psn = 0xfffffff0; }));
  for (const int nth : {9, 16, 17}) w.drop_nth(0, nth, first_copy);
  w.send(0, 1, 64, 100, Mode::kRod);
  w.run_until_quiet();
  expect_in_order(w.host(1).ses, 0, 64);
  EXPECT_EQ(w.acks(1).back().cack, Psn(0xfffffff0) + 63);
}

// Covers: PDS-151
TEST(Rod, resource_nack_goes_back_after_a_pause) {
  World w(with([](auto&) {}));
  int asked = 0;
  w.host(1).ses.answer = [&](auto&, auto&) {
    return ++asked == 4 ? ScriptedSes::refuse() : ScriptedSes::respond();
  };
  const Instant begin = w.now();
  w.send(0, 1, 10, 100, Mode::kRod);
  w.run_until_quiet();
  expect_in_order(w.host(1).ses, 0, 10);
  bool seen = false;
  for (const Seen& s : w.requests(0)) {
    if (!s.retx) continue;
    if (!seen) {
      EXPECT_EQ(s.psn, Psn(1003));
    }
    seen = true;
    EXPECT_GE(s.at - begin, ms(1));
  }
  EXPECT_TRUE(seen);
}

// Covers: PDS-152
TEST(Rod, one_path_while_busy) {
  World w(with([](auto& o) { o.cc.paths = 64; }));
  w.send(0, 1, 200, 1000, Mode::kRod);
  w.run_until_quiet();
  for (const Seen& s : w.requests(0)) EXPECT_EQ(s.entropy, w.requests(0)[0].entropy);
}

// Covers: PDS-153
TEST(Rod, successor_waits_until_the_old_pdc_is_drained) {
  World w(with([](auto&) {}));
  w.send(0, 1, 1, 100, Mode::kRod);
  w.run_until_quiet();
  w.log.clear();
  const auto before = w.host(1).ses.delivered.size();
  w.drop_nth(0, 2, first_copy);
  const auto old_one = w.send(0, 1, 5, 100, Mode::kRod);
  w.pump();
  w.host(0).pds->close_all(w.now());
  // The successor is refused until the old one is gone.
  const TxMessage m = w.message(1, 5, 100, Mode::kRod);
  const auto new_one = m.token;
  SubmitResult first{};
  w.send(0, m, &first);
  EXPECT_EQ(first, SubmitResult::kAgain);
  bool queued = false;
  w.host(0).ses.on_resume_hook = [&] {
    queued = queued || w.host(0).pds->submit(w.now(), m) == SubmitResult::kQueued;
  };
  w.run_for(ms(30));
  const auto r = w.requests(0);
  const std::uint16_t old_id = r.at(0).spdcid;
  Instant last_old, first_new = Instant::never();
  for (const Seen& s : r)
    if (s.spdcid != old_id) first_new = std::min(first_new, s.at);
  for (const Seen& s : w.acks(1))
    if (s.dpdcid == old_id && s.cack == Psn(1005)) last_old = std::max(last_old, s.at);
  ASSERT_FALSE(first_new.is_never());
  EXPECT_GT(first_new, last_old);
  EXPECT_GT(last_old, Instant());
  const auto tokens = w.host(1).ses.tokens_delivered();
  ASSERT_EQ(tokens.size(), before + 10);
  for (std::size_t i = 0; i < 10; ++i) EXPECT_EQ(tokens[before + i], i < 5 ? old_one : new_one);
}

}  // namespace
}  // namespace uet::pds::test
