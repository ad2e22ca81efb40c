// Time that passes only while the program turns the loop. [SES 4.3 rule 9]
#include "ses/loop_clock.h"

#include <gtest/gtest.h>

namespace uet::ses::testing {
namespace {

using base::Duration;
using base::Instant;

constexpr Instant kStart = Instant::from_ns(7'000'000'000);
constexpr Instant after_ms(std::int64_t ms) {
  return kStart + Duration::from_ns(ms * 1'000'000);
}

TEST(LoopClock, advance__first_call_is_where_it_begins) {
  LoopClock clock;
  EXPECT_TRUE(clock.next_tick().is_never());
  clock.advance(kStart);
  EXPECT_EQ(clock.ns(), 0);
  EXPECT_EQ(clock.next_tick(), after_ms(1000));
}

TEST(LoopClock, advance__time_between_turns_passes) {
  LoopClock clock;
  clock.advance(kStart);
  clock.advance(after_ms(300));
  clock.advance(after_ms(300));
  clock.advance(after_ms(2300));
  EXPECT_EQ(clock.ns(), 2'300'000'000);
}

TEST(LoopClock, advance__no_more_than_two_seconds_pass_in_a_pause) {
  LoopClock clock;
  clock.advance(kStart);
  clock.advance(after_ms(3'600'000));
  EXPECT_EQ(clock.ns(), 2'000'000'000);
  clock.advance(after_ms(3'600'001));
  EXPECT_EQ(clock.ns(), 2'001'000'000);
}

TEST(LoopClock, advance__a_time_before_the_last_one_counts_for_nothing) {
  LoopClock clock;
  clock.advance(after_ms(500));
  clock.advance(kStart);
  EXPECT_EQ(clock.ns(), 0);
}

TEST(LoopClock, is_past__from_that_age_on) {
  LoopClock clock;
  clock.advance(kStart);
  clock.advance(after_ms(1000));
  EXPECT_TRUE(clock.is_past(0, Duration::from_seconds(1)));
  EXPECT_FALSE(clock.is_past(1, Duration::from_seconds(1)));
}

TEST(LoopClock, end_tick__comes_again_while_something_is_there) {
  LoopClock clock;
  clock.advance(kStart);
  clock.end_tick(after_ms(1000), true);
  EXPECT_EQ(clock.next_tick(), after_ms(2000));
  clock.advance(after_ms(1500));
  EXPECT_EQ(clock.next_tick(), after_ms(2000));  // a call between two ticks puts none off
  clock.end_tick(after_ms(2000), false);
  EXPECT_TRUE(clock.next_tick().is_never());
}

}  // namespace
}  // namespace uet::ses::testing
