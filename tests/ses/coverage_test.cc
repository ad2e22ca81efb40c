// Which segments have arrived.
#include "ses/coverage.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "lib/base/rng.h"

namespace uet::ses {
namespace {

using Look = Coverage::Look;

// A READ is forgotten when its first packet is refused and it has no other: nothing is one, too, if it is the last.
TEST(Coverage, is_empty__until_a_segment_was_added_also_an_empty_last_one) {
  CoveragePool pool(1);
  Coverage coverage, of_last;
  EXPECT_TRUE(coverage.is_empty());
  coverage.add(0, 1024, 2048, pool);
  EXPECT_FALSE(coverage.is_empty());
  of_last.add(2048, 0, 2048, pool);
  EXPECT_FALSE(of_last.is_empty());
}

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
    std::uint32_t first_missing = 0;
    for (const std::uint32_t i : order) {
      const std::uint32_t again = order[rng.below(count)];
      const auto bytes = [&](std::uint32_t n) { return std::min(segment, length - n * segment); };
      EXPECT_EQ(coverage.look(again * segment, bytes(again), length, pool),
                has[again] ? Look::kKnown : Look::kNew);
      EXPECT_FALSE(coverage.is_complete());
      while (has[first_missing]) ++first_missing;
      const bool is_length_known =
          i != order.front() && (i != order[1] || order.front() != count - 1);
      EXPECT_EQ(coverage.is_next(i * segment, bytes(i), length),
                i == first_missing && i != count - 1 && is_length_known);
      ASSERT_EQ(coverage.look(i * segment, bytes(i), length, pool), Look::kNew);
      coverage.add(i * segment, bytes(i), length, pool);
      has[i] = true;
    }
    EXPECT_TRUE(coverage.is_complete());
    EXPECT_EQ(pool.in_use(), 0u);
  }
}

// The data of a READ: as far as requests that draw 64 packets each may be ahead of one that was lost.
TEST(Coverage, reaches_further_where_a_READ_is_long) {
  CoveragePool pool(1, 2), plain(1);
  constexpr std::uint32_t kCount = 70'000;
  constexpr std::uint64_t kLength = std::uint64_t{kCount} * 1024;
  Coverage coverage;
  EXPECT_EQ(coverage.look(66'559 * 1024, 1024, kLength, plain), Look::kTooFar);
  for (std::uint32_t i = 66'559; i > 0; --i) {
    ASSERT_EQ(coverage.look(i * 1024, 1024, kLength, pool), Look::kNew);
    coverage.add(i * 1024, 1024, kLength, pool);
    ASSERT_EQ(coverage.look(i * 1024, 1024, kLength, pool), Look::kKnown);
  }
  coverage.add(0, 1024, kLength, pool);
  EXPECT_EQ(pool.in_use(), 0u);
  for (std::uint32_t i = 66'560; i < kCount; ++i) coverage.add(i * 1024, 1024, kLength, pool);
  EXPECT_TRUE(coverage.is_complete());
  // Given back as it was taken.
  Coverage other;
  other.add(5 * 1024, 1024, kLength, pool);
  other.clear(pool);
  Coverage again;
  again.add(7 * 1024, 1024, kLength, pool);
  EXPECT_EQ(again.look(5 * 1024, 1024, kLength, pool), Look::kNew);
  again.clear(pool);
  EXPECT_EQ(pool.in_use(), 0u);
}

TEST(Coverage, holds_what_requests_draw_however_many_are_under_way) {
  EXPECT_EQ(CoveragePool::most_asked(1024), 8u);
  EXPECT_EQ(CoveragePool::most_asked(2048), 8u);
  EXPECT_EQ(CoveragePool::most_asked(4096), 4u);
  EXPECT_EQ(CoveragePool::most_asked(8192), 2u);
  EXPECT_EQ(CoveragePool::most_asked(32'768), 1u);
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
