// Timeouts and other evidence of loss. [PDS 13, 21.6]
#include <map>
#include <set>

#include "tests/pds/open_pdc.h"

namespace uet::pds::test {
namespace {

// Covers: PDS-113
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
  Open x(with([](auto& o) {
    o.pds.max_rto_retx_cnt = 15;
    o.pds.rto_max = Duration::from_seconds(8);
    o.pds.peer_timeout = Duration{};
  }));
  World& w = x.w;
  w.add_rule([](const Seen&, Fate& f) { f.drop = true; });
  w.send(0, 1);
  w.run_for(Duration::from_seconds(600));
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

// Covers: PDS-117
TEST(Loss, lost_nack_is_covered_by_the_timeout) {
  Open x;
  int asked = 0;
  x.w.host(1).ses.answer = [&](auto&, auto&) {
    return asked++ == 0 ? ScriptedSes::refuse() : ScriptedSes::respond();
  };
  x.w.drop_nth(1, 1, [](const Seen& s) { return s.is_nack(); });
  x.w.send(0, 1);
  x.w.run_until_quiet();
  EXPECT_EQ(x.w.nacks(1).size(), 1u);
  EXPECT_EQ(x.w.host(0).count(EventId::kTimeout), 1u);
  EXPECT_EQ(x.w.host(0).ses.responses.size(), 2u);
}

// Covers: PDS-122
TEST(Loss, trimmed_ack_causes_no_nack) {
  Open x;
  int n = 0;
  x.w.add_rule([&](const Seen& s, Fate& f) { f.trim = s.is_ack() && n++ == 0; });
  x.w.send(0, 1);
  x.w.run_until_quiet();
  EXPECT_TRUE(x.w.nacks(0).empty());
  EXPECT_EQ(x.w.host(0).drops(DropReason::kTrimmed), 1u);
  EXPECT_EQ(x.w.requests(0).size(), 2u);
  EXPECT_EQ(x.w.host(1).ses.delivered.size(), 2u);
  EXPECT_EQ(x.w.host(0).ses.responses.size(), 2u);
}

// Covers: PDS-123
TEST(Loss, trimmed_datagram_is_dropped) {
  World w;
  w.add_rule([](const Seen&, Fate& f) { f.trim = true; });
  w.send(0, 1, 1, 1000, Mode::kUud);
  w.run_for(ms(5));
  EXPECT_TRUE(w.host(1).ses.delivered.empty());
  EXPECT_EQ(w.host(1).drops(DropReason::kTrimmed), 1u);
  EXPECT_EQ(w.log.size(), 1u);
}

// Covers: PDS-103, PDS-128
TEST(Loss, packet_known_from_a_sack_is_asked_about_and_resent_when_the_peer_lacks_it) {
  Open x;
  x.w.add_rule([](const Seen&, Fate& f) { f.drop = true; });
  x.w.send(0, 1, 2);
  x.w.pump();
  wire::PdsAckCcNscc a;
  a.cack_psn = x.next - 1;
  a.sack_psn_offset = 1;
  a.sack_bitmap = 2;  // next + 1
  a.mpr = 8;
  a.spdcid = x.id1;
  a.dpdcid = x.id0;
  x.w.inject(0, x.w.host(1).address, a);
  x.w.log.clear();
  x.w.run_for(ms(1) + us(100));
  ASSERT_EQ(x.w.requests(0).size(), 1u);
  EXPECT_EQ(x.w.requests(0)[0].psn, x.next);
  ASSERT_EQ(x.w.controls(0, ControlType::kAckRequest).size(), 1u);
  EXPECT_EQ(x.w.controls(0, ControlType::kAckRequest)[0].psn, x.next + 1);
  x.w.log.clear();
  x.w.inject(0, x.w.host(1).address, x.nack(NackCode::kPktNotRcvd, x.next + 1));
  x.w.pump();
  ASSERT_EQ(x.w.requests(0).size(), 1u);
  EXPECT_EQ(x.w.requests(0)[0].psn, x.next + 1);
  EXPECT_TRUE(x.w.requests(0)[0].retx);
  x.w.clear_rules();
  x.w.run_until_quiet();
  EXPECT_EQ(x.w.host(1).ses.delivered.size(), 3u);
}

TEST(Loss, all_that_have_arrived_and_lack_their_answers_are_asked_about_in_order) {
  Open x;
  x.w.host(1).ses.answer = [](auto&, auto&) { return ScriptedSes::later(); };
  x.w.send(0, 1, 20, 10);
  for (int i = 0; i < 1000 && x.w.controls(0, ControlType::kAckRequest).size() < 20; ++i)
    x.w.run_for(us(100));
  const auto asked = x.w.controls(0, ControlType::kAckRequest);
  ASSERT_GE(asked.size(), 20u);
  for (std::uint32_t i = 0; i < 20; ++i) EXPECT_EQ(asked[i].psn, x.next + i);
}

// Covers: PDS-131
TEST(Loss, three_later_arrivals_on_the_same_path_are_evidence_once) {
  for (const bool one_path : {true, false}) {
    Open x(with([&](auto& o) {
      o.pds.sack_loss_thresh = 3;
      o.pds.enb_ack_per_pkt = true;
      if (one_path) {
        o.cc.load_balancing = cc::LoadBalancing::kSingle;
      } else {
        o.cc.paths = 64;
      }
    }));
    x.w.drop_nth(0, 1, first_copy);
    x.w.send(0, 1, 8);
    x.w.run_for(us(900));
    EXPECT_EQ(x.w.host(0).count(EventId::kPacketRetransmitted), one_path ? 1u : 0u);
    EXPECT_EQ(x.w.host(0).count(EventId::kInferredLoss), one_path ? 1u : 0u);
    x.w.run_until_quiet();
    EXPECT_EQ(x.w.host(0).count(EventId::kTimeout), one_path ? 0u : 1u);
    EXPECT_EQ(x.w.host(1).ses.delivered.size(), 9u);
  }
}

// Covers: PDS-132
TEST(Loss, tail_is_repaired_before_the_timeout) {
  Open x(with([](auto& o) { o.pds.tail_loss_time = us(200); }));
  x.w.drop_nth(0, 4, first_copy);
  x.w.send(0, 1, 4);
  x.w.run_for(us(900));
  EXPECT_EQ(x.w.host(1).ses.delivered.size(), 5u);
  EXPECT_EQ(x.w.host(0).ses.responses.size(), 5u);
  EXPECT_EQ(x.w.host(0).count(EventId::kTimeout), 0u);
  ASSERT_EQ(x.w.requests(0).size(), 5u);
  EXPECT_EQ(x.w.requests(0)[4].psn, x.next + 3);
}

// Covers: PDS-201
TEST(Loss, another_path_after_a_timeout_and_the_path_of_a_packet_on_its_answer) {
  Open x(with([](auto& o) {
    o.pds.enb_ack_per_pkt = true;
    o.cc.paths = 64;
  }));
  x.w.drop_nth(0, 1, first_copy);
  x.w.send(0, 1, 8);
  x.w.run_until_quiet();
  const auto r = x.w.requests(0);
  ASSERT_EQ(r.size(), 9u);
  EXPECT_EQ(r[8].psn, r[0].psn);
  EXPECT_NE(r[8].entropy, r[0].entropy);
  for (const Seen& a : x.w.acks(1)) {
    bool found = false;
    for (const Seen& q : r) found = found || (q.psn == a.ack_psn && q.entropy == a.entropy);
    EXPECT_TRUE(found) << "PSN " << a.ack_psn.value();
  }
  for (const Seen& s : x.w.log) EXPECT_NE(s.entropy, 0);
}

// The reordering window: overtaken is not yet lost.
TEST(Loss, overtaken_packet_is_sent_again_after_the_reordering_window) {
  Open x(with([](auto& o) { o.pds.reorder_window = us(50); }));
  x.w.drop_nth(0, 1, first_copy);
  x.w.send(0, 1, 8);
  const Instant begin = x.w.now();
  x.w.run_until_quiet();
  const auto r = x.w.requests(0);
  ASSERT_EQ(r.size(), 9u);
  EXPECT_EQ(r[8].psn, x.next);
  EXPECT_GE(r[8].at - begin, us(50));
  EXPECT_LT(r[8].at - begin, us(200));
  EXPECT_EQ(x.w.host(0).count(EventId::kTimeout), 0u);
  EXPECT_EQ(x.w.host(0).count(EventId::kInferredLoss), 1u);
}

/// What is known about a window must not hang on the one packet of it that asks, when packets are being lost.
TEST(Loss, every_packet_asks_for_its_ack_for_a_while_after_a_loss) {
  Open x(with([](auto& o) {
    o.pds.reorder_window = us(50);
    o.cc.algorithm = cc::Algorithm::kNone;
  }));
  const auto asking = [&] {
    const auto r = x.w.requests(0);
    return std::count_if(r.begin(), r.end(), [](const Seen& s) { return s.ar && !s.retx; });
  };
  x.w.drop_nth(0, 1, first_copy);
  x.w.send(0, 1, 8);
  x.w.run_until_quiet();
  EXPECT_EQ(asking(), 1);  // the end of the message
  x.w.log.clear();
  x.w.send(0, 1, 8);
  x.w.run_for(ms(2));
  EXPECT_EQ(asking(), 8);
  x.w.log.clear();
  x.w.send(0, 1, 8);
  x.w.run_until_quiet();
  EXPECT_EQ(asking(), 1);
}

TEST(Loss, packet_that_is_only_late_is_not_sent_again) {
  Open x(with([](auto& o) { o.pds.reorder_window = us(50); }));
  x.w.add_rule([&](const Seen& s, Fate& f) {
    if (s.is_request() && s.psn == x.next) f.extra_delay = us(30);
  });
  x.w.send(0, 1, 8);
  x.w.run_until_quiet();
  EXPECT_EQ(x.w.requests(0).size(), 8u);
  EXPECT_EQ(x.w.host(0).count(EventId::kInferredLoss), 0u);
}

// Evidence on one path says nothing about another; all of it is found in one walk over a large window.
TEST(Loss, evidence_is_kept_by_path) {
  Open x(with([](auto& o) {
    o.pds.sack_loss_thresh = 3;
    o.cc.algorithm = cc::Algorithm::kNone;
    o.cc.load_balancing = cc::LoadBalancing::kOblivious;
    o.cc.paths = 16;
    o.pds.enb_ack_per_pkt = true;
  }));
  std::map<std::uint16_t, int> sent;  // by path
  std::set<std::uint32_t> lost;
  x.w.add_rule([&](const Seen& s, Fate& f) {
    if (!first_copy(s)) return;
    f.drop = ++sent[s.entropy] % 10 == 1;  // three more follow on each path, at least
    if (f.drop) lost.insert(s.psn.value());
  });
  x.w.send(0, 1, 800, 100);
  x.w.run_for(us(900));
  EXPECT_GT(lost.size(), 30u);
  EXPECT_EQ(x.w.host(0).count(EventId::kTimeout), 0u);
  std::set<std::uint32_t> again;
  for (const Seen& s : x.w.requests(0))
    if (s.retx) again.insert(s.psn.value());
  // The last packets of a path may have too little behind them.
  EXPECT_GE(again.size() + 16, lost.size());
  for (const std::uint32_t psn : again) EXPECT_TRUE(lost.contains(psn)) << "PSN " << psn;
}

// Covers: PDS-130
TEST(Loss, packets_that_may_not_leave_have_no_timeout) {
  Open x(with([](auto& o) { o.pds.peer_timeout = Duration{}; }));
  silence(x.w, 1);
  x.w.send(0, 1, 400, 4000);
  for (int i = 0; i < 100; ++i) {
    x.w.run_for(us(300));
    // Every timeout belongs to a transmission of its own.
    ASSERT_LE(x.w.host(0).count(EventId::kTimeout), x.w.requests(0).size());
  }
  EXPECT_GT(x.w.host(0).count(EventId::kTimeout), 0u);
  EXPECT_LT(x.w.requests(0).size(), 400u);  // the congestion window is closed
  EXPECT_TRUE(x.w.host(0).ses.failures.empty());
}

}  // namespace
}  // namespace uet::pds::test
