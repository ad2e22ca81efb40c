/// The destination's reports.
#include "cc/receiver.h"

#include "tests/cc/ccc_fixture.h"

namespace uet::cc {
namespace {

TEST(RcvdBytes, rounds_up_and_wraps) {
  const std::pair<ByteCount, std::uint32_t> rows[] = {{0, 0},   {1, 1},     {256, 1},
                                                      {257, 2}, {4136, 17}, {12'408, 49}};
  for (const auto& [bytes, units] : rows) EXPECT_EQ(rcvd_units(bytes), units);
  EXPECT_EQ(rcvd_units((ByteCount{1} << 32) + 300), 2u);
}

TEST(WireCounter, units_ahead__is_serial) {
  EXPECT_EQ(units_ahead(0x10, 0xff'fff0), 0x20u);
  EXPECT_EQ(units_ahead(0xff'fff0, 0x10), 0u);
  EXPECT_EQ(units_ahead(5, 5), 0u);
}

TEST(ServiceTime, in_units_of_which_0_means_not_given) {
  EXPECT_EQ(service_time_units(Duration::from_ns(-1)), 1);
  EXPECT_EQ(service_time_units(Duration::from_ns(127)), 1);
  EXPECT_EQ(service_time_units(Duration::from_ns(1280)), 10);
  EXPECT_EQ(service_time_units(Duration::from_ns(8'388'479)), 0xfffe);
  EXPECT_EQ(service_time_units(Duration::from_ns(8'388'480)), 0xffff);
  EXPECT_EQ(service_time_units(Duration::from_seconds(9)), 0xffff);
}

TEST(WindowPenalty, linear_between_half_and_nearly_full) {
  EXPECT_EQ(window_penalty(0, 1000), 0);
  EXPECT_EQ(window_penalty(500, 1000), 0);
  EXPECT_EQ(window_penalty(725, 1000), 63);
  EXPECT_EQ(window_penalty(949, 1000), 126);
  EXPECT_EQ(window_penalty(950, 1000), 127);
  EXPECT_EQ(window_penalty(2000, 1000), 127);
  EXPECT_EQ(window_penalty(1, 0), 0);
}

TEST(Receiver, window_advice__gives_back_what_it_took_at_a_quarter) {
  const auto advice = [](std::int64_t used) {
    const WindowAdvice a = window_advice(used, 1000);
    return std::pair<int, bool>(a.penalty, a.restore);
  };
  EXPECT_EQ(advice(0), std::pair(0, true));
  EXPECT_EQ(advice(250), std::pair(0, true));
  EXPECT_EQ(advice(251), std::pair(0, false));  // neither: the source keeps what it has
  EXPECT_EQ(advice(500), std::pair(0, false));
  EXPECT_EQ(advice(725), std::pair(63, true));
  EXPECT_EQ(advice(1000), std::pair(127, true));
}

}  // namespace
}  // namespace uet::cc
