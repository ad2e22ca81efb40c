/// RCCC: credit at the source, the pacer at the destination, and both algorithms together.
#include <vector>

#include "cc/credit_pacer.h"
#include "cc/fabric_factor.h"
#include "cc/rccc_source.h"
#include "tests/cc/ccc_fixture.h"

namespace uet::cc {
namespace {

constexpr SourceKey kA{.source = 1, .ccc_id = 1}, kB{.source = 2, .ccc_id = 1},
    kC{.source = 2, .ccc_id = 2};

base::Rng pacer_rng(5);

CcConfig credit_config() {
  auto c = hand_config(Algorithm::kRccc);
  c.mtu_bytes = 4096;
  c.idle_grant = false;
  return derived(c);
}

// Covers: CC-I10
TEST(CreditPacer, shares_the_link_among_those_who_want_it) {
  const auto config = credit_config();
  CreditPacer pacer(config, 16, pacer_rng);
  EXPECT_TRUE(pacer.next_deadline().is_never());
  pacer.on_demand(at(0), kA, 160);
  pacer.on_demand(at(0), kB, 64);
  pacer.on_demand(at(0), kC, 400);
  struct Row {
    std::int64_t t;
    SourceKey key;
    ByteCount units;
  };
  const Row expected[] = {{0, kA, 64},    {1324, kB, 64},   {2648, kC, 64},  {3972, kA, 64},
                          {5296, kC, 64}, {6620, kA, 32},   {7282, kC, 64},  {8606, kC, 64},
                          {9930, kC, 64}, {11'254, kC, 64}, {12'578, kC, 16}};
  ByteCount total = 0;
  for (const auto& row : expected) {
    EXPECT_EQ(pacer.next_deadline(), at(row.t));
    EXPECT_FALSE(pacer.poll_grant(at(row.t - 1)).has_value());
    const auto grant = pacer.poll_grant(at(row.t));
    ASSERT_TRUE(grant.has_value());
    EXPECT_EQ(grant->key, row.key) << row.t;
    EXPECT_EQ(grant->bytes, row.units * 256) << row.t;
    total += row.units;
  }
  EXPECT_EQ(total, 624);
  EXPECT_TRUE(pacer.next_deadline().is_never());
  EXPECT_EQ(pacer.credit_units(kC), 400u);
}

// Sources that begin in the same instant owe the same part of a packet. If all paid in the same turn, the link would be idle then
// and overrun in between.
TEST(CreditPacer, sources_of_a_crowd_are_out_of_step) {
  const auto config = credit_config();
  constexpr std::uint64_t kSources = 64;
  CreditPacer pacer(config, kSources, pacer_rng);
  for (std::uint64_t s = 0; s < kSources; ++s)
    pacer.on_demand(at(0), {.source = s, .ccc_id = 1}, 10'000);
  std::vector<ByteCount> given(kSources), packets(kSources);
  ByteCount fewest = kSources * 5, most = 0;
  for (int turn = 0; turn < 40; ++turn) {
    ByteCount sent = 0;
    for (std::uint64_t i = 0; i < kSources; ++i) {
      const auto grant = pacer.poll_grant(pacer.next_deadline());
      ASSERT_TRUE(grant.has_value());
      auto& bytes = given[grant->key.source];
      EXPECT_GT(grant->bytes, config.grant_bytes - config.mtu_bytes);
      bytes += grant->bytes;
      // What a packet of 4,150 bytes makes of it: one more while anything is left.
      const auto may_send = (bytes + 4149) / 4150;
      sent += may_send - packets[grant->key.source];
      packets[grant->key.source] = may_send;
    }
    if (turn == 0) continue;
    fewest = std::min(fewest, sent);
    most = std::max(most, sent);
  }
  // 64 grants carry 252.7 packets. In step they would be 256 in most turns and 192 in one of 76.
  EXPECT_GE(fewest, 248);
  EXPECT_LE(most, 256);
  for (const auto bytes : given) EXPECT_GT(bytes, 39 * config.grant_bytes);
}

TEST(CreditPacer, idle_sources_get_a_little_in_advance) {
  auto config = hand_config(Algorithm::kRccc);
  config.mtu_bytes = 4096;
  config = derived(config);
  CreditPacer pacer(config, 16, pacer_rng);
  pacer.on_demand(at(0), kA, 64);
  ByteCount given = 0;
  int grants = 0;
  while (!pacer.next_deadline().is_never()) {
    given += pacer.poll_grant(pacer.next_deadline())->bytes;
    ASSERT_LT(++grants, 100);
  }
  const ByteCount in_advance = given - 64 * 256;
  EXPECT_LE(in_advance, config.idle_cap);
  EXPECT_GT(in_advance, config.idle_cap - config.grant_bytes);
}

// Where a grant is more than all that may be given in advance, it is one.
TEST(CreditPacer, idle_sources_of_a_short_link_get_one_grant) {
  auto config = hand_config(Algorithm::kRccc);
  config.idle_cap = 1000;
  config = derived(config);
  ASSERT_GT(config.grant_bytes, config.idle_cap);
  CreditPacer pacer(config, 16, pacer_rng);
  pacer.on_demand(at(0), kA, 1);
  EXPECT_EQ(pacer.poll_grant(pacer.next_deadline())->bytes, 256);
  EXPECT_EQ(pacer.poll_grant(pacer.next_deadline())->bytes, config.grant_bytes);
  EXPECT_TRUE(pacer.next_deadline().is_never());
}

TEST(CreditPacer, trimmed_packet_gets_a_turn_without_demand) {
  const auto config = credit_config();
  CreditPacer pacer(config, 16, pacer_rng);
  pacer.on_trimmed(at(100), kA);
  const auto grant = pacer.poll_grant(at(100));
  ASSERT_TRUE(grant.has_value());
  EXPECT_EQ(grant->bytes, 0);
  EXPECT_TRUE(pacer.next_deadline().is_never());
  pacer.on_trimmed(at(101), kA);
  EXPECT_EQ(pacer.next_deadline(), at(100 + 83));  // an empty turn costs the time of 1024 bytes
}

// A lost credit leaves the source with a target that the destination thinks is met.
TEST(CreditPacer, request_is_answered_although_nothing_new_is_wanted) {
  const auto config = credit_config();
  CreditPacer pacer(config, 16, pacer_rng);
  pacer.on_demand(at(0), kA, 64);
  ASSERT_TRUE(pacer.poll_grant(at(0)).has_value());  // lost
  EXPECT_FALSE(pacer.poll_grant(at(100'000)).has_value());
  pacer.on_request(at(100'000), kA, 64);
  const auto again = pacer.poll_grant(at(100'000));
  ASSERT_TRUE(again.has_value());
  EXPECT_EQ(again->credit_units, 64u);
}

TEST(CreditPacer, older_targets_are_ignored_and_targets_wrap) {
  const auto config = credit_config();
  CreditPacer pacer(config, 16, pacer_rng);
  std::uint32_t target = 0;
  Instant now;
  // Far beyond the wrap of the counter.
  for (std::uint64_t units = 0; units < (std::uint64_t{3} << 24); units += 800) {
    target = (target + 800) & 0xff'ffff;
    pacer.on_demand(now, kA, target);
    pacer.on_demand(now, kA, (target - 500) & 0xff'ffff);
    while (!pacer.next_deadline().is_never()) {
      now = pacer.next_deadline();
      ASSERT_TRUE(pacer.poll_grant(now).has_value());
    }
    ASSERT_EQ(pacer.credit_units(kA), target);
  }
}

TEST(CreditPacer, full_table_forgets_who_rests_and_refuses_when_all_wait) {
  const auto config = credit_config();
  CreditPacer pacer(config, 2, pacer_rng);
  EXPECT_TRUE(pacer.on_demand(at(0), kA, 64));
  EXPECT_TRUE(pacer.on_demand(at(0), kB, 64));
  EXPECT_FALSE(pacer.on_demand(at(0), kC, 64));
  EXPECT_EQ(pacer.refused(), 1u);
  ASSERT_EQ(pacer.poll_grant(at(0))->key, kA);
  EXPECT_TRUE(pacer.on_demand(at(10), kC, 64));  // A rests and makes room
  EXPECT_EQ(pacer.sources(), 2u);
  EXPECT_EQ(pacer.credit_units(kA), 0u);
  pacer.forget(kB);
  EXPECT_EQ(pacer.sources(), 1u);
  pacer.forget(kB);
  EXPECT_EQ(pacer.poll_grant(at(100'000))->key, kC);
}

TEST(CreditPacer, source_that_was_forgotten_is_met_where_it_counts) {
  const auto config = credit_config();
  CreditPacer pacer(config, 4, pacer_rng);
  RcccSource source(config, at(0));
  source.on_credit(at(0), 0x20'0000);  // a long life with a destination that has restarted since
  source.on_send(at(1), config.credit_cap);
  const auto target = source.credit_target({.new_bytes = 100'000}, 0);
  pacer.on_request(at(10), kA, target);
  const auto before = source.credit();
  const auto grant = pacer.poll_grant(at(10));
  ASSERT_TRUE(grant.has_value());
  source.on_credit(at(20), grant->credit_units);
  EXPECT_GT(source.credit(), before);
}

TEST(CreditPacer, greedy_target_is_bounded) {
  const auto config = credit_config();
  CreditPacer pacer(config, 4, pacer_rng);
  pacer.on_demand(at(0), kA, 64);
  pacer.on_demand(at(0), kA, 0x7f'0000);
  ByteCount given = 0;
  while (!pacer.next_deadline().is_never()) given += pacer.poll_grant(pacer.next_deadline())->bytes;
  EXPECT_LE(given, 17 * config.credit_cap);
}

// Covers: CC-I10
TEST(CreditPacer, late_polls_never_make_up_for_more_than_the_noise) {
  const auto config = credit_config();
  CreditPacer pacer(config, 64, pacer_rng);
  base::Rng rng(5);
  Instant now;
  std::vector<std::pair<Instant, ByteCount>> grants;
  std::uint32_t target[8] = {};
  for (int i = 0; i < 20'000; ++i) {
    now = now + Duration::from_ns(rng.below(4000));
    const auto who = rng.below(8);
    target[who] = (target[who] + rng.below(200)) & 0xff'ffff;
    pacer.on_demand(now, SourceKey{.source = who, .ccc_id = 0}, target[who]);
    while (const auto grant = pacer.poll_grant(now)) grants.emplace_back(now, grant->bytes);
  }
  for (std::size_t first = 0; first < grants.size(); first += 97) {
    ByteCount sum = 0;
    for (std::size_t i = first; i < std::min(first + 200, grants.size()); ++i) {
      sum += grants[i].second;
      const double time = static_cast<double>((grants[i].first - grants[first].first).ns());
      ASSERT_LE(static_cast<double>(sum),
                0.99 * 12.5 * time + static_cast<double>(config.grant_bytes) + 1);
    }
  }
}

TEST(RcccSource, credit_may_go_below_zero_by_less_than_a_packet) {
  const auto config = credit_config();
  RcccSource source(config, at(0));
  source.on_first_feedback();
  source.on_credit(at(0), 1);
  source.on_send(at(1), 156);  // 100 left
  ASSERT_EQ(source.credit(), 100);
  EXPECT_TRUE(source.may_send());
  source.on_send(at(2), 4096);
  EXPECT_EQ(source.credit(), -3996);
  EXPECT_FALSE(source.may_send());
  source.on_credit(at(3), 17);
  EXPECT_EQ(source.credit(), 100);
  EXPECT_TRUE(source.may_send());
}

TEST(RcccSource, counter_wraps_and_older_values_are_ignored) {
  const auto config = credit_config();
  RcccSource source(config, at(0));
  source.on_credit(at(0), 0x7f'0000);
  source.on_credit(at(0), 0xe0'0000);
  source.on_credit(at(0), 0xff'fff0);
  source.on_send(at(0), source.credit());
  source.on_credit(at(1), 0x10);
  EXPECT_EQ(source.credit(), 8192);
  source.on_credit(at(2), 0xff'fff8);
  EXPECT_EQ(source.credit(), 8192);
}

TEST(RcccSource, unused_speculative_credit_is_void_after_the_first_feedback) {
  const auto config = credit_config();
  RcccSource source(config, at(0));
  EXPECT_EQ(source.credit(), 150'000);
  for (int i = 0; i < 3; ++i) source.on_send(at(i), 4096);
  source.on_first_feedback();
  EXPECT_EQ(source.credit(), 0);
}

TEST(RcccSource, credit_is_capped) {
  const auto config = credit_config();
  RcccSource source(config, at(0));
  source.on_first_feedback();
  for (std::uint32_t c = 64; c <= 64 * 13; c += 64) source.on_credit(at(0), c);
  EXPECT_LE(source.credit(), 225'000);
  source.on_credit(at(0), 64 * 14);
  EXPECT_EQ(source.credit(), 225'000);
}

TEST(RcccSource, credit_target_is_bounded_by_the_window) {
  const auto config = credit_config();
  RcccSource source(config, at(0));
  source.on_first_feedback();
  const Demand both{.new_bytes = 10'000, .resend_bytes = 4096, .window = 8192};
  EXPECT_EQ(source.credit_target(both, 0), 48u);
  const Demand alone{.new_bytes = 10'000, .resend_bytes = 4096, .window = std::nullopt};
  EXPECT_EQ(source.credit_target(alone, 0), 56u);
}

// [CC 5.3] The destination adds to what is beyond the target, so a source that has enough must say so.
TEST(RcccSource, credit_that_is_held_is_not_asked_for_again) {
  const auto config = credit_config();
  RcccSource source(config, at(0));
  EXPECT_EQ(source.credit_target({}, 0), 0u) << "speculative credit was not counted";
  source.on_first_feedback();
  source.on_credit(at(0), 400);
  EXPECT_EQ(source.credit_target({.new_bytes = 25'600}, 0), 100u);
  EXPECT_EQ(source.credit_target({.new_bytes = 25'700}, 0), 101u);
  EXPECT_EQ(source.credit_target({.new_bytes = 25'600}, 4096), 116u);
  EXPECT_EQ(source.credit_target({.new_bytes = 200'000, .window = 4096}, 0), 32u);
}

// World 245403: the window lets one packet of a long queue leave per round trip. Each drew credit for a whole round trip, for ever.
TEST(RcccSource, slow_source_draws_about_as_much_credit_as_it_spends) {
  auto config = hand_config(Algorithm::kBoth);
  config.mtu_bytes = 4096;
  config = derived(config);
  ASSERT_TRUE(config.idle_grant);
  CreditPacer pacer(config, 4, pacer_rng);
  RcccSource source(config, at(0));
  source.on_first_feedback();
  ByteCount given = 0;
  Instant now = at(0);
  constexpr int kPackets = 1000;
  for (int i = 0; i < kPackets; ++i) {
    const Demand demand{.new_bytes = 1'000'000, .window = 1000};
    if (source.may_send()) source.on_send(now, 1000);
    pacer.on_demand(now, kA, source.credit_target(demand, 0));
    now = now + config.config_base_rtt * 4;
    while (const auto grant = pacer.poll_grant(std::min(pacer.next_deadline(), now))) {
      given += grant->bytes;
      source.on_credit(now, grant->credit_units);
    }
    ASSERT_TRUE(source.may_send());
  }
  // Of a grant, the source may have no room for as much as it wants.
  EXPECT_LE(given, kPackets * 1500 + config.idle_cap + config.grant_bytes);
}

TEST(RcccSource, reset_meets_a_destination_that_still_counts) {
  const auto config = credit_config();
  RcccSource source(config, at(0));
  source.on_credit(at(0), 500);
  source.reset(at(1));
  source.on_first_feedback();
  // More than half the range ahead: looks older than zero.
  source.on_credit(at(2), 0xc0'0000);
  EXPECT_TRUE(source.may_send());
  EXPECT_EQ(source.credit_target({.new_bytes = 4096 + 25'600}, 4096),
            0xc0'0000u + (4096 + 25'600) / 256);
}

// [CC 5.3] Several contexts that could send share the link of their endpoint.
TEST(ContendingContexts, demand_is_shared_out_among_contexts_that_could_send) {
  const auto config = credit_config();
  base::Trace trace(64);
  ContendingContexts contending;
  std::vector<std::unique_ptr<Ccc>> cccs;
  const auto target = [&](Ccc& ccc) { return *ccc.next_send(at(0), nullptr, 4096).credit_target; };
  for (std::uint8_t i = 0; i < 4; ++i) {
    cccs.push_back(
        std::make_unique<Ccc>(config, i, true, Duration(), pacer_rng, trace, at(0), &contending));
    cccs.back()->on_new_data(at(0), 10'000'000);
    EXPECT_EQ(contending.ready, i + 1u);
  }
  const auto shared = target(*cccs[0]);
  cccs.resize(1);
  EXPECT_EQ(contending.ready, 1u) << "those that are gone do not count";
  const auto alone = target(*cccs[0]);
  EXPECT_NEAR(shared * 4.0, alone, 4);
  // Nothing to send: not contending.
  cccs[0]->on_new_data(at(0), -10'000'000);
  EXPECT_EQ(contending.ready, 0u);
}

class RcccCccTest : public CccTest {
 protected:
  void SetUp() override { make(hand_config(Algorithm::kRccc)); }
  std::uint32_t credit_ = 0;
};

TEST_F(RcccCccTest, blocked_source_asks_for_credit_and_goes_on_when_it_comes) {
  Transmission t;
  ccc_->on_new_data(now_, 100 * kPacket);
  ccc_->on_send(now_, t, share_, kPacket, ccc_->next_send(now_, nullptr, kPacket), false);
  wait(12'500);
  ack(t, share_, 17);
  EXPECT_EQ(ccc_->state(), CccState::kActive);
  const auto due = ccc_->next_deadline();
  ASSERT_FALSE(due.is_never());
  EXPECT_FALSE(ccc_->poll_credit_request(now_).has_value());
  now_ = due;
  const auto target = ccc_->poll_credit_request(now_);
  ASSERT_TRUE(target.has_value());
  EXPECT_GT(*target, 0u);
  EXPECT_FALSE(ccc_->poll_credit_request(now_).has_value());
  EXPECT_GE(ccc_->next_deadline(), now_ + ccc_->base_rtt());
  ccc_->on_credit(now_, 64);
  EXPECT_EQ(ccc_->state(), CccState::kReady);
  EXPECT_TRUE(ccc_->next_deadline().is_never());
}

TEST_F(RcccCccTest, new_data_after_a_rest_without_credit_asks_at_once) {
  Transmission t;
  send(t, share_);
  wait(12'500);
  ack(t, share_, 17);
  EXPECT_TRUE(ccc_->next_deadline().is_never());
  wait(1'000'000);
  ccc_->on_new_data(now_, kPacket);
  EXPECT_TRUE(ccc_->poll_credit_request(now_).has_value());
}

// A source that shares its destination with many waits for its turn; requests in every turn would take the place of data.
TEST_F(RcccCccTest, longer_turns_make_the_source_more_patient) {
  const auto timeout = config_.credit_request_timeout;
  Transmission t;
  ccc_->on_new_data(now_, 1000 * kPacket);
  ccc_->on_send(now_, t, share_, kPacket, ccc_->next_send(now_, nullptr, kPacket), false);
  ack(t, share_, 17);
  const auto take_turn = [&](Duration after) {
    now_ = now_ + after;
    ccc_->on_credit(now_, credit_ += 16);
    Transmission u;
    ccc_->on_send(now_, u, share_, kPacket, ccc_->next_send(now_, nullptr, kPacket), false);
    ASSERT_EQ(ccc_->state(), CccState::kActive);
    ccc_->on_first_ack(u, share_);
  };
  EXPECT_EQ(ccc_->next_deadline(), now_ + timeout);
  take_turn(timeout * 3);
  EXPECT_EQ(ccc_->next_deadline(), now_ + timeout * 6);
  take_turn(timeout * 2);
  EXPECT_EQ(ccc_->next_deadline(), now_ + timeout * 4);
  take_turn(timeout / 4);
  EXPECT_EQ(ccc_->next_deadline(), now_ + timeout);
  take_turn(timeout * 100);  // the destination was away: no source waits that long again
  EXPECT_EQ(ccc_->next_deadline(), now_ + timeout * 16);
}

TEST_F(RcccCccTest, requests_that_draw_nothing_become_rare) {
  Transmission t;
  ccc_->on_new_data(now_, 1000 * kPacket);
  ccc_->on_send(now_, t, share_, kPacket, ccc_->next_send(now_, nullptr, kPacket), false);
  ack(t, share_, 17);
  const Instant end = now_ + Duration::from_seconds(60);
  int requests = 0;
  for (; now_ < end && requests < 10'000; now_ = ccc_->next_deadline())
    if (ccc_->poll_credit_request(now_)) ++requests;
  EXPECT_LT(requests, 650) << "some ten a second";
  EXPECT_GT(requests, 550) << "a destination that comes back is found within 100 ms";
  ccc_->on_credit(now_, credit_ += 16);
  Transmission u;
  ccc_->on_send(now_, u, share_, kPacket, ccc_->next_send(now_, nullptr, kPacket), false);
  EXPECT_LE(ccc_->next_deadline(), now_ + config_.credit_request_timeout * 16);
}

// A forged grant far ahead makes all true ones look old. The destination answers requests with its counter, which ends that.
TEST_F(RcccCccTest, a_counter_that_was_not_the_destinations_is_left_after_three_requests) {
  Transmission t;
  ccc_->on_new_data(now_, 1000 * kPacket);
  ccc_->on_send(now_, t, share_, kPacket, ccc_->next_send(now_, nullptr, kPacket), false);
  ack(t, share_, 17);
  ccc_->on_credit(now_, 16);
  ccc_->on_credit(now_, 4'000'000);
  while (ccc_->may_send(kPacket)) {
    Transmission u;
    ccc_->on_send(now_, u, share_, kPacket, ccc_->next_send(now_, nullptr, kPacket), false);
    ccc_->on_first_ack(u, share_);
  }
  int requests = 0;
  for (; requests < 10 && !ccc_->may_send(kPacket); ++requests) {
    now_ = ccc_->next_deadline();
    ASSERT_TRUE(ccc_->poll_credit_request(now_).has_value());
    ccc_->on_credit(now_, 32);
  }
  EXPECT_EQ(requests, 3);
}

TEST_F(RcccCccTest, first_packet_lost_without_pdc_may_leave_without_credit) {
  auto config = hand_config(Algorithm::kRccc);
  config.spec_window = kPacket;
  make(config);
  Transmission t;
  send(t, share_);
  EXPECT_EQ(ccc_->state(), CccState::kPending);
  ccc_->on_inferred_loss(now_, t, share_, true, false);
  EXPECT_TRUE(ccc_->may_send(kPacket));
  EXPECT_FALSE(ccc_->poll_credit_request(now_ + Duration::from_seconds(1)).has_value());
  EXPECT_TRUE(resend(t, share_).credit_target.has_value());
  EXPECT_FALSE(ccc_->may_send(kPacket));
}

TEST_F(RcccCccTest, last_pdc_closed_starts_the_counters_again) {
  Transmission t;
  send(t, share_);
  ack(t, share_, 17);
  ccc_->on_credit(now_, 1000);
  ccc_->on_pdc_closed(share_);
  PdcShare fresh;
  Transmission u;
  ccc_->on_new_data(now_, 10 * kPacket);
  const auto params = send(u, fresh);
  EXPECT_LT(*params.credit_target, 1000u);
}

TEST_F(RcccCccTest, both__need_window_and_credit) {
  make(hand_config(Algorithm::kBoth));
  ccc_->on_new_data(now_, 1000 * kPacket);
  std::vector<Transmission> t(1000);
  std::size_t sent = 0;
  while (ccc_->may_send(kPacket)) {
    ccc_->on_send(now_, t[sent++], share_, kPacket, ccc_->next_send(now_, nullptr, kPacket), false);
  }
  EXPECT_EQ(sent, 150'000u / kPacket + 1);  // speculative credit ends before the window
  const auto window = ccc_->window_bytes();
  wait(13'000);
  ccc_->on_nack(now_, t[0], share_, {.arrived_at = now_, .cause = NackCause::kTrimmedLastHop});
  EXPECT_EQ(ccc_->window_bytes(), window);
}

// One that cannot be told gets no turns, and loses nothing of what it asked for.
TEST(CreditPacer, rest__takes_turns_again_when_it_is_resumed) {
  const auto config = credit_config();
  CreditPacer pacer(config, 4, pacer_rng);
  pacer.on_demand(at(0), kA, 640);
  ASSERT_TRUE(pacer.poll_grant(at(0)).has_value());
  pacer.rest(kA);
  EXPECT_TRUE(pacer.next_deadline().is_never());
  pacer.rest(kB);  // unknown
  pacer.resume(at(100), kB);
  EXPECT_TRUE(pacer.next_deadline().is_never());
  pacer.resume(at(100), kA);
  std::uint32_t given = 0;
  for (Instant now = at(100); !pacer.next_deadline().is_never() && pacer.wanting() > 0;
       now = pacer.next_deadline())
    if (const auto grant = pacer.poll_grant(now)) given = grant->credit_units;
  EXPECT_EQ(given, 640u);
}

TEST(CreditPacer, gives_less_while_the_fabric_trims_if_told_to) {
  for (const bool listens : {false, true}) {
    auto config = credit_config();
    config.fabric_factor = listens;
    config.oversubscription = 2.0;
    CreditPacer pacer(config, 4, pacer_rng);
    Instant now = at(0);
    std::uint32_t target = 0;
    const auto bytes_in = [&](int grants) {
      ByteCount bytes = 0;
      for (int i = 0; i < grants; ++i) {
        pacer.on_demand(now, kA, target += 64);
        bytes += pacer.poll_grant(now)->bytes;
        now = pacer.next_deadline().is_never() ? now : pacer.next_deadline();
        // Half of what the source sends is cut inside the fabric.
        pacer.on_data_seen(false, i % 2 == 0, false);
      }
      return bytes;
    };
    pacer.on_demand(now, kA, target += 640);
    const Instant start = now;
    const auto bytes = bytes_in(400);
    const double rate = static_cast<double>(bytes) / static_cast<double>((now - start).ns());
    if (listens) {
      EXPECT_NEAR(pacer.fabric_factor(), 0.45, 1e-9) << "0.9 / oversubscription";
      EXPECT_LT(rate, 0.52 * config.link_rate.bytes_per_ns());
    } else {
      EXPECT_GT(rate, 0.98 * config.link_rate.bytes_per_ns());
    }
  }
}

TEST(FabricFactor, falls_with_trims_and_marks_and_recovers_when_quiet) {
  const auto config = credit_config();
  base::Rng rng(3);
  FabricFactor factor(config, 1.5, rng, at(0));
  for (int i = 0; i < 90; ++i) factor.on_data(false);
  for (int i = 0; i < 10; ++i) factor.on_trimmed(false);
  EXPECT_NEAR(factor.poll(factor.next_deadline()), 0.9, 1e-9);
  for (int i = 0; i < 100; ++i) factor.on_trimmed(false);
  EXPECT_NEAR(factor.poll(factor.next_deadline()), 0.6, 1e-9);
  double last = factor.factor();
  for (int round = 0; round < 10; ++round) {
    const double now = factor.poll(factor.next_deadline());
    EXPECT_GE(now, last);
    last = now;
  }
  EXPECT_EQ(last, 1.0);
}

}  // namespace
}  // namespace uet::cc
