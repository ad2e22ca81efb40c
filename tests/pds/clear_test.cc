// Guaranteed responses and CLEAR. [PDS 11, 21.5]
#include "tests/pds/open_pdc.h"

namespace uet::pds::test {
namespace {

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

// Covers: PDS-93
TEST(Clear, one_that_alone_brings_missing_answers_leaves_at_once) {
  for (const Mode mode : {Mode::kRud, Mode::kRod}) {
    Open x(with([](auto&) {}), mode);
    const Psn first = x.next;
    x.w.host(1).ses.answer = [&](const RxRequest& r, auto&) {
      return ScriptedSes::respond(r.handle.psn == first || r.handle.psn == first + 3);
    };
    x.w.send(0, 1, 4, 10, mode);  // those between were left to CACK, and nothing follows
    x.w.run_for(us(500));
    EXPECT_EQ(x.w.host(0).ses.responses.size(), 1u + 4u) << static_cast<int>(mode);
    ASSERT_EQ(x.w.controls(0, ControlType::kClearCommand).size(), 1u) << static_cast<int>(mode);
    EXPECT_EQ(x.w.controls(0, ControlType::kClearCommand)[0].payload, first.value())
        << static_cast<int>(mode);
  }
}

/// Three packets are out, and ACKs are made by hand.
struct ThreeOut : Open {
  ThreeOut() {
    silence(w, 1);
    w.send(0, 1, 3);
    w.pump();
  }
  /// The answer to packet `n`, to be cleared; `arrived` says bit by bit which packets are there.
  void answer(std::uint32_t n, std::uint64_t arrived) {
    const std::uint8_t body[12] = {0xaa};
    wire::PdsAckCcNscc a;
    a.next_hdr = NextHdr::kResponse;
    a.req = wire::AckReq::kClear;
    a.cack_psn = next - 1;
    a.ack_psn_offset = static_cast<std::int16_t>(n + 1);
    a.spdcid = id1;
    a.dpdcid = id0;
    a.mpr = 8;
    a.sack_psn_offset = 1;
    a.sack_bitmap = arrived;
    w.inject(0, w.host(1).address, a, body);
    w.pump();
  }
  std::size_t clears() { return w.controls(0, ControlType::kClearCommand).size(); }
};

// Covers: PDS-93
TEST(Clear, one_that_brings_no_answer_waits) {
  ThreeOut nothing_to_clear;
  nothing_to_clear.answer(1, 0b111);
  EXPECT_EQ(nothing_to_clear.clears(), 0u);

  ThreeOut next_ack_may_answer;
  next_ack_may_answer.answer(0, 0b111);
  EXPECT_EQ(next_ack_may_answer.clears(), 0u);

  ThreeOut x;
  x.answer(0, 0b001);
  x.answer(2, 0b101);  // the one between is not there
  EXPECT_EQ(x.clears(), 0u);
  x.answer(2, 0b111);
  EXPECT_EQ(x.clears(), 1u);
  x.answer(2, 0b111);  // what another one would say is said
  EXPECT_EQ(x.clears(), 1u);
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

// The target grants less than Default_MPR, so packets are out beyond its window when its first ACK comes; whichever Clear Command is
// lost then, the source repeats it while the window excludes what it has to send again.
TEST(Clear, a_lost_one_is_repeated_while_what_is_to_be_sent_again_is_outside_of_the_window) {
  const auto run = [](int lost) {
    const WorldOptions o = software_world([](auto& c) { c.cc.config_base_rtt = us(100); });
    World w(o);
    PdsConfig narrow = o.pds;
    narrow.local_mp_range = 128;
    w.host(1).restart(narrow, o.cc);
    w.host(1).ses.answer = [](auto&, auto&) { return ScriptedSes::respond(true); };
    w.drop_nth(0, lost, [](const Seen& s) { return s.is_control(ControlType::kClearCommand); });
    for (int i = 0; i < 300; ++i) w.send(0, 1, 1, 64);
    w.run_for(ms(500));
    EXPECT_EQ(w.host(0).ses.responses.size(), 300u) << lost;
    EXPECT_TRUE(w.host(0).ses.failures.empty()) << lost;
    return static_cast<int>(w.controls(0, ControlType::kClearCommand).size());
  };
  const int clears = run(0);
  for (int lost = std::max(clears - 24, 1); lost <= clears; ++lost) run(lost);
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

// Covers: PDS-102, SES-44
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

// Covers: PDS-88
TEST(Clear, published_sequence_at_the_target) {
  Open x;
  const Psn first = x.next;  // 333 of the example
  x.w.host(1).ses.answer = [&](const RxRequest& r, auto&) {
    return ScriptedSes::respond(r.handle.psn.is_before(first + 4));
  };
  const auto arrive = [&](int n, int clear, bool ar = false) {
    auto h = x.request(first + static_cast<std::uint32_t>(n));
    h.clear_psn_offset = static_cast<std::int16_t>(clear - n);
    h.ar = ar;
    x.arrive(h);
  };
  constexpr std::array<std::uint32_t, 4> kOrder = {1, 0, 3, 2};
  for (const std::uint32_t n : kOrder) arrive(static_cast<int>(n), -1);
  const auto acks = x.w.acks(1);
  ASSERT_EQ(acks.size(), 4u);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(acks[i].ack_psn, first + kOrder[i]);
    EXPECT_EQ(acks[i].cack, first - 1);
    EXPECT_EQ(acks[i].req, wire::AckReq::kClear);
  }
  arrive(4, 1);
  EXPECT_EQ(x.w.host(1).pds->gauges().stored_responses, 2u);
  EXPECT_EQ(x.w.acks(1).size(), 4u);
  arrive(5, 3, true);
  EXPECT_EQ(x.w.host(1).pds->gauges().stored_responses, 0u);
  ASSERT_EQ(x.w.acks(1).size(), 5u);
  EXPECT_EQ(x.w.acks(1)[4].ack_psn, first + 5);
  EXPECT_EQ(x.w.acks(1)[4].cack, first + 5);
}

// Covers: PDS-88
TEST(Clear, published_sequence_at_the_source) {
  Open x;
  silence(x.w, 1);
  x.w.send(0, 1, 4);
  x.w.pump();
  const std::uint8_t body[12] = {0xaa};
  const auto answer = [&](int n) {
    auto a = x.ack(x.next - 1);
    a.next_hdr = NextHdr::kResponse;
    a.ack_psn_offset = static_cast<std::int16_t>(n + 1);
    a.req = wire::AckReq::kClear;
    x.w.inject(0, x.w.host(1).address, a, body);
  };
  for (const int n : {1, 0, 3}) answer(n);
  x.w.send(0, 1);
  x.w.pump();
  EXPECT_EQ(x.w.requests(0).back().psn, x.next + 4);
  EXPECT_EQ(x.w.requests(0).back().clear, x.next + 1);
  answer(2);
  x.w.send(0, 1);
  x.w.pump();
  EXPECT_EQ(x.w.requests(0).back().psn, x.next + 5);
  EXPECT_EQ(x.w.requests(0).back().clear, x.next + 3);
}

// Covers: PDS-90
TEST(Clear, one_old_clear_frees_everything_behind_it) {
  Open x;
  const Psn first = x.next;
  x.w.host(1).ses.answer = [&](const RxRequest& r, auto&) {
    return ScriptedSes::respond(r.handle.psn == first);
  };
  for (std::uint32_t i = 0; i <= 100; ++i) {
    auto h = x.request(first + i);
    h.clear_psn_offset = static_cast<std::int16_t>(-1 - static_cast<int>(i));
    x.arrive(h);
  }
  for (const Seen& s : x.w.acks(1)) EXPECT_EQ(s.cack, first - 1);
  auto h = x.request(first + 101);
  h.clear_psn_offset = -101;
  h.ar = true;
  x.arrive(h);
  EXPECT_EQ(x.w.acks(1).back().cack, first + 101);
  EXPECT_EQ(x.w.host(1).pds->gauges().stored_responses, 0u);
}

// Covers: PDS-94
TEST(Clear, lost_clear_command_is_repeated_when_asked_again) {
  Open x;
  x.w.host(1).ses.answer = [](auto&, auto&) { return ScriptedSes::respond(true); };
  x.w.drop_nth(0, 1, [](const Seen& s) { return s.is_control(ControlType::kClearCommand); });
  x.w.send(0, 1);
  x.w.run_for(ms(3));
  EXPECT_EQ(x.w.controls(0, ControlType::kClearCommand).size(), 1u);
  EXPECT_EQ(x.w.host(1).pds->gauges().stored_responses, 1u);
  wire::PdsControl h;
  h.ctl_type = ControlType::kClearRequest;
  h.psn = x.next;
  h.spdcid = x.id1;
  h.dpdcid = x.id0;
  h.payload = x.next.value();
  x.w.inject(0, x.w.host(1).address, h);
  x.w.run_for(ms(3));
  EXPECT_EQ(x.w.controls(0, ControlType::kClearCommand).size(), 2u);
  EXPECT_EQ(x.w.host(1).pds->gauges().stored_responses, 0u);
}

// Covers: PDS-97
TEST(Clear, stored_response_survives_requests_that_do_not_clear_it) {
  Open x;
  const Psn first = x.next;
  x.w.host(1).ses.answer = [&](const RxRequest& r, auto&) {
    return ScriptedSes::respond(r.handle.psn == first);
  };
  int lost = 0;
  x.w.add_rule([&](const Seen& s, Fate& f) {
    if (s.is_ack() && s.ack_psn == first) f.drop = ++lost <= 2;
  });
  const auto token = x.w.send(0, 1);
  for (int i = 0; i < 20; ++i) {
    x.w.send(0, 1, 2, 100);
    x.w.run_for(us(50));
    EXPECT_EQ(x.w.host(1).pds->gauges().stored_responses, 1u);
  }
  x.w.run_until_quiet();
  x.w.run_for(ms(5));
  EXPECT_EQ(lost, 3);
  ASSERT_EQ(x.w.host(0).ses.responses_of(token), 1u);
  for (const Response& r : x.w.host(0).ses.responses)
    if (r.token == token) {
      EXPECT_EQ(r.bytes.at(0), 0xaa);
    }
  EXPECT_EQ(x.w.host(1).pds->gauges().stored_responses, 0u);
}

// Covers: PDS-101
TEST(Clear, response_that_the_target_lost_fails_the_pdc) {
  Open x;
  silence(x.w, 1);
  const auto token = x.w.send(0, 1);
  x.w.pump();
  x.w.log.clear();
  x.w.inject(0, x.w.host(1).address, x.nack(NackCode::kGtdRespUnavail, x.next));
  x.w.run_for(ms(3));
  ASSERT_EQ(x.w.host(0).ses.failures.size(), 1u);
  EXPECT_EQ(x.w.host(0).ses.failures[0].token, token);
  EXPECT_EQ(x.w.host(0).ses.failures[0].error, PdsError::kResponseLost);
  EXPECT_TRUE(x.w.requests(0).empty());
  EXPECT_EQ(x.w.host(0).pds->gauges().pdcs_open, 0u);
}

}  // namespace
}  // namespace uet::pds::test
