#include "provider/courtesy.h"

#include <gtest/gtest.h>

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

// A process that computes on the same core keeps it for a time slice: afterwards it is ours for as long.
TEST(CourtesyTest, LongAbsenceIsFollowedByAsLongATurn) {
  Courtesy courtesy;
  courtesy.is_due(kStart, true);
  const Instant began = spin_until_due(courtesy, kStart);
  const Instant returned = began + Duration::from_ms(4);
  courtesy.back(began, returned);
  EXPECT_GE(spin_until_due(courtesy, returned) - returned, Duration::from_ms(4));
}

}  // namespace
}  // namespace uet::provider
