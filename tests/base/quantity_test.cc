#include "lib/base/quantity.h"

#include <gtest/gtest.h>

namespace uet::base {
namespace {

TEST(Quantity, parse_duration__number_and_unit) {
  EXPECT_EQ(parse_duration("250ns"), Duration::from_ns(250));
  EXPECT_EQ(parse_duration("1.5 ms"), Duration::from_us(1500));
  EXPECT_EQ(parse_duration("0s"), Duration());
  EXPECT_EQ(parse_duration("2min"), Duration::from_seconds(120));
  EXPECT_EQ(parse_duration("86400s"), Duration::from_seconds(86'400));
  EXPECT_EQ(parse_duration("86399999999999ns"), Duration::from_ns(86'399'999'999'999));
}

TEST(Quantity, parse_duration__nothing_else) {
  for (const char* text : {"", "5", "ms", " 5ms", "5ms ", "-5ms", "+5ms", "1e3us", "5xs", "5msms",
                           "0x10us", "nans", "infs", "86401s", "99999999999999999999s", "1,5ms"})
    EXPECT_FALSE(parse_duration(text)) << text;
}

TEST(Quantity, duration_text__is_read_as_what_it_was) {
  EXPECT_EQ(duration_text(Duration()), "0s");
  EXPECT_EQ(duration_text(Duration::from_us(1500)), "1500us");
  EXPECT_EQ(duration_text(Duration::from_seconds(120)), "120s");
  for (const std::int64_t ns : {1, 999, 1000, 1'000'001, 86'400})
    EXPECT_EQ(parse_duration(duration_text(Duration::from_ns(ns))), Duration::from_ns(ns)) << ns;
}

TEST(ByteSize, units_are_powers_of_1024) {
  EXPECT_EQ(parse_byte_size("0", 10), 0u);
  EXPECT_EQ(parse_byte_size("256", 1000), 256u);
  EXPECT_EQ(parse_byte_size("3k", 1u << 20), 3u << 10);
  EXPECT_EQ(parse_byte_size("3K", 1u << 20), 3u << 10);
  EXPECT_EQ(parse_byte_size("64M", 1u << 30), 64u << 20);
  EXPECT_EQ(parse_byte_size("64 M", 1u << 30), 64u << 20);
  EXPECT_EQ(parse_byte_size("1g", 1u << 30), 1u << 30);
}

TEST(ByteSize, other_text_is_refused) {
  for (const char* text : {"", "k", "-1", "1kk", "1 x", "1T", "1.5k", "99999999999999999999"})
    EXPECT_EQ(parse_byte_size(text, UINT64_MAX), std::nullopt) << text;
}

TEST(ByteSize, more_than_the_most_is_refused_before_it_overflows) {
  EXPECT_EQ(parse_byte_size("1025", 1024), std::nullopt);
  EXPECT_EQ(parse_byte_size("2k", 2047), std::nullopt);
  EXPECT_EQ(parse_byte_size("17179869184g", UINT64_MAX), std::nullopt);
}

}  // namespace
}  // namespace uet::base
