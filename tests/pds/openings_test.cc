// What a target remembers of PDCs that it has closed or pushed out, and whom it pushes out. No Pds. [PDS 6.6]
#include "pds/openings.h"

#include <gtest/gtest.h>

#include "tests/pds/parts.h"

namespace uet::pds::test {
namespace {

const Duration kSecond = Duration::from_seconds(1);

PdsConfig openings_config() {
  PdsConfig config;
  config.max_pdc = 40;
  config.max_tombstones = 2;
  config.max_openings_remembered = 3;
  return config;
}

struct Remembering : Parts {
  explicit Remembering(const PdsConfig& config = openings_config())
      : Parts(config), openings(env, 40) {}
  /// A target PDC from before now, as `remember` meets it.
  static Pdc& make(Pdc& pdc, std::uint32_t start, bool is_proven, bool has_delivered) {
    pdc.peer = address_of(3);
    pdc.peer_id = 9;
    pdc.start = Psn(start);
    pdc.is_proven = is_proven;
    pdc.heard_at = pdc.opened_at = kNow;
    pdc.rx.has_accepted = true;
    pdc.rx.has_delivered = has_delivered;
    return pdc;
  }
  bool is_buried(Instant now, std::uint32_t start) {
    return openings.tombstones().contains(now, address_of(3), 9, Psn(start));
  }
  bool is_remembered(Instant now, std::uint32_t start) {
    return openings.ended_early().contains(now, address_of(3), 9, Psn(start));
  }
  Openings openings;
};

// Their settings differ: a message would be executed twice by a target that forgets it before its initiator gives up.
TEST(Openings, memory__covers_an_initiator_of_any_setting_and_its_late_copies) {
  const auto with = [](int peer_timeout) {
    PdsConfig config;
    config.peer_timeout = kSecond * peer_timeout;
    return config;
  };
  EXPECT_EQ(Openings::patience(with(7)), kSecond * 7);
  for (const int target : {1, 60, 600, 0}) {
    const Remembering t(with(target));
    for (const int initiator : {1, 60, 600, 0})
      EXPECT_GE(t.openings.memory(), Openings::patience(with(initiator)) + with(0).tombstone_time);
  }
}

TEST(Openings, remember__leaves_a_tombstone_of_a_proven_pdc_for_its_time) {
  Remembering t;
  Pdc pdc;
  t.openings.remember(kNow, t.make(pdc, 100, true, true));
  const Duration life = t.env.config.tombstone_time;
  EXPECT_TRUE(t.is_buried(kNow + life - Duration::from_ns(1), 100));
  EXPECT_FALSE(t.is_buried(kNow + life - Duration::from_ns(1), 101));
  EXPECT_FALSE(t.is_buried(kNow + life, 100));
  EXPECT_EQ(t.openings.ended_early().size(), 0u);
}

TEST(Openings, remember__knows_what_an_unproven_pdc_delivered_for_longer) {
  Remembering t;
  Pdc pdc;
  t.openings.remember(kNow, t.make(pdc, 100, false, true));
  EXPECT_EQ(t.openings.tombstones().size(), 0u);
  const Instant end = kNow + t.openings.memory();
  EXPECT_TRUE(t.is_remembered(end - Duration::from_ns(1), 100));
  EXPECT_FALSE(t.is_remembered(end, 100));
}

TEST(Openings, remember__leaves_nothing_of_what_delivered_nothing) {
  Remembering t;
  Pdc unproven, refused;
  t.openings.remember(kNow, t.make(unproven, 100, false, false));
  t.make(refused, 101, true, false).rx.has_accepted = false;
  t.openings.remember(kNow, refused);
  EXPECT_EQ(t.openings.tombstones().size() + t.openings.ended_early().size(), 0u);
}

// Its initiator has given up: only copies can come, as after a graceful close.
TEST(Openings, remember__needs_a_tombstone_only_after_a_silence_as_long_as_the_memory) {
  Remembering t;
  Pdc pdc;
  t.openings.remember(kNow + t.openings.memory(), t.make(pdc, 100, false, true));
  EXPECT_EQ(t.openings.tombstones().size(), 1u);
  EXPECT_EQ(t.openings.ended_early().size(), 0u);
}

TEST(Openings, a_full_memory_says_so_until_something_is_old_enough) {
  Remembering t;
  for (std::uint32_t i = 0; i < 3; ++i) {
    Pdc pdc;
    EXPECT_TRUE(t.openings.ended_early().has_room_for(kNow + kSecond * i, 1));
    t.openings.remember(kNow + kSecond * i, t.make(pdc, 100 + i, false, true));
  }
  EXPECT_FALSE(t.openings.ended_early().has_room_for(kNow + kSecond * 3, 1));
  const Instant end = kNow + t.openings.memory();
  EXPECT_TRUE(t.openings.ended_early().has_room_for(end, 1));
  EXPECT_FALSE(t.openings.ended_early().has_room_for(end, 2));
  EXPECT_EQ(t.openings.ended_early().size(), 2u);
}

TEST(Openings, above_the_bound_the_oldest_is_forgotten) {
  Remembering t;
  for (std::uint32_t i = 0; i < 4; ++i) {
    Pdc pdc;
    t.openings.remember(kNow, t.make(pdc, 100 + i, false, true));
  }
  EXPECT_EQ(t.openings.ended_early().size(), 3u);
  EXPECT_FALSE(t.is_remembered(kNow, 100));
  EXPECT_TRUE(t.is_remembered(kNow, 101));
  EXPECT_TRUE(t.is_remembered(kNow, 103));
}

TEST(Openings, expire__empties_both_memories) {
  Remembering t;
  Pdc proven, unproven;
  t.openings.remember(kNow, t.make(proven, 100, true, true));
  t.openings.remember(kNow, t.make(unproven, 101, false, true));
  t.openings.expire(kNow + t.openings.memory());
  EXPECT_EQ(t.openings.tombstones().size() + t.openings.ended_early().size(), 0u);
}

TEST(Openings, without_tombstones_nothing_is_remembered_and_there_is_always_room) {
  PdsConfig config = openings_config();
  config.max_tombstones = 0;
  Remembering t(config);
  Pdc pdc;
  t.openings.remember(kNow, t.make(pdc, 100, true, true));
  EXPECT_FALSE(t.is_buried(kNow, 100));
  EXPECT_TRUE(t.openings.tombstones().has_room_for(kNow, 1000));
}

TEST(UnprovenPdcs, half_of_the_places_are_theirs_and_all_of_a_small_table) {
  Pdc pdcs[20];
  UnprovenPdcs large(40, kSecond), small(15, kSecond);
  for (Pdc& pdc : pdcs) {
    EXPECT_TRUE(large.has_share_left());
    large.add(pdc);
  }
  EXPECT_FALSE(large.has_share_left());
  for (Pdc& pdc : pdcs) large.remove(pdc);
  EXPECT_EQ(large.size(), 0u);
  EXPECT_EQ(small.share(), 15u);
}

TEST(UnprovenPdcs, to_evict__is_the_oldest_that_is_silent_or_has_asked_for_four_times_as_long) {
  UnprovenPdcs list(40, kSecond);
  Pdc talks, silent;
  for (Pdc* pdc : {&talks, &silent}) {
    pdc->opened_at = pdc->heard_at = kNow;
    list.add(*pdc);
  }
  EXPECT_EQ(list.to_evict(kNow + kSecond - Duration::from_ns(1)), nullptr);
  talks.heard_at = kNow + kSecond;
  EXPECT_EQ(list.to_evict(kNow + kSecond), &silent);
  talks.heard_at = kNow + kSecond * 4;
  EXPECT_EQ(list.to_evict(kNow + kSecond * 4), &talks);
  list.remove(talks);
  list.remove(silent);
}

}  // namespace
}  // namespace uet::pds::test
