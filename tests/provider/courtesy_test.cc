#include "provider/courtesy.h"

#include <gtest/gtest.h>

#include <array>

namespace uet::provider {
namespace {

using base::Duration;
using base::Instant;

/// Asks every 100 ns, for nothing, until the courtesy is due; returns when.
Instant spin_until_due(Courtesy& courtesy, Instant from) {
  for (Instant now = from;; now = now + Duration::from_ns(100))
    if (courtesy.is_due(now, false)) return now;
}

constexpr Instant kStart = Instant::from_ns(1'000'000);

TEST(CourtesyTest, IsDueAfterAWhileOfNothing) {
  Courtesy courtesy;
  EXPECT_FALSE(courtesy.is_due(kStart, true));
  const Instant due = spin_until_due(courtesy, kStart);
  EXPECT_GE(due - kStart, Duration::from_us(15));
  EXPECT_LE(due - kStart, Duration::from_us(30));
}

TEST(CourtesyTest, WorkStartsTheWhileAnew) {
  Courtesy courtesy;
  for (Instant now = kStart; now < kStart + Duration::from_ms(1); now = now + Duration::from_us(1))
    EXPECT_FALSE(courtesy.is_due(now, (now - kStart).ns() % 8000 == 0));
}

TEST(CourtesyTest, CallerThatComputesBetweenItsQuestionsNeverYields) {
  Courtesy courtesy;
  for (int i = 0; i < 1000; ++i)
    EXPECT_FALSE(courtesy.is_due(kStart + Duration::from_us(50) * i, false));
}

// A core of its own: the yield returns at once, and polling goes on for long enough that yields cost next to nothing.
TEST(CourtesyTest, YieldsAreRareOnAFreeCore) {
  Courtesy courtesy;
  courtesy.is_due(kStart, true);
  const Instant end = kStart + Duration::from_ms(10);
  int yields = 0;
  for (Instant now = kStart; now < end; now = now + Duration::from_ns(200)) {
    if (!courtesy.is_due(now, false)) continue;
    ++yields;
    courtesy.back(now, now + Duration::from_ns(300));
  }
  EXPECT_GT(yields, 100);
  EXPECT_LE(yields, 500);
}

/// Spins until it is due, after which the yield takes `absence`; returns when it ends.
Instant yield_for(Courtesy& courtesy, Instant from, Duration absence) {
  const Instant began = spin_until_due(courtesy, from);
  courtesy.back(began, began + absence);
  return began + absence;
}

// Who yields as well is away for microseconds: waiting for it costs more than letting it go on.
TEST(CourtesyTest, SpinsForLessWhereOthersYieldToo) {
  Courtesy courtesy;
  courtesy.is_due(kStart, true);
  const Instant back = yield_for(courtesy, kStart, Duration::from_us(30));
  const Instant due = spin_until_due(courtesy, back);
  EXPECT_LE(due - back, Duration::from_us(5));
  courtesy.back(due, due + Duration::from_ns(300));
  EXPECT_GE(spin_until_due(courtesy, due + Duration::from_ns(300)) - due, Duration::from_us(20));
}

// A process that computes on the same core keeps it for a time slice: afterwards it is ours for as long.
TEST(CourtesyTest, LongAbsenceIsFollowedByAsLongATurn) {
  Courtesy courtesy;
  courtesy.is_due(kStart, true);
  const Instant back = yield_for(courtesy, kStart, Duration::from_ms(4));
  EXPECT_GE(spin_until_due(courtesy, back) - back, Duration::from_ms(4));
}

/// Of `absences` of 4 ms each, how many are followed by a turn as long, with a packet in the middle of it or none. The caller was
/// `away` before it asked for that packet.
int times_kept(int absences, bool packets, Duration away = {}) {
  Courtesy courtesy;
  courtesy.is_due(kStart, true);
  Instant now = yield_for(courtesy, kStart, Duration::from_ms(4));
  int kept = 0;
  for (int i = 0; i < absences; ++i) {
    const Instant back = now;
    const Instant packet = back + Duration::from_ms(2);
    while (!courtesy.is_due(now, packets && now == packet + away)) {
      now = now + Duration::from_us(1);
      if (now == packet) now = now + away;
    }
    kept += now - back >= Duration::from_ms(4);
    courtesy.back(now, now + Duration::from_ms(4));
    now = now + Duration::from_ms(4);
  }
  return kept;
}

TEST(CourtesyTest, CoreIsKeptAgainWherePacketsEndThePauses) {
  EXPECT_EQ(times_kept(160, true), 160);
}

TEST(CourtesyTest, CoreThatWasKeptInVainIsNotKeptSoonAgain) {
  EXPECT_EQ(times_kept(160, false), 20);
  EXPECT_EQ(times_kept(160, true, Duration::from_us(50)), 20);  // it had other things to do
}

// Each is away for the time of all others. Had each kept the core for as long as it was away, they would take the longest
// time that the kernel allows, and what one waits for from another would take as many of those as there are others.
TEST(CourtesyTest, SeveralThatPollOnOneCoreDoNotKeepItFromEachOther) {
  constexpr int kProcesses = 4;
  std::array<Courtesy, kProcesses> all;
  std::array<Instant, kProcesses> left;
  left.fill(kStart);
  for (Courtesy& courtesy : all) courtesy.is_due(kStart, true);
  Instant now = kStart + Duration::from_ms(3);  // one has computed
  Instant round_began;
  for (int round = 0; round < 3; ++round) {
    round_began = now;
    for (int i = 0; i < kProcesses; ++i) {
      all[i].back(left[i], now);
      now = left[i] = spin_until_due(all[i], now);
    }
  }
  EXPECT_LE(now - round_began, Duration::from_us(20) * kProcesses);
}

}  // namespace
}  // namespace uet::provider
