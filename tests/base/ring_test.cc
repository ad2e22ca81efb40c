#include "lib/base/ring.h"

#include <gtest/gtest.h>

#include <memory>

namespace uet::base {
namespace {

TEST(Ring, keeps_the_order_and_its_bound_over_many_rounds) {
  Ring<int> ring(5);  // not a power of two
  int in = 0, out = 0;
  for (int round = 0; round < 100; ++round) {
    while (ring.push(in)) ++in;
    EXPECT_TRUE(ring.is_full());
    ASSERT_EQ(ring.size(), 5u);
    EXPECT_EQ(ring.front(), out);
    EXPECT_EQ(ring[4], out + 4);
    for (int i = 0; i < 1 + round % 5; ++i) ASSERT_EQ(ring.pop(), out++);
  }
  while (!ring.is_empty()) EXPECT_EQ(ring.pop(), out++);
  EXPECT_EQ(in, out);
}

TEST(Ring, push__into_a_full_one_drops_the_item_and_nothing_else) {
  Ring<std::unique_ptr<int>> ring(1);
  EXPECT_TRUE(ring.push(std::make_unique<int>(1)));
  EXPECT_FALSE(ring.push(std::make_unique<int>(2)));
  EXPECT_EQ(*ring.pop(), 1);
  EXPECT_TRUE(ring.is_empty());
}

}  // namespace
}  // namespace uet::base
