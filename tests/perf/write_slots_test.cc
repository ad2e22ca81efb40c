#include "apps/perf/write_slots.h"

#include <gtest/gtest.h>

#include <map>
#include <vector>

namespace uet::perf {
namespace {

struct Case {
  std::uint64_t count, window;
};
class WriteSlotsTest : public testing::TestWithParam<Case> {
 protected:
  const WriteSlots slots{GetParam().count, GetParam().window};
};

TEST_P(WriteSlotsTest, last_writes__go_where_no_other_does) {
  std::map<std::uint64_t, int> writes;
  for (std::uint64_t n = 0; n < slots.count; ++n) ++writes[slots.target(n)];
  ASSERT_EQ(slots.last(), std::min(slots.count, slots.window));
  for (std::uint64_t n = slots.count - slots.last(); n < slots.count; ++n)
    EXPECT_EQ(writes[slots.target(n)], 1) << "write " << n;
}

TEST_P(WriteSlotsTest, slot__always_gets_the_bytes_of_the_same_source) {
  std::map<std::uint64_t, std::uint64_t> source;
  for (std::uint64_t n = 0; n < slots.count; ++n) {
    EXPECT_LT(slots.source(n), 2 * slots.window);
    EXPECT_LT(slots.target(n), 2 * slots.window);
    const auto [at, is_new] = source.emplace(slots.target(n), slots.source(n));
    EXPECT_EQ(at->second, slots.source(n));
    EXPECT_NE(slots.source(n) < slots.window, slots.target(n) < slots.window);
    EXPECT_EQ(slots.source(n) % slots.window, slots.target(n) % slots.window);
  }
  EXPECT_EQ(source.size(), slots.last() + slots.before());
}

INSTANTIATE_TEST_SUITE_P(All, WriteSlotsTest,
                         testing::Values(Case{1, 16}, Case{16, 16}, Case{17, 16}, Case{40, 16},
                                         Case{1000, 64}, Case{5, 1}));

}  // namespace
}  // namespace uet::perf
