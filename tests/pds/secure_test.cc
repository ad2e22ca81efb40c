// Secured opening with a guard that stands for the security layer. [PDS 6.5, 7.6, 21.3]
#include <map>
#include <set>

#include "tests/pds/open_pdc.h"

namespace uet::pds::test {
namespace {

enum class Method : std::uint8_t { kRandom, kExpected };

struct FakeGuard final : OpeningGuard {
  Method method = Method::kRandom;
  Psn next_challenge{0x4000'0000};
  std::map<std::uint64_t, Psn> expected;  // as target, by initiator
  std::map<std::uint64_t, Psn> told;      // as initiator, by target
  int limits_reached = 0;
  bool has_order = true;

  Psn expected_of(const net::FabricAddress& a) {
    return expected.try_emplace(a.hash(), 1).first->second;
  }
  Challenge on_opening(const Opening& o) override {
    if (method == Method::kRandom) return next_challenge = next_challenge + 0x0100'0000;
    if (o.start.is_at_or_after(expected_of(o.source))) return {};
    return expected_of(o.source);
  }
  bool is_confirmed(const Opening& o, Psn announced) override { return o.start == announced; }
  std::optional<Psn> on_target_closed(const net::FabricAddress& source, Psn start) override {
    if (method == Method::kRandom) return {};
    Psn& e = expected[source.hash()];
    return e = serial_max(e, start + 1);
  }
  void on_half_open_limit() override { ++limits_reached; }
  bool knows_order() const override { return has_order; }
  std::optional<Psn> expected_by(const net::FabricAddress& target) override {
    const auto at = told.find(target.hash());
    return at == told.end() ? std::nullopt : std::optional<Psn>(at->second);
  }
  void on_expected_psn(const net::FabricAddress& target, Psn psn) override {
    const auto [at, fresh] = told.try_emplace(target.hash(), psn);
    if (!fresh) at->second = serial_max(at->second, psn);
  }
};

/// Two hosts, the second of which secures its openings in one of the two ways.
struct Secured {
  explicit Secured(
      Method method, std::function<void(WorldOptions&)> change = [](auto&) {})
      : w(with(change)) {
    guard[1].method = method;
    for (int h : {0, 1}) w.host(h).pds->set_opening_guard(guard[h]);
  }
  std::array<FakeGuard, 2> guard;
  World w;
};

wire::PdsRequestSyn syn(Psn psn, std::uint16_t spdcid, std::uint16_t offset = 0) {
  wire::PdsRequestSyn h;
  h.next_hdr = NextHdr::kRequestStd;
  h.psn = psn;
  h.psn_offset = offset;
  h.clear_psn_offset = -1;
  h.spdcid = spdcid;
  return h;
}

// Covers: PDS-39
TEST(Secure, first_syn_is_challenged_and_its_message_delivered_once) {
  Secured x(Method::kRandom);
  const auto t = x.w.send(0, 1);
  x.w.run_for(us(6));
  EXPECT_TRUE(x.w.host(1).ses.delivered.empty());
  ASSERT_EQ(x.w.nacks(1).size(), 1u);
  EXPECT_EQ(x.w.nacks(1)[0].code, NackCode::kNewStartPsn);
  EXPECT_EQ(x.w.nacks(1)[0].payload, x.guard[1].next_challenge.value());
  EXPECT_EQ(x.w.nacks(1)[0].spdcid, 0);
  EXPECT_EQ(x.w.host(1).pds->gauges().pdcs_half_open, 1u);
  x.w.run_until_quiet();
  EXPECT_EQ(x.w.host(1).ses.delivered.size(), 1u);
  EXPECT_EQ(x.w.host(1).ses.delivered[0].handle.psn, x.guard[1].next_challenge);
  EXPECT_EQ(x.w.host(0).ses.responses_of(t), 1u);
  EXPECT_EQ(x.w.host(1).pds->gauges().pdcs_half_open, 0u);
  EXPECT_EQ(x.w.host(0).count(EventId::kTimeout), 0u);
}

// Covers: PDS-40, PDS-41, PDS-42
TEST(Secure, everything_that_is_out_moves_to_the_new_start_once) {
  Secured x(Method::kRandom);
  x.w.send(0, 1, 5);
  x.w.run_until_quiet();
  // Each of the five SYNs met the pending PDC: the same answer each time.
  const Psn start = x.guard[1].next_challenge;
  ASSERT_EQ(x.w.nacks(1).size(), 5u);
  for (const Seen& n : x.w.nacks(1)) EXPECT_EQ(n.payload, start.value());
  const auto r = x.w.requests(0);
  ASSERT_EQ(r.size(), 10u);
  for (std::uint32_t i = 0; i < 5; ++i) {
    EXPECT_EQ(r[i].psn, Psn(1000) + i);
    EXPECT_EQ(r[5 + i].psn, start + i);
    EXPECT_TRUE(r[5 + i].syn);
    EXPECT_EQ(r[5 + i].psn_offset, i);
    EXPECT_EQ(r[5 + i].clear, start - 1);
  }
  EXPECT_EQ(x.w.host(1).pds->gauges().pdcs_open, 1u);
  EXPECT_EQ(x.w.host(1).ses.delivered.size(), 5u);
  EXPECT_EQ(x.w.host(0).ses.responses.size(), 5u);
}

// Covers: PDS-42
TEST(Secure, syn_of_before_the_challenge_that_comes_last_ends_nothing) {
  Secured x(Method::kExpected, [](auto& o) { o.pds.forced_start_psn = 2000; });
  x.guard[1].expected[x.w.host(0).address.hash()] = Psn(2001);
  // Beside the confirmed PDC its PSN, 2004, is outstanding again: its refusal would seem meant.
  x.w.add_rule([n = 0](const Seen& s, Fate& f) mutable {
    if (s.is_request() && s.psn == Psn(2004)) {
      if (first_copy(s)) f.extra_delay = us(40);
      if (s.retx && n++ == 0) f.drop = true;
    }
  });
  x.w.send(0, 1, 5);
  x.w.run_until_quiet();
  EXPECT_EQ(x.w.host(1).ses.delivered.size(), 5u);
  EXPECT_TRUE(x.w.host(0).ses.failures.empty());
  EXPECT_EQ(x.w.host(1).pds->gauges().pdcs_open, 1u);
}

/// What a target says to the packet with `psn` of PDC `pdcid`.
wire::PdsNack new_start(Psn psn, std::uint16_t pdcid, Psn start) {
  wire::PdsNack n;
  n.nack_code = NackCode::kNewStartPsn;
  n.nack_psn = psn;
  n.payload = start.value();
  n.dpdcid = pdcid;
  return n;
}

// It has delivered what came from there: where the initiator failed, or was challenged anew, it would be delivered again.
TEST(Secure, target_that_opened_at_the_start_before_is_found_again) {
  Secured x(Method::kRandom);
  bool lose_acks = true;
  x.w.add_rule([&](const Seen& s, Fate& f) { f.drop = lose_acks && s.is_ack(); });
  x.w.send(0, 1, 5);
  x.w.run_for(us(30));
  ASSERT_EQ(x.w.host(1).ses.delivered.size(), 5u);
  const Seen last = x.w.requests(0).back();
  x.w.inject(0, x.w.host(1).address, new_start(last.psn, last.spdcid, Psn(77'000)));
  lose_acks = false;
  x.w.run_until_quiet();
  EXPECT_EQ(x.w.nacks(1).back().code, NackCode::kInvalidSyn);
  EXPECT_EQ(x.w.requests(0).back().psn, last.psn);
  EXPECT_EQ(x.w.host(1).ses.delivered.size(), 5u);
  EXPECT_EQ(x.w.host(0).ses.responses.size(), 5u);
  EXPECT_TRUE(x.w.host(0).ses.failures.empty());
  EXPECT_EQ(x.w.host(0).count(EventId::kTimeout), 0u);
}

/// One whose target has told it where to start, and waits for it there.
class SecureMoved : public testing::Test {
 protected:
  SecureMoved() {
    x.w.add_rule([&](const Seen& s, Fate& f) { f.drop = s.is_request() && s.retx; });
    x.w.send(0, 1, 5);
    x.w.run_for(us(30));
    last = x.w.requests(0).back();
    EXPECT_EQ(last.psn, x.guard[1].next_challenge + 4);
  }
  /// Tells the initiator that the target wants another start.
  void tell(Psn start, bool is_overtaken) {
    const wire::PdsNack nack = new_start(last.psn, last.spdcid, start);
    std::array<std::uint8_t, wire::PdsNack::kSize> bytes;
    wire::emit(nack, bytes.data());
    x.w.inject_bytes(0, x.w.host(1).address, bytes, 0, is_overtaken);
  }
  Secured x{Method::kRandom};
  Seen last;
};

// Some of its PSNs may be the same as before it moved.
TEST_F(SecureMoved, older_word_does_not_move_it_again) {
  tell(Psn(77'000), true);
  EXPECT_EQ(x.w.host(0).drops(DropReason::kStaleNack), 1u);
  x.w.clear_rules();
  x.w.run_until_quiet();
  EXPECT_EQ(x.w.requests(0).back().psn, last.psn);
  EXPECT_EQ(x.w.host(1).ses.delivered.size(), 5u);
}

TEST_F(SecureMoved, word_of_unknown_age_moves_it_again) {
  x.guard[0].has_order = false;
  tell(Psn(77'000), true);
  x.w.run_for(us(1));
  EXPECT_EQ(x.w.requests(0).back().psn, Psn(77'004));
}

// Answers to PSNs from there would pass for answers to its own.
TEST_F(SecureMoved, start_among_its_own_psns_or_just_before_them_is_an_old_one) {
  const Psn start = last.psn - 4;
  for (const std::int32_t back : {0, 1, 4}) tell(start - back, false);
  EXPECT_EQ(x.w.host(0).drops(DropReason::kStaleNack), 3u);
  tell(start - 5, false);
  x.w.run_for(us(1));
  EXPECT_EQ(x.w.requests(0).back().psn, start - 1);
}

// Covers: TSS-T45
TEST(Secure, pdcs_that_wait_are_as_many_as_the_guard_allows) {
  struct Counting final : OpeningGuard {
    int waiting = 0, most = 0;
    Challenge on_opening(const Opening&) override { return Psn(77); }
    bool is_confirmed(const Opening& o, Psn announced) override { return o.start == announced; }
    bool may_wait(const net::FabricAddress&) override {
      if (waiting == 3) return false;
      most = std::max(most, ++waiting);
      return true;
    }
    void on_wait_over(const net::FabricAddress&) override { --waiting; }
    std::optional<Psn> on_target_closed(const net::FabricAddress&, Psn) override { return {}; }
    void on_half_open_limit() override {}
    std::optional<Psn> expected_by(const net::FabricAddress&) override { return {}; }
    void on_expected_psn(const net::FabricAddress&, Psn) override {}
  } guard;
  World w;
  w.host(1).pds->set_opening_guard(guard);
  w.host(0).pds->set_opening_guard(guard);
  for (std::uint16_t id = 1; id <= 10; ++id)
    w.inject(1, w.host(0).address, syn(Psn(5), id), w.segment_bytes(1, 0, 10));
  EXPECT_EQ(w.host(1).pds->gauges().pdcs_half_open, 3u);
  EXPECT_EQ(w.host(1).drops(DropReason::kNoPdc), 7u);
  w.inject(1, w.host(0).address, syn(Psn(77), 2), w.segment_bytes(1, 0, 10));
  EXPECT_EQ(guard.waiting, 2);
  w.run_for(ms(20));  // New_PDC_Time
  EXPECT_EQ(guard.waiting, 0);
  EXPECT_EQ(guard.most, 3);
}

// Covers: PDS-40
TEST(Secure, retry_counters_begin_again) {
  Secured x(Method::kRandom, [](auto& o) { o.pds.peer_timeout = Duration{}; });
  bool lose = true;
  x.w.add_rule([&](const Seen& s, Fate& f) { f.drop = lose && s.from == 0; });
  x.w.send(0, 1);
  x.w.run_for(ms(20));  // four timeouts of at most five
  lose = false;
  x.w.run_for(ms(12));  // the fifth copy is challenged
  ASSERT_EQ(x.w.nacks(1).size(), 1u);
  lose = true;
  x.w.log.clear();
  x.w.run_for(ms(40));
  EXPECT_TRUE(x.w.host(0).ses.failures.empty());
}

// Covers: PDS-41
TEST(Secure, endless_new_starts_end_the_pdc) {
  Secured x(Method::kRandom, [](auto& o) { o.pds.max_nack_retx_cnt = 3; });
  silence(x.w, 1);
  x.w.send(0, 1);
  x.w.pump();
  for (std::uint32_t i = 1; i <= 4; ++i) {
    const Seen last = x.w.requests(0).back();
    wire::PdsNack n;
    n.nack_code = NackCode::kNewStartPsn;
    n.nack_psn = last.psn;
    n.payload = 7000 * i;
    n.dpdcid = last.spdcid;
    x.w.inject(0, x.w.host(1).address, n);
    x.w.inject(0, x.w.host(1).address, n);  // a copy: not outstanding any more
    x.w.pump();
  }
  ASSERT_EQ(x.w.host(0).ses.failures.size(), 1u);
  EXPECT_EQ(x.w.host(0).ses.failures[0].error, PdsError::kNackExhausted);
}

// Covers: PDS-43
TEST(Secure, challenge_that_is_not_taken_up_is_forgotten) {
  Secured x(Method::kRandom, [](auto& o) { o.pds.new_pdc_timeout_thresh = 3; });
  for (std::uint16_t i = 1; i <= 7; ++i)
    x.w.inject(1, net::FabricAddress::from_v4(0x0b000000u + i), syn(Psn(5), i),
               x.w.segment_bytes(1, 0, 10));
  x.w.run_for(ms(5) - us(10));
  EXPECT_EQ(x.w.host(1).pds->gauges().pdcs_half_open, 7u);
  x.w.run_for(us(20));
  EXPECT_EQ(x.w.host(1).pds->gauges().pdcs_open, 0u);
  EXPECT_EQ(x.w.host(1).pds->gauges().half_open_reaped, 7u);
  EXPECT_EQ(x.guard[1].limits_reached, 2);
  EXPECT_TRUE(x.w.host(1).ses.delivered.empty());
}

// Covers: PDS-44
TEST(Secure, recorded_syn_opens_nothing_after_the_close) {
  for (const Method method : {Method::kRandom, Method::kExpected}) {
    Secured x(method, [](auto& o) {
      o.pds.tombstone_time = Duration{};  // not the tombstone shall stop it
      o.pds.pdc_idle_time = ms(2);
    });
    x.w.send(0, 1);
    x.w.run_for(ms(20));
    ASSERT_EQ(x.w.host(1).pds->gauges().pdcs_open, 0u);
    ASSERT_EQ(x.w.host(1).ses.delivered.size(), 1u);
    for (const Seen& s : x.w.requests(0)) {
      x.w.inject(1, x.w.host(0).address, syn(s.psn, s.spdcid, s.psn_offset),
                 x.w.segment_bytes(1, 0, 1000));
      x.w.run_for(ms(20));
    }
    EXPECT_EQ(x.w.host(1).ses.delivered.size(), 1u);
    EXPECT_EQ(x.w.host(1).pds->gauges().pdcs_open, 0u);
  }
}

// Covers: PDS-45
TEST(Secure, expected_start_opens_without_a_round_trip) {
  Secured x(Method::kExpected);
  x.w.send(0, 1);
  x.w.run_for(us(6));
  EXPECT_EQ(x.w.host(1).ses.delivered.size(), 1u);
  EXPECT_TRUE(x.w.nacks(1).empty());
}

// Covers: PDS-46
TEST(Secure, start_below_the_expected_one_is_told_what_to_use) {
  for (const std::uint32_t expected : {2000u, 0u, 1001u}) {  // 0: across the wrap
    Secured x(Method::kExpected, [&](auto& o) { o.pds.forced_start_psn = expected - 1; });
    x.guard[1].expected[x.w.host(0).address.hash()] = Psn(expected);
    x.w.send(0, 1, 3);
    x.w.run_until_quiet();
    ASSERT_FALSE(x.w.nacks(1).empty());
    EXPECT_EQ(x.w.nacks(1)[0].code, NackCode::kNewStartPsn);
    EXPECT_EQ(x.w.nacks(1)[0].payload, expected);
    EXPECT_EQ(x.w.host(1).ses.delivered.size(), 3u);
    EXPECT_EQ(x.w.host(1).ses.delivered[0].handle.psn, Psn(expected));
  }
}

// Covers: PDS-47
TEST(Secure, close_tells_where_the_next_pdc_may_start) {
  Secured x(Method::kExpected, [](auto& o) { o.pds.pdc_idle_time = ms(2); });
  x.w.send(0, 1, 4);
  x.w.run_for(ms(20));
  ASSERT_EQ(x.w.host(0).pds->gauges().pdcs_open, 0u);
  ASSERT_TRUE(x.guard[0].expected_by(x.w.host(1).address).has_value());
  EXPECT_EQ(*x.guard[0].expected_by(x.w.host(1).address), Psn(1001));
  // An older value changes nothing.
  x.guard[0].on_expected_psn(x.w.host(1).address, Psn(900));
  x.w.log.clear();
  x.w.send(0, 1);
  x.w.run_for(us(6));
  ASSERT_EQ(x.w.requests(0).size(), 1u);
  EXPECT_EQ(x.w.requests(0)[0].psn, Psn(1001));
  EXPECT_EQ(x.w.host(1).ses.delivered.size(), 5u);
  EXPECT_TRUE(x.w.nacks(1).empty());
}

// Covers: PDS-48
TEST(Secure, new_start_on_an_established_pdc_is_ignored) {
  Secured x(Method::kExpected);
  x.w.send(0, 1);
  x.w.run_until_quiet();
  silence(x.w, 1);
  x.w.send(0, 1);
  x.w.run_for(us(10));
  const Seen last = x.w.requests(0).back();
  wire::PdsNack n;
  n.nack_code = NackCode::kNewStartPsn;
  n.nack_psn = last.psn;
  n.payload = 77;
  n.spdcid = last.dpdcid;
  n.dpdcid = last.spdcid;
  x.w.log.clear();
  x.w.inject(0, x.w.host(1).address, n);
  x.w.run_for(us(10));
  EXPECT_TRUE(x.w.requests(0).empty());
  EXPECT_EQ(x.w.host(0).drops(DropReason::kReservedNack), 1u);
  x.w.clear_rules();
  x.w.run_until_quiet();
  EXPECT_EQ(x.w.host(1).ses.delivered.size(), 2u);
}

TEST(Secure, pending_pdc_answers_to_no_identifier) {
  Secured x(Method::kRandom);
  x.w.inject(1, x.w.host(0).address, syn(Psn(5), 9), x.w.segment_bytes(1, 0, 10));
  wire::PdsRequest h;
  h.next_hdr = NextHdr::kRequestStd;
  h.psn = x.guard[1].next_challenge;
  h.spdcid = 9;
  for (std::uint32_t id = 1; id < 65536; ++id) {
    h.dpdcid = static_cast<std::uint16_t>(id);
    x.w.inject(1, x.w.host(0).address, h, x.w.segment_bytes(1, 0, 10));
  }
  EXPECT_TRUE(x.w.host(1).ses.delivered.empty());
  EXPECT_EQ(x.w.host(1).pds->gauges().pdcs_half_open, 1u);
}

TEST(Secure, ordered_pdc_is_confirmed_by_its_first_packet_only) {
  Secured x(Method::kRandom);
  x.w.drop_nth(0, 4, first_copy);
  x.w.add_rule([n = 0](const Seen& s, Fate& f) mutable {
    if (s.is_request() && s.retx && n++ == 0) f.drop = true;  // the renumbered first packet
  });
  x.w.send(0, 1, 6, 100, Mode::kRod);
  x.w.run_until_quiet();
  const auto& d = x.w.host(1).ses.delivered;
  ASSERT_EQ(d.size(), 6u);
  for (std::uint32_t i = 0; i < 6; ++i) EXPECT_EQ(d[i].segment, i);
}

// Covers: PDS-50, TSS-T46
TEST(Secure, pdc_is_replaced_before_its_psns_are_used_up) {
  for (const Mode mode : {Mode::kRud, Mode::kRod}) {
    Secured x(Method::kExpected, [](auto& o) {
      o.pds.psn_range = 1000;  // as if 2^31 were near
      o.pds.psn_range_reserve = 100;
      o.pds.forced_start_psn = 0xffff'ff00;
    });
    x.guard[1].expected[x.w.host(0).address.hash()] = Psn(0xffff'ff00);
    std::vector<TxMessage> waiting;
    const auto submit_waiting = [&] {
      while (!waiting.empty()) {
        if (x.w.host(0).pds->submit(x.w.now(), waiting.front()) == SubmitResult::kAgain) return;
        waiting.erase(waiting.begin());
      }
    };
    x.w.host(0).ses.on_resume_hook = submit_waiting;
    for (int i = 0; i < 60; ++i) {
      const TxMessage m = x.w.message(1, 50, 100, mode);
      x.w.host(0).ses.messages[m.token] = m;
      waiting.push_back(m);
      if (waiting.size() == 1) submit_waiting();
      x.w.run_for(us(200));
    }
    x.w.run_until_quiet();
    EXPECT_TRUE(waiting.empty());
    EXPECT_EQ(x.w.host(1).ses.delivered.size(), 3000u);
    EXPECT_TRUE(x.w.host(0).ses.failures.empty());
    std::map<std::uint16_t, std::pair<Psn, Psn>> used;  // first and last PSN of each PDC
    for (const Seen& s : x.w.requests(0)) {
      auto [at, fresh] = used.try_emplace(s.spdcid, s.psn, s.psn);
      at->second.second = serial_max(at->second.second, s.psn);
    }
    EXPECT_GE(used.size(), 4u);
    for (const auto& [id, range] : used) EXPECT_LE(range.second.distance_from(range.first), 900);
    EXPECT_EQ(x.w.controls(0, ControlType::kCloseCommand).size(), used.size() - 1);
  }
}

}  // namespace
}  // namespace uet::pds::test
