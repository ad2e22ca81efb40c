// Which segments have arrived.
#include "ses/coverage.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "lib/base/rng.h"

namespace uet::ses {
namespace {

using Look = Coverage::Look;

/// Against a plain list of flags: any order, repetitions, several lengths of segments.
TEST(Coverage, says_what_a_list_of_all_segments_would_say) {
  base::Rng rng(7);
  CoveragePool pool(4);
  for (int round = 0; round < 300; ++round) {
    const std::uint32_t segment = 1024u << rng.below(4);
    const std::uint32_t count = 1 + rng.below(rng.chance(0.1) ? 2040 : 40);
    const std::uint32_t length = (count - 1) * segment + 1 + rng.below(segment);
    std::vector<std::uint32_t> order;
    for (std::uint32_t i = 0; i < count; ++i) order.push_back(i);
    for (std::uint32_t i = count - 1; i > 0; --i) std::swap(order[i], order[rng.below(i + 1)]);
    Coverage coverage;
    std::vector<bool> has(count);
    for (const std::uint32_t i : order) {
      const std::uint32_t again = order[rng.below(count)];
      const auto bytes = [&](std::uint32_t n) { return std::min(segment, length - n * segment); };
      EXPECT_EQ(coverage.look(again * segment, bytes(again), length, pool),
                has[again] ? Look::kKnown : Look::kNew);
      EXPECT_FALSE(coverage.is_complete());
      ASSERT_EQ(coverage.look(i * segment, bytes(i), length, pool), Look::kNew);
      coverage.add(i * segment, bytes(i), length, pool);
      has[i] = true;
    }
    EXPECT_TRUE(coverage.is_complete());
    EXPECT_EQ(pool.in_use(), 0u);
  }
}

TEST(Coverage, refuses_what_does_not_fit_between_the_others) {
  CoveragePool pool(1);
  Coverage coverage;
  coverage.add(2048, 2048, 10'000, pool);
  EXPECT_EQ(coverage.look(0, 1024, 10'000, pool), Look::kWrong);
  EXPECT_EQ(coverage.look(1024, 2048, 10'000, pool), Look::kWrong);
  EXPECT_EQ(coverage.look(9'000, 1'000, 10'000, pool), Look::kWrong);
  EXPECT_EQ(coverage.look(8192, 1808, 10'000, pool), Look::kNew);
  coverage.add(8192, 1808, 10'000, pool);
  EXPECT_EQ(coverage.look(0, 2048, 10'000, pool), Look::kNew);
  // The last one came first and says where the others end.
  Coverage last;
  last.add(3072, 10, 3082, pool);
  EXPECT_EQ(last.look(0, 2048, 3082, pool), Look::kWrong);
  EXPECT_EQ(last.look(0, 1024, 3082, pool), Look::kNew);
  coverage.clear(pool);
  EXPECT_EQ(pool.in_use(), 0u);
}

TEST(Coverage, waits_for_what_is_missing_when_too_much_came_before_it) {
  CoveragePool pool(1);
  Coverage coverage, other;
  constexpr std::uint64_t kLength = 10'000 * 1024;
  EXPECT_EQ(coverage.look(2048 * 1024, 1024, kLength, pool), Look::kTooFar);
  EXPECT_EQ(coverage.look(2047 * 1024, 1024, kLength, pool), Look::kNew);
  coverage.add(2047 * 1024, 1024, kLength, pool);
  // No window is left: only what is in order can be had.
  EXPECT_EQ(other.look(1024, 1024, kLength, pool), Look::kTooFar);
  EXPECT_EQ(other.look(0, 1024, kLength, pool), Look::kNew);
  coverage.clear(pool);
  EXPECT_EQ(other.look(1024, 1024, kLength, pool), Look::kNew);
}

}  // namespace
}  // namespace uet::ses
