#include "provider/delayed_acks.h"

#include <gtest/gtest.h>

namespace uet::provider {
namespace {

using base::Duration;
using base::Instant;

constexpr Duration kSoon = Duration::from_us(1);
constexpr Duration kLate = Duration::from_ms(1);

class DelayedAcksTest : public ::testing::Test {
 protected:
  /// A message comes, and the application calls again after `away`. Whether its ACK waited.
  bool message(Duration away) {
    const bool waited = acks.may_wait(now);
    now = now + away;
    acks.on_call(now);
    now = now + kLate;
    acks.on_call(now);  // calls with no message before them
    return waited;
  }
  /// Messages with a prompt application before the first whose ACK waits.
  int prompt_messages_before_one_waits() {
    for (int n = 0; n < 100'000; ++n)
      if (message(kSoon)) return n;
    return -1;
  }

  DelayedAcks acks;
  Instant now = Instant::from_ns(1'000'000);
};

TEST_F(DelayedAcksTest, PromptApplicationHasThemWaitAfterAFewMessages) {
  EXPECT_EQ(prompt_messages_before_one_waits(), 16);
  for (int i = 0; i < 1000; ++i) EXPECT_TRUE(message(kSoon));
}

TEST_F(DelayedAcksTest, ApplicationThatComputesNeverHasThemWait) {
  for (int i = 0; i < 1000; ++i) {
    EXPECT_FALSE(message(kLate));
    for (int k = 0; k < 15; ++k) EXPECT_FALSE(message(kSoon));
  }
}

// 2 us a message make up for it, and for what the progress thread does not end.
TEST_F(DelayedAcksTest, WhatLatenessCostIsSavedBeforeTheyWaitAgain) {
  EXPECT_FALSE(acks.are_in_use());
  prompt_messages_before_one_waits();
  EXPECT_TRUE(acks.are_in_use());
  EXPECT_TRUE(message(Duration::from_us(50)));
  EXPECT_EQ(prompt_messages_before_one_waits(), 25);
  EXPECT_TRUE(message(kLate));
  EXPECT_FALSE(message(kSoon));
  EXPECT_FALSE(acks.are_in_use());
  EXPECT_EQ(prompt_messages_before_one_waits(), 63);
}

TEST_F(DelayedAcksTest, LongPastIsForgiven) {
  for (int i = 0; i < 100'000; ++i) message(kLate);
  EXPECT_EQ(prompt_messages_before_one_waits(), 500);
}

/// An application that asks until its queue is empty, and then answers or does not.
class AnsweringTest : public DelayedAcksTest {
 protected:
  /// Whether the ACK of a message waited through a poll that brought nothing.
  bool message_and_answer(Duration after) {
    acks.may_wait(now);
    acks.on_call(now = now + kSoon);
    const bool waited_on = acks.may_go_on(now);
    acks.on_answer(now = now + after);
    now = now + kLate;
    return waited_on;
  }
  int answers_until_one_waits() {
    for (int n = 0; n < 100'000; ++n)
      if (message_and_answer(kSoon)) return n;
    return -1;
  }
};

TEST_F(AnsweringTest, AcksWaitThroughPollsThatBringNothingForAnAnswerThatUsuallyComes) {
  EXPECT_EQ(answers_until_one_waits(), 16);
  for (int i = 0; i < 1000; ++i) EXPECT_TRUE(message_and_answer(kSoon));
  acks.may_wait(now);
  EXPECT_TRUE(acks.may_go_on(now + Duration::from_us(10)));
  EXPECT_FALSE(acks.may_go_on(now + Duration::from_us(11)));
}

// Where ACKs do not wait yet, each message has one sent alone, which may take longer than the application.
TEST_F(AnsweringTest, TimeThatSendingTakesIsNotTheApplications) {
  int messages = 0;
  for (bool waited = false; !waited && messages < 1000; ++messages) {
    acks.may_wait(now);
    acks.on_call(now = now + kSoon);
    waited = acks.may_go_on(now);
    if (!waited) acks.on_sent(now = now + Duration::from_us(30));
    acks.on_answer(now = now + kSoon);
    now = now + kLate;
  }
  EXPECT_EQ(messages, 17);
}

// The answer that comes just after they have left saves nothing.
TEST_F(AnsweringTest, WaitingInVainHasToBeMadeUpFor) {
  answers_until_one_waits();
  acks.may_wait(now);
  EXPECT_FALSE(acks.may_go_on(now = now + Duration::from_us(11)));
  EXPECT_FALSE(acks.awaits_answer());
  acks.on_answer(now = now + kSoon);
  EXPECT_EQ(answers_until_one_waits(), 5);
}

TEST_F(AnsweringTest, AnswerThatComesLateOrNotAtAllHasToBeMadeUpFor) {
  answers_until_one_waits();
  EXPECT_TRUE(message_and_answer(kLate));
  EXPECT_EQ(answers_until_one_waits(), 5);
  message(kSoon);  // no answer
  EXPECT_EQ(answers_until_one_waits(), 5);
}

TEST_F(AnsweringTest, ApplicationThatOnlyReceivesHasThemLeaveWithItsNextPoll) {
  for (int i = 0; i < 1000; ++i) {
    acks.may_wait(now);
    acks.on_call(now = now + kSoon);
    EXPECT_FALSE(acks.may_go_on(now));
  }
}

}  // namespace
}  // namespace uet::provider
