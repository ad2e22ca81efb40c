#include "apps/stat/explanations.h"

#include <gtest/gtest.h>

namespace uet::stat {
namespace {

TEST(Explanations, one_name__says_what_happened_whether_it_harms_and_what_to_do) {
  const auto lines = explain("no-buffer");
  ASSERT_EQ(lines.size(), 1u);
  for (const char* part : {"drop no-buffer: packet pool is empty (a fault). ", "FI_UET_POOL"})
    EXPECT_NE(lines[0].find(part), std::string::npos) << lines[0];
}

TEST(Explanations, a_name_of_both_kinds__has_two_lines) {
  const auto lines = explain("duplicate");
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_TRUE(lines[0].starts_with("drop duplicate: ")) << lines[0];
  EXPECT_TRUE(lines[1].starts_with("event duplicate: ")) << lines[1];
}

TEST(Explanations, an_unknown_name__has_none) {
  EXPECT_TRUE(explain("no-such-drop").empty());
}

TEST(Explanations, no_name__explains_every_drop_and_event) {
  EXPECT_EQ(explain("").size(), base::kDropReasonCount + base::kEventCount);
}

}  // namespace
}  // namespace uet::stat
