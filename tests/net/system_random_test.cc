#include "lib/ports/system_random.h"

#include <gtest/gtest.h>

namespace uet::ports {
namespace {

TEST(SystemRandom, without_a_seed_no_two_endpoints_share_their_numbers) {
  base::Rng one = make_rng(0), other = make_rng(0);
  EXPECT_NE(one.next_u64(), other.next_u64());
}

TEST(SystemRandom, with_a_seed_they_are_those_of_the_seed) {
  EXPECT_EQ(make_rng(7).next_u64(), base::Rng(7).next_u64());
}

}  // namespace
}  // namespace uet::ports
