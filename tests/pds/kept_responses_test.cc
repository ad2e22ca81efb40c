// Who may keep how many responses at a destination, and what is done about a source that does not clear. No Pds.
// [PDS 9.4, 11]
#include "pds/kept_responses.h"

#include <gtest/gtest.h>

#include "tests/pds/parts.h"

namespace uet::pds::test {
namespace {

PdsConfig kept_config() {
  PdsConfig config;
  config.gtd_store_max = 256;  // a quarter: 64
  config.pds_clear_time = Duration::from_ms(1);
  return config;
}

struct Keeping : Parts {
  explicit Keeping(bool is_proven = true)
      : Parts(kept_config()), kept(env, scheduler), trackers(env.limits.window, 1) {
    establish(false);
    pdc.is_proven = is_proven;
    pdc.share = kept.peers().join(pdc.peer, Role::kTarget);
    pdc.heard_at = kNow;
  }
  ~Keeping() {
    for (RxRecord* record : records) {
      kept.store().remove(*record);
      if (own-- > 0) kept.count(pdc, -1);
    }
    kept.peers().leave(pdc.share, Role::kTarget);
  }
  /// The response of one more packet is kept.
  void keep(Pdc& of) {
    records.push_back(kept.store().add(of.id, Psn(next_psn++), RxRecord::State::kStored, {}));
    ASSERT_NE(records.back(), nullptr);
    kept.count(of, 1);
    ++of.rx.stored;
    ++own;
  }
  bool has_room() { return kept.has_room(pdc, Psn(5000)); }  // not the next one in order
  bool has_room_at_edge() { return kept.has_room(pdc, pdc.rx.edge + 1); }

