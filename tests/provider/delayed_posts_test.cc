#include "provider/delayed_posts.h"

#include <gtest/gtest.h>

namespace uet::provider {
namespace {

using base::Duration;
using base::Instant;
using Verdict = DelayedPosts::Verdict;

constexpr Duration kNextPost = Duration::from_ns(200);
constexpr Duration kComputing = Duration::from_ms(1);

class DelayedPostsTest : public ::testing::Test {
 protected:
  Verdict post(std::size_t bytes = 8, std::uint64_t peer = 1) {
    posts.on_call(now);
    const Verdict verdict = posts.on_post(now, {.peer = peer, .bytes = bytes});
    if (verdict != Verdict::kWait) posts.on_left();
    if (verdict == Verdict::kTryLeaving) posts.on_sent(now = now + kSystemCall);
    return verdict;
  }
  /// The application stays away for a while.
  void pass(Duration away) { now = now + away; }
  void poll() {
    posts.on_call(now);
    posts.on_poll();
  }
  /// A row of posts, and then a poll after `away`. Those that waited.
  int row(int length, Duration away = kNextPost) {
    int waited = 0;
    for (int i = 0; i < length; ++i) {
      waited += post() == Verdict::kWait ? 1 : 0;
      pass(i + 1 < length ? kNextPost : away);
    }
    poll();
    pass(kNextPost);
    return waited;
  }
  /// Rows of `length` before the first in which any waits.
  int rows_before_one_waits(int length) {
    for (int n = 0; n < 100'000; ++n)
      if (row(length) > 0) return n;
    return -1;
  }

  static constexpr Duration kSystemCall = Duration::from_us(4);
  DelayedPosts posts;
  Instant now = Instant::from_ns(1'000'000);
};

TEST_F(DelayedPostsTest, RowsOfAPromptApplicationWaitAfterAFew) {
  // The first post of the first row is not known to be in one: 63 of 64 are not enough.
  EXPECT_EQ(rows_before_one_waits(8), 8);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(row(8), 8);
}

TEST_F(DelayedPostsTest, PostsWithAPollAfterEachDoNotWait) {
  for (int i = 0; i < 10'000; ++i) EXPECT_EQ(row(1), 0);
  EXPECT_FALSE(posts.are_in_use());
}

// The first one alone may be all that there is.
TEST_F(DelayedPostsTest, FirstOfARowWaitsOnlyWhereTheLastRowWasOne) {
  rows_before_one_waits(8);
  EXPECT_EQ(row(1), 1);
  EXPECT_EQ(row(3), 2);
  EXPECT_EQ(row(3), 3);
}

// They would not leave as one.
TEST_F(DelayedPostsTest, PostsToOnePeerAfterTheOtherDoNotWait) {
  for (std::uint64_t i = 0; i < 10'000; ++i) EXPECT_EQ(post(8, i % 3), Verdict::kLeave);
  rows_before_one_waits(8);
  EXPECT_EQ(post(8, 1), Verdict::kWait);
  EXPECT_EQ(post(8, 2), Verdict::kLeave);
  EXPECT_EQ(post(8, 2), Verdict::kWait);
}

TEST_F(DelayedPostsTest, NoMoreThanABurstWaits) {
  rows_before_one_waits(8);
  for (int i = 1; i < 32; ++i) EXPECT_EQ(post(), Verdict::kWait);
  EXPECT_EQ(post(), Verdict::kLeave);
  for (int i = 1; i < 32; ++i) EXPECT_EQ(post(), Verdict::kWait);
  EXPECT_EQ(post(), Verdict::kLeave);
}

TEST_F(DelayedPostsTest, NoMoreThanAFewPacketsWait) {
  rows_before_one_waits(8);
  for (int i = 1; i < 4; ++i) EXPECT_EQ(post(16384), Verdict::kWait);
  EXPECT_EQ(post(16384), Verdict::kLeave);
}

TEST_F(DelayedPostsTest, WhatIsABurstByItselfDoesNotWait) {
  rows_before_one_waits(8);
  EXPECT_EQ(posts.on_post(now, {.peer = 1, .bytes = 8192, .joins_others = false}), Verdict::kLeave);
  EXPECT_EQ(posts.on_post(now, {.peer = 1, .bytes = 8192}), Verdict::kWait);
}

TEST_F(DelayedPostsTest, NothingWaitsForLong) {
  rows_before_one_waits(8);
  const Instant begin = now;
  while (post() == Verdict::kWait) pass(Duration::from_us(2));
  EXPECT_EQ(now - begin, Duration::from_us(10));
}

// Each of its absences costs what 150 posts save.
TEST_F(DelayedPostsTest, ApplicationThatComputesAfterEachRowHasNoneWait) {
  row(100, kComputing);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(row(100, kComputing), 0);
}

TEST_F(DelayedPostsTest, WhatAnAbsenceCostIsSavedBeforeAnyWaitsAgain) {
  rows_before_one_waits(8);
  EXPECT_TRUE(posts.are_in_use());
  EXPECT_EQ(row(8, kComputing), 8);
  EXPECT_EQ(row(8), 0);
  EXPECT_FALSE(posts.are_in_use());
  EXPECT_EQ(rows_before_one_waits(8), 17);
  EXPECT_TRUE(posts.are_in_use());
}

// A program that posts ten, looks into its memory for an answer, and calls nothing until that has come.
TEST_F(DelayedPostsTest, ApplicationThatWaitsForAnAnswerWithoutCallsHasHardlyAnyWait) {
  int late = 0;
  for (int i = 0; i < 10'000; ++i) {
    Verdict verdict{};
    for (int k = 0; k < 10; ++k) {
      pass(kNextPost);
      verdict = post();
    }
    const bool waits = verdict == Verdict::kWait;
    pass(waits ? Duration::from_us(200) : Duration::from_us(10));
    posts.on_left();
    late += waits ? 1 : 0;
  }
  EXPECT_GT(late, 0);
  EXPECT_LT(late, 20);
}

TEST_F(DelayedPostsTest, WaitingThatPaidForItsEndHasNotToBeEarnedForLonger) {
  rows_before_one_waits(8);
  row(8, kComputing);
  EXPECT_EQ(rows_before_one_waits(8), 18);
  row(8, kComputing);
  EXPECT_EQ(rows_before_one_waits(8), 37);
  for (int i = 0; i < 20; ++i) row(8);
  row(8, kComputing);
  EXPECT_EQ(rows_before_one_waits(8), 18);
}

TEST_F(DelayedPostsTest, ThreadFindsThoseThatTheApplicationLeft) {
  rows_before_one_waits(8);
  EXPECT_FALSE(posts.are_overdue(now + kComputing));
  EXPECT_EQ(post(), Verdict::kWait);
  EXPECT_FALSE(posts.are_overdue(now + Duration::from_us(20)));
  EXPECT_TRUE(posts.are_overdue(now + Duration::from_us(21)));
  posts.on_left();
  EXPECT_FALSE(posts.are_overdue(now + kComputing));
}

TEST_F(DelayedPostsTest, SlowPostsAreAbsencesToo) {
  rows_before_one_waits(8);
  int waited = 0;
  for (int i = 0; i < 1000; ++i) {
    waited += post() == Verdict::kWait ? 1 : 0;
    pass(Duration::from_us(5));
  }
  EXPECT_LE(waited, 1);
}

TEST_F(DelayedPostsTest, LongPastIsForgiven) {
  for (int i = 0; i < 1000; ++i) row(2, kComputing);
  const int rows = rows_before_one_waits(8);
  EXPECT_GT(rows, 600);
  EXPECT_LT(rows, 640);
}

TEST_F(DelayedPostsTest, ThreadMayRestWhenNothingHasWaitedForLong) {
  rows_before_one_waits(8);
  for (int i = 0; i < 3000; ++i) row(1);
  EXPECT_TRUE(posts.are_in_use());
  for (int i = 0; i < 2000; ++i) row(1);
  EXPECT_FALSE(posts.are_in_use());
  EXPECT_EQ(row(2), 1);
  EXPECT_TRUE(posts.are_in_use());
}

}  // namespace
}  // namespace uet::provider
