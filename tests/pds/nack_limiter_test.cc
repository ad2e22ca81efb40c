// NACKs that a source address may provoke. [PDS 2.2, 19 R19]
#include "pds/nack_limiter.h"

#include <gtest/gtest.h>

namespace uet::pds {
namespace {

using base::Duration;
using base::Instant;

const base::HashKey kKey{base::Rng(1)};
constexpr Instant kStart = Instant::from_ns(5'000'000'000);

net::FabricAddress source(std::uint32_t n) {
  return net::FabricAddress::from_v4(0x0a000000u + n);
}
int allowed(NackLimiter& limiter, Instant now, std::uint32_t n, int tries = 100) {
  int count = 0;
  for (int i = 0; i < tries; ++i) count += limiter.allow(now, source(n)) ? 1 : 0;
  return count;
}

TEST(NackLimiter, a_new_source_has_its_burst_and_no_more) {
  NackLimiter limiter(64, 1000, 8, kKey);
  EXPECT_EQ(allowed(limiter, kStart, 1), 8);
  EXPECT_EQ(allowed(limiter, kStart, 2), 8);
}

TEST(NackLimiter, the_bucket_fills_with_time_up_to_the_burst) {
  NackLimiter limiter(64, 1000, 8, kKey);
  EXPECT_EQ(allowed(limiter, kStart, 1), 8);
  EXPECT_EQ(allowed(limiter, kStart + Duration::from_us(999), 1), 0);
  EXPECT_EQ(allowed(limiter, kStart + Duration::from_ms(3), 1), 3);
  EXPECT_EQ(allowed(limiter, kStart + Duration::from_seconds(3600), 1), 8);
}

TEST(NackLimiter, many_small_steps_of_time_add_up_to_the_rate) {
  NackLimiter limiter(64, 1000, 8, kKey);
  EXPECT_EQ(allowed(limiter, kStart, 1), 8);
  int count = 0;
  for (int i = 1; i <= 100'000; ++i)
    count += limiter.allow(kStart + Duration::from_us(i), source(1)) ? 1 : 0;
  EXPECT_EQ(count, 100);
}

TEST(NackLimiter, the_source_that_was_silent_longest_is_forgotten) {
  NackLimiter limiter(4, 1, 1, kKey);  // one set of four
  for (std::uint32_t n = 1; n <= 4; ++n)
    EXPECT_EQ(allowed(limiter, kStart + Duration::from_us(n), n), 1);
  EXPECT_EQ(allowed(limiter, kStart + Duration::from_us(10), 5), 1);  // takes the place of 1
  EXPECT_EQ(allowed(limiter, kStart + Duration::from_us(11), 2), 0);
  EXPECT_EQ(allowed(limiter, kStart + Duration::from_us(12), 1), 1);
}

}  // namespace
}  // namespace uet::pds