  KeptResponses kept;
  RxTrackerPool trackers;
  std::vector<RxRecord*> records;
  int own = 0;
  std::uint32_t next_psn = 2000;
};

TEST(KeptResponses, an_unproven_peer_keeps_sixteen) {
  Keeping t(false);
  for (int i = 0; i < 16; ++i) {
    EXPECT_TRUE(t.has_room());
    t.keep(t.pdc);
  }
  EXPECT_FALSE(t.has_room());
  EXPECT_FALSE(t.has_room_at_edge());  // it has no part in the reserve
  EXPECT_EQ(t.kept.of_unproven(), 16u);
}

TEST(KeptResponses, unproven_peers_together_keep_a_quarter) {
  Keeping t(false);
  Pdc others[4];
  for (Pdc& other : others) {
    other.share = t.pdc.share;
    for (int i = 0; i < 16; ++i) t.keep(other);
  }
  EXPECT_TRUE(t.kept.is_share_of_unproven_used(t.pdc));
  EXPECT_FALSE(t.has_room());
  t.pdc.is_proven = true;
  EXPECT_FALSE(t.kept.share_of(t.pdc).is_short());
  EXPECT_TRUE(t.has_room());
  for (Pdc& other : others) t.kept.count(other, -16), t.own -= 16;
}

TEST(KeptResponses, a_proven_pdc_keeps_a_quarter) {
  Keeping t;
  for (int i = 0; i < 64; ++i) {
    EXPECT_TRUE(t.has_room());
    t.keep(t.pdc);
  }
  EXPECT_FALSE(t.has_room());
}

// What closes a gap may exceed the share, or the source could never clear what stands behind the gap.
TEST(KeptResponses, the_packet_at_the_edge_exceeds_the_share_four_times_until_cack_moves) {
  Keeping t;
  for (int i = 0; i < 64; ++i) t.keep(t.pdc);
  for (int i = 0; i < 4; ++i) {
    EXPECT_TRUE(t.has_room_at_edge()) << i;
    t.keep(t.pdc);
  }
  EXPECT_FALSE(t.has_room_at_edge());
  t.pdc.rx.cack = t.pdc.rx.cack + 1;
  EXPECT_TRUE(t.has_room_at_edge());
  t.pdc.rx.cack = t.pdc.rx.cack - 1;
}

TEST(KeptResponses, a_source_that_can_clear_something_gets_nothing_of_the_reserve) {
  Keeping t;
  for (int i = 0; i < 64; ++i) t.keep(t.pdc);
  RxHalf& rx = t.pdc.rx;
  rx.tracker = t.trackers.acquire();
  rx.edge = rx.cack + 1;
  EXPECT_TRUE(t.has_room_at_edge());
  rx.tracker->set(RxTracker::kStored, rx.cack + 1);
  EXPECT_FALSE(t.has_room_at_edge());
  rx.tracker->clear_all(rx.cack + 1);
  t.trackers.release(rx.tracker);
}

TEST(KeptResponses, on_proven__takes_its_responses_out_of_the_share_of_the_unproven) {
  Keeping t(false);
  for (int i = 0; i < 5; ++i) t.keep(t.pdc);
  t.kept.on_proven(t.pdc);
  t.pdc.is_proven = true;
  EXPECT_EQ(t.kept.of_unproven(), 0u);
  EXPECT_EQ(t.kept.share_of(t.pdc).of_pdc, 5u);
  EXPECT_EQ(t.kept.share_of(t.pdc).of_peer, 5u);
}

TEST(KeptResponses, ask_for_clear__asks_a_proven_source_that_has_something_to_clear_once) {
  Keeping t;
  t.kept.ask_for_clear(kNow, t.pdc);
  EXPECT_EQ(t.pdc.pending_control, 0);
  t.keep(t.pdc);
  t.kept.ask_for_clear(kNow, t.pdc);
  EXPECT_EQ(t.pdc.pending_control, kSendClearRequest);
  EXPECT_EQ(t.pdc.deadline(PdcTimer::kClearRequest), kNow + Duration::from_ms(1));
  t.pdc.pending_control = 0;
  t.kept.ask_for_clear(kNow, t.pdc);  // the timer repeats it
  EXPECT_EQ(t.pdc.pending_control, 0);
}

TEST(KeptResponses, ask_for_clear__asks_nothing_of_a_peer_that_has_proved_nothing) {
  Keeping t(false);
  t.keep(t.pdc);
  t.kept.ask_for_clear(kNow, t.pdc);
  EXPECT_EQ(t.pdc.pending_control, 0);
}

TEST(KeptResponses, on_clear_request_timer__stops_when_room_is_not_short_any_more) {
  Keeping t;
  t.keep(t.pdc);
  t.pdc.rx.clear_rounds = t.pdc.rx.clear_asks = 3;
  EXPECT_TRUE(t.kept.on_clear_request_timer(kNow, t.pdc));
  EXPECT_EQ(t.pdc.rx.clear_rounds, 0);
  EXPECT_EQ(t.pdc.rx.clear_asks, 0);
  EXPECT_EQ(t.pdc.pending_control, 0);
}

/// Rounds of requests until the source is given up, or `most`. `hears`: it is heard after each one.
int rounds_until_given_up(Keeping& t, bool hears, int most) {
  for (int i = 0; i < 64; ++i) t.keep(t.pdc);
  RxHalf& rx = t.pdc.rx;
  rx.tracker = t.trackers.acquire();
  rx.edge = rx.cack + 1;
  rx.tracker->set(RxTracker::kStored, rx.cack + 1);
  t.kept.ask_for_clear(kNow, t.pdc);
  Instant now = kNow;
  int rounds = 0;
  for (; rounds < most; ++rounds) {
    now = t.pdc.deadline(PdcTimer::kClearRequest);
    Scheduler::stop_timer(t.pdc, PdcTimer::kClearRequest);
    t.pdc.heard_at = hears ? now : kNow - Duration::from_ms(1);
    if (!t.kept.on_clear_request_timer(now, t.pdc)) break;
  }
  rx.tracker->clear_all(rx.cack + 1);
  t.trackers.release(rx.tracker);
  rx.tracker = nullptr;
  return rounds;
}

TEST(KeptResponses, a_source_that_is_heard_and_clears_nothing_for_64_rounds_is_given_up) {
  Keeping t;
  EXPECT_EQ(rounds_until_given_up(t, true, 200), 63);
}

TEST(KeptResponses, a_source_that_is_not_heard_waits_for_its_peer_timeout) {
  Keeping t;
  EXPECT_EQ(rounds_until_given_up(t, false, 200), 200);
  EXPECT_EQ(t.pdc.rx.clear_asks, 10);  // the requests become rare
}

}  // namespace
}  // namespace uet::pds::test
