/// Rates: 64 and 128 bits give the same.
#include "lib/base/units.h"

#include <gtest/gtest.h>

namespace uet::base {
namespace {

constexpr std::int64_t kGiB = std::int64_t{1} << 30;

std::int64_t wide_bytes(BitRate rate, std::int64_t ns) {
  return static_cast<std::int64_t>(static_cast<WideInt>(rate.bps()) * ns / 8'000'000'000);
}
std::int64_t wide_time(BitRate rate, std::int64_t bytes) {
  const auto bps = static_cast<WideInt>(rate.bps());
  return static_cast<std::int64_t>((static_cast<WideInt>(bytes) * 8'000'000'000 + bps - 1) / bps);
}

TEST(BitRate, is_exact_at_every_size) {
  for (const BitRate rate : {BitRate::from_bps(1), BitRate::from_bps(999'999'937),
                             BitRate::from_gbps(100), BitRate::from_gbps(1600)}) {
    for (const std::int64_t amount : {std::int64_t{0}, std::int64_t{1}, std::int64_t{4096},
                                      std::int64_t{-4096}, kGiB - 1, 2 * kGiB, 3 * kGiB}) {
      EXPECT_EQ(rate.bytes_in(Duration::from_ns(amount)), wide_bytes(rate, amount))
          << rate.bps() << " " << amount;
      EXPECT_EQ(rate.time_for(amount).ns(), wide_time(rate, amount)) << rate.bps() << " " << amount;
    }
  }
}

TEST(BitRate, rounds_bytes_down_and_time_up) {
  const BitRate rate = BitRate::from_gbps(100);  // 12.5 bytes a nanosecond
  EXPECT_EQ(rate.bytes_in(Duration::from_ns(3)), 37);
  EXPECT_EQ(rate.time_for(37).ns(), 3);
  EXPECT_EQ(rate.time_for(38).ns(), 4);
  EXPECT_EQ(rate.time_for(0).ns(), 0);
}

}  // namespace
}  // namespace uet::base
