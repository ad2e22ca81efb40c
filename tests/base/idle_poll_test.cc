#include "lib/base/idle_poll.h"

#include <gtest/gtest.h>

namespace uet::base {
namespace {

TEST(IdlePoll, next__doubles_until_something_happens) {
  IdlePoll poll;
  Duration second;
  int sleeps = 0;
  for (; second < Duration::from_seconds(1); ++sleeps) second += poll.next();
  EXPECT_LE(sleeps, 1010);
  EXPECT_EQ(poll.next(), IdlePoll::kLongest);
  poll.reset();
  EXPECT_EQ(poll.next(), IdlePoll::kShortest);
  EXPECT_EQ(poll.next(), IdlePoll::kShortest * 2);
}

}  // namespace
}  // namespace uet::base
