// The numbers of ordered sends that take all paths, without an initiator. [decision 141]
#include "ses/send_stream.h"

#include <gtest/gtest.h>

#include <array>

#include "ses/tx_op.h"

namespace uet::ses::testing {
namespace {

struct SendStreamTest : ::testing::Test {
  TxOp& join(std::size_t i) {
    ops[i].state = OpState::kCarried;
    stream.join(ops[i], names);
    return ops[i];
  }

  base::Rng rng{1};
  StreamNames names{rng};
  SendStream stream;
  std::array<TxOp, 3> ops;
};

TEST_F(SendStreamTest, join__numbers_go_up_and_name_the_oldest_without_an_answer) {
  EXPECT_EQ(join(0).place.number, 0u);
  EXPECT_EQ(join(1).place.number, 1u);
  EXPECT_EQ(join(2).place.base(), 0u);
  EXPECT_EQ(ops[2].place.stream, ops[0].place.stream);
  EXPECT_EQ(ops[2].buffer_offset, ops[2].place.pack());
  stream.leave(ops[0]);
  EXPECT_EQ(join(2).place.number, 2u);  // another attempt
  EXPECT_EQ(ops[2].place.base(), 1u);
}

TEST_F(SendStreamTest, leave__the_header_field_is_free_again) {
  stream.leave(join(0));
  EXPECT_FALSE(ops[0].is_sequenced);
  EXPECT_EQ(ops[0].buffer_offset, 0u);
}

TEST_F(SendStreamTest, is_full__until_the_oldest_leaves) {
  join(0);
  for (std::int32_t n = 1; n < kSequenceWindow; ++n) {
    EXPECT_FALSE(stream.is_full());
    EXPECT_FALSE(stream.leave(join(1)));
  }
  EXPECT_TRUE(stream.is_full());
  EXPECT_TRUE(stream.leave(ops[0]));
  EXPECT_FALSE(stream.is_full());
}

TEST_F(SendStreamTest, leaves_gap__unless_it_is_alone_and_the_newest) {
  EXPECT_FALSE(stream.leaves_gap(join(0)));
  join(1);
  EXPECT_TRUE(stream.leaves_gap(ops[0]));
  EXPECT_TRUE(stream.leaves_gap(ops[1]));  // older ones have no answer
  stream.leave(ops[1]);
  EXPECT_TRUE(stream.leaves_gap(ops[0]));  // the target may hold what was behind it
}

TEST_F(SendStreamTest, on_refused__waits_for_what_is_on_its_way) {
  join(0);
  join(1);
  ops[0].state = OpState::kFailed;
  stream.on_refused();
  EXPECT_FALSE(stream.is_refused());
  ops[1].state = OpState::kFailed;
  stream.on_refused();
  EXPECT_TRUE(stream.is_refused());
  EXPECT_FALSE(stream.leaves_gap(ops[0]));  // nothing waits for it
}

// What the target took waits for the one that it refused, so that one must come as it was numbered.
TEST_F(SendStreamTest, on_refused__not_before_one_that_was_taken) {
  join(0).state = OpState::kFailed;
  EXPECT_FALSE(stream.is_known());
  stream.take(join(1));
  EXPECT_TRUE(stream.is_known());
  stream.on_refused();
  EXPECT_FALSE(stream.is_refused());
}

TEST(StreamNamesTest, take__never_0_and_others_than_those_of_another_process) {
  base::Rng rng(1), other(2);
  StreamNames names(rng), others(other);
  const std::uint32_t first = names.take();
  EXPECT_NE(first, others.take());
  for (std::uint32_t i = 1; i < 1'000'000; ++i) ASSERT_NE(names.take(), 0u);
}

// A peer that is shown one may forge packets to another peer, in the name of which it can only guess.
TEST(StreamNamesTest, take__one_says_nothing_of_the_next) {
  base::Rng rng(1);
  StreamNames names(rng);
  std::uint32_t last = names.take();
  for (int i = 0; i < 1000; ++i) {
    const std::uint32_t next = names.take();
    EXPECT_GT(std::abs(number_distance(next, last)), 16) << i;
    last = next;
  }
}

}  // namespace
}  // namespace uet::ses::testing
