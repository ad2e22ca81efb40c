#include "lib/base/near_name.h"

#include <gtest/gtest.h>

#include <array>
#include <string>

namespace uet::base {
namespace {

constexpr std::array<std::string_view, 5> kNames = {"PATHS", "PATH_LOG", "PORT", "CC",
                                                    "PEER_TIMEOUT"};

TEST(NearName, edit_distance__counts_letters_of_either_case) {
  EXPECT_EQ(edit_distance("", ""), 0u);
  EXPECT_EQ(edit_distance("abc", "ABC"), 0u);
  EXPECT_EQ(edit_distance("abc", "ac"), 1u);
  EXPECT_EQ(edit_distance("abc", "acb"), 1u);  // neighbours in the wrong order
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3u);
}

TEST(NearName, near_name__finds_what_was_meant_and_nothing_else) {
  EXPECT_EQ(near_name("PATH", kNames), "PATHS");
  EXPECT_EQ(near_name("prot", kNames), "PORT");
  EXPECT_EQ(near_name("PEER", kNames), "PEER_TIMEOUT");
  EXPECT_EQ(near_name("TRIMMING", kNames), "");
  EXPECT_EQ(near_name("", kNames), "");
  EXPECT_EQ(near_name(std::string(100'000, 'P'), kNames), "");
}

}  // namespace
}  // namespace uet::base
