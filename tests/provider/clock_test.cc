#include "provider/clock.h"

#include <gtest/gtest.h>

namespace uet::provider {
namespace {

using base::Duration;
using base::Instant;

/// Both are what the test says.
struct ToldTime {
  static inline Instant time;
  static inline std::uint64_t count = 0;
  static inline bool is_steady = true;
  static Instant now() { return time; }
  static std::uint64_t ticks() { return count; }
  static bool has_steady_ticks() { return is_steady; }
};

class RecentClockTest : public testing::Test {
 protected:
  RecentClockTest() {
    ToldTime::time = Instant::from_ns(5000);
    ToldTime::count = 1 << 20;
    ToldTime::is_steady = true;
  }
  /// Time passes, and so many ticks.
  static Instant pass(std::uint64_t ticks) {
    ToldTime::time = ToldTime::time + Duration::from_ns(100);
    ToldTime::count += ticks;
    return ToldTime::time;
  }
};

TEST_F(RecentClockTest, takes_what_it_read_for_a_thousand_ticks) {
  RecentClock<ToldTime> clock;
  const Instant first = clock.now();
  EXPECT_EQ(first, ToldTime::time);
  pass(999);
  EXPECT_EQ(clock.now(), first);
  EXPECT_EQ(clock.now(), first);
  const Instant later = pass(1);
  EXPECT_EQ(clock.now(), later);
}

TEST_F(RecentClockTest, reads_again_where_ticks_went_back) {
  RecentClock<ToldTime> clock;
  clock.now();
  const Instant later = pass(static_cast<std::uint64_t>(-5));
  EXPECT_EQ(clock.now(), later);
}

TEST_F(RecentClockTest, reads_at_once_where_a_length_of_time_begins_or_ends) {
  RecentClock<ToldTime> clock;
  clock.now();
  const Instant later = pass(1);
  EXPECT_EQ(clock.now_exactly(), later);
  pass(999);
  EXPECT_EQ(clock.now(), later);
}

TEST_F(RecentClockTest, reads_every_time_without_steady_ticks) {
  ToldTime::is_steady = false;
  RecentClock<ToldTime> clock;
  clock.now();
  const Instant later = pass(1);
  EXPECT_EQ(clock.now(), later);
}

TEST_F(RecentClockTest, keeps_up_with_the_system) {
  RecentClock<> clock;
  Instant last;
  for (int i = 0; i < 100'000; ++i) {
    const Instant now = clock.now();
    ASSERT_LE(now, clock_now());
    ASSERT_GE(now, last);
    last = now;
  }
  const Instant before = clock_now();
  EXPECT_GE(clock.now_exactly(), before);
}

}  // namespace
}  // namespace uet::provider
