/// NSCC against the numeric vectors: 100 Gb/s, 12 us, trimming, MTU 4096.
#include "cc/nscc.h"

#include <gtest/gtest.h>

#include "tests/cc/ccc_fixture.h"

namespace uet::cc {
namespace {

using base::BitRate;

constexpr Duration ns(std::int64_t value) {
  return Duration::from_ns(value);
}
constexpr Instant kFarFuture = Instant::from_ns(1'000'000'000'000);

CcConfig vector_config() {
  CcConfig c;
  c.link_rate = BitRate::from_gbps(100);
  c.config_base_rtt = ns(12'000);
  c.trimming = true;
  c.mtu_bytes = 4096;
  c.average_gain = 0;  // the average is set by hand
  return derived(c);
}

class NsccVectors : public testing::Test {
 protected:
  Nscc::State& s() { return nscc_.state_for_test(); }
  ByteCount window() const { return nscc_.window(); }
  ByteCount inflight() const { return nscc_.inflight(); }

  void idle_quick_adapt() { s().qa_end = kFarFuture; }
  void window_and_inflight(ByteCount bytes) { s().window = s().inflight = bytes; }
  void ack(std::int64_t t, ByteCount n, bool ecn, std::int64_t rtt_ns) {
    nscc_.on_ack(at(t), {.newly_received = n, .ecn = ecn, .rtt = ns(rtt_ns)});
  }
  void trim(std::int64_t t, ByteCount bytes) {
    nscc_.on_nack(at(t), bytes, Nscc::Trim::kInFabric, std::nullopt, false);
  }
  /// Vectors 8 to 14 build on each other.
  void play_8() {
    window_and_inflight(225'000);
    ack(12'500, 4096, true, 12'500);
  }
  void play_to_9() {
    play_8();
    trim(20'000, 4096);
  }
  void play_to_10() {
    play_to_9();
    ack(25'000, 8192, true, 25'000);
  }
  void play_to_11() {
    play_to_10();
    trim(33'499, 4096);
  }
  void play_to_12() {
    play_to_11();
    trim(33'500, 4096);
  }

  CcConfig config_ = vector_config();
  Nscc nscc_{config_, Duration(), at(0)};
};

// Covers: CC-V1
TEST_F(NsccVectors, proportional_increase_settles_after_the_byte_threshold) {
  window_and_inflight(100'000);
  idle_quick_adapt();
  ack(1000, 16'384, false, 16'500);
  EXPECT_NEAR(s().inc_bytes, 100'663'296, 1);
  ack(2000, 16'384, false, 16'500);
  EXPECT_NEAR(s().inc_bytes, 201'326'592, 1);
  ack(3000, 16'384, false, 16'500);
  EXPECT_EQ(window(), 103'019);
  EXPECT_EQ(s().inc_bytes, 0);
  EXPECT_EQ(s().received_bytes, 0);
  EXPECT_EQ(inflight(), 50'848);
  EXPECT_EQ(s().last_adjust, at(0));
}

// Covers: CC-V2
TEST_F(NsccVectors, settle_after_the_period_adds_eta) {
  window_and_inflight(100'000);
  idle_quick_adapt();
  ack(12'000, 4096, false, 16'500);
  EXPECT_EQ(window(), 100'865);
  EXPECT_EQ(s().last_adjust, at(12'000));
}

// Covers: CC-V3
TEST_F(NsccVectors, fair_increase_when_the_queue_drains) {
  window_and_inflight(100'000);
  idle_quick_adapt();
  for (int i = 1; i <= 3; ++i) ack(1000 * i, 16'384, false, 22'000);
  EXPECT_EQ(window(), 110'066);
}

// Covers: CC-V4
TEST_F(NsccVectors, multiplicative_decrease_follows_the_average_down_to_a_half) {
  const std::pair<double, ByteCount> rows[] = {
      {9000, 200'000}, {12'000, 160'000}, {18'000, 120'000}, {36'000, 100'000}, {90'000, 100'000}};
  for (const auto& [average, expected] : rows) {
    Nscc nscc(config_, Duration(), at(0));
    nscc.state_for_test().window = nscc.state_for_test().inflight = 200'000;
    nscc.state_for_test().qa_end = kFarFuture;
    nscc.state_for_test().last_adjust = at(13'000);
    nscc.state_for_test().average_delay_ns = average;
    nscc.on_ack(at(13'000), {.newly_received = 4096, .ecn = true, .rtt = ns(30'000)});
    EXPECT_EQ(nscc.window(), expected) << "average " << average;
  }
}

// Covers: CC-V5
TEST_F(NsccVectors, multiplicative_decrease_at_most_once_per_base_rtt) {
  window_and_inflight(200'000);
  idle_quick_adapt();
  s().last_decrease = at(5000);
  s().last_adjust = at(17'000);
  s().average_delay_ns = 18'000;
  ack(17'000, 4096, true, 30'000);
  EXPECT_EQ(window(), 200'000);
  ack(17'001, 4096, true, 30'000);
  EXPECT_EQ(window(), 120'000);
}

// Covers: CC-V6
TEST_F(NsccVectors, mark_without_delay_changes_nothing) {
  window_and_inflight(200'000);
  idle_quick_adapt();
  ack(1000, 4096, true, 20'000);
  EXPECT_EQ(window(), 200'000);
  EXPECT_EQ(s().inc_bytes, 0);
}

// Covers: CC-V7
TEST_F(NsccVectors, fast_increase_after_a_window_of_clear_path) {
  window_and_inflight(20'000);
  idle_quick_adapt();
  ack(1000, 12'288, false, 12'100);
  EXPECT_EQ(s().fi_count, 12'288);
  EXPECT_FALSE(s().fast_increase);
  EXPECT_NEAR(s().inc_bytes, 149'317'222, 1);
  ack(2000, 12'288, false, 12'100);
  EXPECT_EQ(window(), 23'072);
  EXPECT_TRUE(s().fast_increase);
  ack(3000, 12'288, false, 12'999);
  EXPECT_EQ(window(), 31'855);
  ack(4000, 12'288, false, 13'000);
  EXPECT_EQ(s().fi_count, 0);
  EXPECT_FALSE(s().fast_increase);
  EXPECT_NEAR(s().inc_bytes, 134'217'728, 1);
}

// Covers: CC-V8
TEST_F(NsccVectors, first_ack_starts_a_measurement_period) {
  play_8();
  EXPECT_EQ(s().qa_end, at(33'500));
  EXPECT_EQ(s().achieved_bytes, 0);
  EXPECT_EQ(window(), 225'000);
}

// Covers: CC-V9
TEST_F(NsccVectors, trim_before_the_period_ends_takes_the_packet_off) {
  play_to_9();
  EXPECT_EQ(window(), 220'904);
  EXPECT_TRUE(s().trigger_qa);
  EXPECT_EQ(s().bytes_ignored, 8192);
}

// Covers: CC-V10
TEST_F(NsccVectors, marked_ack_with_a_low_average_only_settles) {
  play_to_10();
  EXPECT_EQ(s().achieved_bytes, 8192);
  EXPECT_EQ(window(), 221'518);
}

// Covers: CC-V11
TEST_F(NsccVectors, trim_just_before_the_period_ends) {
  play_to_11();
  EXPECT_EQ(window(), 217'422);
}

// Covers: CC-V12
TEST_F(NsccVectors, quick_adapt_sets_the_window_to_what_arrived) {
  play_to_12();
  EXPECT_EQ(window(), 8192);
  EXPECT_EQ(s().bytes_to_ignore, 200'424);
  EXPECT_EQ(inflight(), 200'424);
  EXPECT_EQ(s().bytes_ignored, 0);
  EXPECT_FALSE(s().trigger_qa);
  EXPECT_EQ(s().qa_end, at(54'500));
}

// Covers: CC-V13
TEST_F(NsccVectors, marks_from_before_the_cut_are_ignored) {
  play_to_12();
  s().average_delay_ns = 90'000;
  ack(34'000, 4096, true, 33'000);
  EXPECT_EQ(window(), 8192);
  EXPECT_EQ(s().inc_bytes, 0);
  EXPECT_EQ(s().received_bytes, 0);
  EXPECT_EQ(s().achieved_bytes, 4096);
}

// Covers: CC-V14
TEST_F(NsccVectors, unmarked_ack_after_the_cut_counts) {
  play_to_12();
  ack(34'000, 4096, true, 33'000);
  ack(34'100, 4096, false, 33'000);
  EXPECT_NEAR(s().inc_bytes, 83'886'080, 1);
}

// Covers: CC-V15
TEST_F(NsccVectors, quick_adapt_only_when_little_arrived) {
  const std::pair<ByteCount, ByteCount> rows[] = {
      {28'125, 220'904}, {28'124, 28'124}, {1000, 4096}};
  for (const auto& [achieved, expected] : rows) {
    Nscc nscc(config_, Duration(), at(0));
    auto& state = nscc.state_for_test();
    state.window = state.inflight = 225'000;
    state.qa_end = at(20'000);
    state.achieved_bytes = achieved;
    nscc.on_nack(at(20'000), 4096, Nscc::Trim::kInFabric, std::nullopt, false);
    EXPECT_EQ(nscc.window(), expected) << "achieved " << achieved;
    EXPECT_EQ(state.achieved_bytes, 0);
    EXPECT_EQ(state.qa_end, at(41'000));
  }
}

// Covers: CC-V16
TEST_F(NsccVectors, credit_answers_for_trims_at_the_last_hop) {
  window_and_inflight(225'000);
  idle_quick_adapt();
  nscc_.on_nack(at(1000), 4096, Nscc::Trim::kLastHop, std::nullopt, true);
  EXPECT_EQ(window(), 225'000);
  EXPECT_EQ(inflight(), 220'904);
  nscc_.on_nack(at(2000), 4096, Nscc::Trim::kLastHop, std::nullopt, false);
  EXPECT_EQ(window(), 220'904);
  EXPECT_EQ(inflight(), 216'808);
  nscc_.on_nack(at(3000), 4096, Nscc::Trim::kNone, std::nullopt, false);
  EXPECT_EQ(window(), 220'904);
  EXPECT_EQ(inflight(), 212'712);
}

// Covers: CC-V17
TEST_F(NsccVectors, inferred_loss_takes_the_packet_off_down_to_one) {
  window_and_inflight(10'000);
  nscc_.on_inferred_loss(4096);
  EXPECT_EQ(window(), 5904);
  EXPECT_EQ(inflight(), 5904);
  nscc_.on_inferred_loss(4096);
  EXPECT_EQ(window(), 4096);
  EXPECT_EQ(inflight(), 1808);
}

// Covers: CC-V18, CC-V19
TEST_F(NsccVectors, destination_penalty_shrinks_and_restore_returns) {
  s().window = 150'000;
  s().inflight = 120'000;
  idle_quick_adapt();
  const auto ack_with = [this](std::int64_t t, ByteCount n, std::uint8_t penalty, bool restore) {
    nscc_.on_ack(at(t), {.newly_received = n,
                         .ecn = false,
                         .rtt = ns(13'000),
                         .penalty = penalty,
                         .restore_window = restore});
  };
  ack_with(1000, 16'384, 64, true);
  EXPECT_EQ(window(), 95'424);
  EXPECT_EQ(s().saved_window, 150'000);
  ack_with(2000, 16'384, 127, true);
  EXPECT_EQ(window(), 70'976);
  EXPECT_EQ(s().inc_bytes, 0);
  ack_with(3000, 0, 0, false);
  EXPECT_EQ(s().saved_window, 150'000);
  EXPECT_EQ(window(), 70'976);
  ack_with(4000, 0, 0, true);
  EXPECT_EQ(window(), 150'000);
  EXPECT_EQ(s().saved_window, 0);
}

// Covers: CC-V20
TEST_F(NsccVectors, smaller_rtt_lowers_the_base_and_the_limit) {
  s().window = 225'000;
  ack(1000, 0, false, 8000);
  EXPECT_EQ(nscc_.base_rtt(), ns(8000));
  EXPECT_EQ(s().window_max, 150'000);
  EXPECT_EQ(window(), 150'000);
}

TEST_F(NsccVectors, penalty_with_negative_inflight_gives_one_packet) {
  s().window = 150'000;
  s().inflight = -100;
  nscc_.on_ack(at(1000), {.newly_received = 0, .ecn = false, .rtt = std::nullopt, .penalty = 1});
  EXPECT_EQ(window(), 4096);
}

TEST_F(NsccVectors, penalty_applies_without_a_valid_rtt) {
  s().window = 150'000;
  s().inflight = 120'000;
  nscc_.on_ack(at(1000), {.newly_received = 16'384, .rtt = std::nullopt, .penalty = 64});
  EXPECT_EQ(window(), 95'424);
}

TEST_F(NsccVectors, half_penalty_in_every_ack_of_a_round_trip_halves_the_window) {
  s().window = s().inflight = 200'000;
  idle_quick_adapt();
  for (int i = 0; i < 50; ++i) {
    s().inflight = 200'000 + 4000;  // the sender keeps the network full
    nscc_.on_ack(at(100 * i), {.newly_received = 4000, .rtt = std::nullopt, .penalty = 64});
  }
  EXPECT_NEAR(static_cast<double>(window()), 100'000, 5'000);
}

TEST_F(NsccVectors, may_send_asks_for_room_for_a_full_packet) {
  s().window = 10'000;
  s().inflight = 5'904;
  EXPECT_TRUE(nscc_.may_send(64));
  s().inflight = 5'905;
  EXPECT_FALSE(nscc_.may_send(64));
}

TEST_F(NsccVectors, asks_for_an_ack_when_the_window_fills_or_is_below_the_trigger) {
  s().window = 100'000;
  s().inflight = 0;
  EXPECT_FALSE(nscc_.wants_ack(95'904));
  EXPECT_TRUE(nscc_.wants_ack(95'905));
  s().window = 16'383;
  EXPECT_TRUE(nscc_.wants_ack(1));
}

TEST_F(NsccVectors, quick_adapt_can_be_switched_off) {
  config_.disable_quick_adapt = true;
  window_and_inflight(225'000);
  s().qa_end = at(20'000);
  trim(20'000, 4096);
  EXPECT_EQ(window(), 220'904);
}

TEST_F(NsccVectors, trim_early_in_a_period_cuts_on_an_ack_at_its_end) {
  play_to_9();
  ack(33'500, 4096, false, 13'000);
  EXPECT_EQ(window(), 4096);  // all that arrived in the period
  EXPECT_FALSE(s().trigger_qa);
}

TEST_F(NsccVectors, excessive_delay_cuts_without_loss_when_nothing_is_trimmed) {
  config_.qa_threshold = ns(48'000);
  window_and_inflight(225'000);
  s().qa_end = at(20'000);
  ack(20'000, 4096, false, 60'001);
  EXPECT_EQ(window(), 4096);
}

TEST_F(NsccVectors, window_validation_stops_growth_of_an_unused_window) {
  config_.cwnd_validation = true;
  s().window = 100'000;
  s().inflight = 40'000;
  idle_quick_adapt();
  ack(1000, 16'384, false, 16'500);
  EXPECT_EQ(s().inc_bytes, 0);
  s().inflight = 60'000;
  ack(1000, 16'384, false, 16'500);
  EXPECT_GT(s().inc_bytes, 0);
}

TEST_F(NsccVectors, average_per_sample_takes_a_drained_queue_as_a_quarter_rtt) {
  config_.average_gain = 1.0 / 80;
  idle_quick_adapt();
  ack(1000, 0, true, 12'000 + 8000);
  EXPECT_DOUBLE_EQ(s().average_delay_ns, 100);
  ack(1100, 0, false, 12'000 + 20'000);
  EXPECT_DOUBLE_EQ(s().average_delay_ns, 100 + (3000 - 100) / 80.0);
}

TEST_F(NsccVectors, average_weighted_by_time_forgets_after_a_base_rtt) {
  config_.average_mode = AverageMode::kTimeWeighted;
  idle_quick_adapt();
  ack(12'000, 0, false, 12'000 + 20'000);
  EXPECT_DOUBLE_EQ(s().average_delay_ns, 20'000);
  ack(18'000, 0, false, 12'000);
  EXPECT_DOUBLE_EQ(s().average_delay_ns, 10'000);
  ack(60'000, 0, false, 12'500);
  EXPECT_DOUBLE_EQ(s().average_delay_ns, 500);
}

TEST_F(NsccVectors, cut_packet_counts_as_a_base_rtt_of_delay) {
  config_.average_gain = 0.5;
  idle_quick_adapt();
  trim(1000, 4096);
  EXPECT_DOUBLE_EQ(s().average_delay_ns, 6000);
}

TEST_F(NsccVectors, cached_base_rtt_limits_the_first_window) {
  Nscc nscc(config_, ns(8000), at(0));
  EXPECT_EQ(nscc.base_rtt(), ns(8000));
  EXPECT_EQ(nscc.window(), 150'000);
}

TEST_F(NsccVectors, absurdly_small_rtt_leaves_room_for_one_packet) {
  nscc_.on_base_rtt_sample(ns(1));
  EXPECT_EQ(window(), 4096);
  s().inflight = 0;
  EXPECT_TRUE(nscc_.may_send(4096));
}

TEST(NsccCompat, follows_the_public_simulator_where_it_differs) {
  auto config = vector_config();
  config.htsim_compat = true;
  Nscc nscc(config, Duration(), at(0));
  auto& s = nscc.state_for_test();
  s.window = s.inflight = 100'000;
  s.qa_end = kFarFuture;
  EXPECT_FALSE(nscc.may_send(64));
  s.inflight = 99'936;
  EXPECT_TRUE(nscc.may_send(64));  // own size
  nscc.on_ack(at(12'000), {.newly_received = 4096, .rtt = ns(16'500)});
  EXPECT_EQ(nscc.window(), 100'000);  // settles only after the period, not at it
  nscc.on_ack(at(12'001), {.newly_received = 4096, .rtt = std::nullopt});
  EXPECT_GT(nscc.window(), 100'000);  // acts on the average without a sample
  const auto ignored = s.bytes_ignored;
  nscc.on_inferred_loss(4096);
  EXPECT_EQ(s.bytes_ignored, ignored);
}

// A peer that is not polled for milliseconds looks like a long queue. Nothing was lost: the window
// must stand.
TEST(NsccOnSoftwareHosts, silence_of_a_peer_is_not_congestion) {
  CcConfig config;
  config.config_base_rtt = Duration::from_us(100);
  config.timing_noise = Duration::from_us(50);
  config = derived(config);
  Nscc nscc(config, Duration(), at(0));
  const auto full = nscc.window();
  std::int64_t t = 0;
  for (int round = 0; round < 1000; ++round) {
    const std::int64_t rtt = round % 10 == 0 ? 5'000'000 : 8'000 + 1000 * (round % 7);
    t += rtt;
    nscc.on_send(40'000);
    nscc.on_ack(at(t), {.newly_received = 40'000, .rtt = ns(rtt)});
    ASSERT_EQ(nscc.window(), full) << "round " << round;
  }
  EXPECT_EQ(nscc.base_rtt(), config.config_base_rtt);
}

}  // namespace
}  // namespace uet::cc
