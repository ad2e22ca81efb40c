#include "lib/base/byte_size.h"

#include <gtest/gtest.h>

namespace uet::base {
namespace {

TEST(ByteSize, units_are_powers_of_1024) {
  EXPECT_EQ(parse_byte_size("0", 10), 0u);
  EXPECT_EQ(parse_byte_size("256", 1000), 256u);
  EXPECT_EQ(parse_byte_size("3k", 1u << 20), 3u << 10);
  EXPECT_EQ(parse_byte_size("3K", 1u << 20), 3u << 10);
  EXPECT_EQ(parse_byte_size("64M", 1u << 30), 64u << 20);
  EXPECT_EQ(parse_byte_size("1g", 1u << 30), 1u << 30);
}

TEST(ByteSize, other_text_is_refused) {
  for (const char* text : {"", "k", "-1", "1kk", "1 k", "1T", "1.5k", "99999999999999999999"})
    EXPECT_EQ(parse_byte_size(text, UINT64_MAX), std::nullopt) << text;
}

TEST(ByteSize, more_than_the_most_is_refused_before_it_overflows) {
  EXPECT_EQ(parse_byte_size("1025", 1024), std::nullopt);
  EXPECT_EQ(parse_byte_size("2k", 2047), std::nullopt);
  EXPECT_EQ(parse_byte_size("17179869184g", UINT64_MAX), std::nullopt);
}

}  // namespace
}  // namespace uet::base
