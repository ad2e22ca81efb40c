#include "lib/base/standstills.h"

#include <gtest/gtest.h>

namespace uet::base {
namespace {

constexpr Duration seconds(int n) {
  return Duration::from_seconds(n);
}
constexpr Instant at(int n) {
  return Instant{} + seconds(n);
}

TEST(Standstills, without_any__patience_is_the_time_of_the_clock) {
  const Standstills none;
  EXPECT_EQ(none.end_of(at(10), seconds(60), at(100)), at(70));
}

TEST(Standstills, time_in_which_the_loop_stood_still__does_not_count) {
  Standstills s;
  s.note_turn(at(20), at(100));
  EXPECT_EQ(s.end_of(at(10), seconds(60), at(100)), at(150));
  EXPECT_EQ(s.end_of(at(30), seconds(60), at(100)), at(160))
      << "what began in it gets the rest of it";
  EXPECT_EQ(s.end_of(at(100), seconds(60), at(170)), at(160))
      << "what began behind it gets nothing";
}

// It was stopped at any time before then.
TEST(Standstills, a_loop_that_had_nothing_to_do_before__has_time_when_it_turns) {
  Standstills s;
  s.note_turn(at(70), at(1000));
  EXPECT_EQ(s.end_of(at(10), seconds(60), at(1000)), at(1015));
}

TEST(Standstills, several_things_that_were_due__are_one) {
  Standstills s;
  for (int due = 20; due < 30; ++due) s.note_turn(at(due), at(100));
  s.note_turn(at(50), at(110));  // one that was not done then
  EXPECT_EQ(s.end_of(at(10), seconds(60), at(110)), at(160));
}

TEST(Standstills, short_delays__count) {
  Standstills s;
  for (int i = 0; i < 100; ++i) s.note_turn(at(20 + i), at(20 + i) + Duration::from_ms(499));
  EXPECT_EQ(s.end_of(at(10), seconds(60), at(100)), at(70));
}

TEST(Standstills, a_loop_that_turns_now_and_then__ends_in_bounded_time) {
  Standstills s;
  int now = 0;
  for (; s.end_of(at(0), seconds(60), at(now)) > at(now); now += 30) {
    ASSERT_LT(now, 3600);
    s.note_turn(at(now), at(now + 30));
  }
  EXPECT_LE(now, 60 + static_cast<int>(Standstills::kRemembered + 1) * 30);
}

}  // namespace
}  // namespace uet::base
