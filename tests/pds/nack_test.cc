// Refusals and trimmed packets. [PDS 13.2, 13.6, 14]
#include "tests/pds/open_pdc.h"

namespace uet::pds::test {
namespace {

// Covers: PDS-116
TEST(Nack, resource_shortage_pauses_and_is_limited) {
  Open x;
  x.w.host(1).ses.answer = [](auto&, auto&) { return ScriptedSes::refuse(); };
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

// Answers beyond a gap cannot be cleared: a place that a later packet takes may be the one that the refused packet waits for.
TEST(Nack, nothing_new_leaves_before_what_was_refused_for_want_of_a_place) {
  for (const NackCode code : {NackCode::kNoGtdDelAvail, NackCode::kNoPktBuffer}) {
    Open x;
    bool lose = true;
    x.w.add_rule([&](const Seen& s, Fate& f) { f.drop = lose && s.is_request(); });
    x.w.send(0, 1);
    x.w.run_for(us(10));
    x.w.inject(0, x.w.host(1).address, x.nack(code, x.next));
    lose = false;
    x.w.log.clear();
    x.w.send(0, 1);
    x.w.run_until_quiet();
    const auto r = x.w.requests(0);
    ASSERT_EQ(r.size(), 2u);
    const bool waits = code == NackCode::kNoGtdDelAvail;
    EXPECT_EQ(r[0].psn, waits ? x.next : x.next + 1);
    EXPECT_EQ(r[0].retx, waits);
    EXPECT_EQ(x.w.host(0).ses.responses.size(), 3u);
  }
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

// What is cut goes before data. Sources that send it again at once, each time and for ever, may fill a link with nothing else.
TEST(Nack, what_is_trimmed_many_times_in_a_row_waits_for_longer_each_time) {
  Open x(with([](auto& o) { o.pds.rto_max = ms(5); }));
  int n = 0;
  x.w.add_rule([&](const Seen& s, Fate& f) { f.trim = s.is_request() && ++n <= 40; });
  x.w.send(0, 1);
  x.w.run_until_quiet();
  const auto r = x.w.requests(0);
  ASSERT_EQ(r.size(), 41u);
  Duration longest{};
  for (std::size_t i = 1; i < r.size(); ++i) {
    const Duration gap = r[i].at - r[i - 1].at;
    EXPECT_EQ(r[i].psn, r[0].psn);
    EXPECT_LE(gap, i <= 16 ? us(11) : ms(6)) << i;
    EXPECT_GE(gap, longest) << i;
    longest = gap;
  }
  EXPECT_GE(longest, ms(5));
  EXPECT_TRUE(x.w.host(0).ses.failures.empty());
}

// The same on ROD: what follows waits too, and then goes again in order.
TEST(Nack, ordered_packets_behind_one_that_waits_for_its_trimming_wait_too) {
  World w;
  int n = 0;
  w.add_rule([&](const Seen& s, Fate& f) {
    f.trim = s.is_request() && s.psn == w.requests(0).front().psn + 1 && ++n <= 20;
  });
  w.send(0, 1, 6, 1000, Mode::kRod);
  w.run_until_quiet();
  EXPECT_EQ(n, 21);
  std::vector<std::uint32_t> segments;
  for (const Delivery& d : w.host(1).ses.delivered) segments.push_back(d.segment);
  EXPECT_EQ(segments, (std::vector<std::uint32_t>{0, 1, 2, 3, 4, 5}));
  EXPECT_TRUE(w.host(0).ses.failures.empty());
}

// What is cut waits in no queue, so its NACK may come long before half of a base RTT for full packets is over.
TEST(Nack, a_retransmission_that_is_trimmed_at_once_goes_again_at_once) {
  Open x(with([](auto& o) { o.cc.config_base_rtt = o.cc.base_rtt_floor = ms(20); }));
  int n = 0;
  x.w.add_rule([&](const Seen& s, Fate& f) { f.trim = s.is_request() && ++n <= 5; });
  x.w.send(0, 1);
  x.w.run_for(ms(1));
  EXPECT_EQ(x.w.requests(0).size(), 6u);
  EXPECT_EQ(x.w.host(0).drops(DropReason::kStaleNack), 0u);
}

// Covers: PDS-119
TEST(Nack, a_late_answer_to_a_retransmission_that_timed_out_is_stale) {
  Open x(with([](auto& o) { o.cc.config_base_rtt = o.cc.base_rtt_floor = ms(20); }));
  x.w.add_rule([](const Seen& s, Fate& f) { f.drop = s.is_request(); });
  x.w.send(0, 1);
  for (int i = 0; i < 10'000 && x.w.requests(0).size() < 3; ++i) x.w.run_for(us(10));
  wire::PdsNack nack = x.nack(NackCode::kTrimmed, x.next);
  nack.retx = true;
  x.w.inject(0, x.w.host(1).address, nack);
  EXPECT_EQ(x.w.host(0).drops(DropReason::kStaleNack), 1u);
  x.w.pump();
  EXPECT_EQ(x.w.requests(0).size(), 3u);
}

// Base RTT has a floor, which real round trips may be far below.
TEST(Nack, one_of_a_copy_counts_where_round_trips_are_below_the_floor_of_the_base_rtt) {
  World w(software_world([](auto& o) { o.cc.config_base_rtt = o.cc.base_rtt_floor = us(100); }));
  for (int i = 0; i < 2; ++i) {  // 10 us are measured
    w.send(0, 1);
    w.run_for(ms(2));
  }
  int copies = 0, refusals = 0;
  w.add_rule([&](const Seen& s, Fate& f) { f.drop = s.is_request() && ++copies <= 2; });
  w.host(1).ses.answer = [&](auto&, auto&) {
    return ++refusals <= 4 ? ScriptedSes::refuse() : ScriptedSes::respond();
  };
  const MessageToken m = w.send(0, 1);
  w.run_for(ms(500));
  EXPECT_EQ(w.host(0).drops(DropReason::kStaleNack), 0u);
  EXPECT_EQ(w.nacks(1).size(), 4u);
  EXPECT_EQ(w.host(0).ses.responses_of(m), 1u);
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

}  // namespace
}  // namespace uet::pds::test
