/// The destination's reports, and cells of TFC.
#include "cc/receiver.h"

#include "cc/tfc.h"
#include "tests/cc/ccc_fixture.h"

namespace uet::cc {
namespace {

TEST(ReceiverCounters, rcvd_units__rounds_up_and_wraps) {
  const std::pair<ByteCount, std::uint32_t> rows[] = {{0, 0},   {1, 1},     {256, 1},
                                                      {257, 2}, {4136, 17}, {12'408, 49}};
  for (const auto& [bytes, units] : rows) {
    ReceiverCounters counters;
    counters.on_data(bytes);
    EXPECT_EQ(counters.rcvd_units(), units);
  }
  ReceiverCounters counters;
  counters.on_data((ByteCount{1} << 32) + 300);
  EXPECT_EQ(counters.rcvd_units(), 2u);
}

TEST(WireCounter, units_ahead__is_serial) {
  EXPECT_EQ(units_ahead(0x10, 0xff'fff0), 0x20u);
  EXPECT_EQ(units_ahead(0xff'fff0, 0x10), 0u);
  EXPECT_EQ(units_ahead(5, 5), 0u);
}

TEST(ServiceTime, in_units_with_overflow) {
  EXPECT_EQ(service_time_units(Duration::from_ns(-1)), 0);
  EXPECT_EQ(service_time_units(Duration::from_ns(127)), 0);
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

TEST(Tfc, cells_in_use_never_exceed_the_pool) {
  auto config = hand_config(Algorithm::kTfc);
  config.tfc_pool_cells = 64;
  config = derived(config);
  base::Rng rng(9);
  TfcSource source(config, Instant());
  TfcPool pool(config);
  std::vector<ByteCount> network, stored;
  std::uint64_t consumed = 0;
  for (int i = 0; i < 200'000; ++i) {
    const ByteCount bytes = 64 + rng.below(4000);
    switch (rng.below(4)) {
      case 0:
        if (source.may_send(bytes)) {
          source.on_send(Instant(), bytes);
          network.push_back(bytes);
        }
        break;
      case 1:
        if (network.empty()) break;
        if (rng.chance(0.1)) {
          source.on_lost(network.back());
        } else {
          ASSERT_TRUE(pool.on_packet(network.back()));
          stored.push_back(network.back());
        }
        network.pop_back();
        break;
      case 2:
        if (stored.empty()) break;
        pool.on_consumed(stored.back());
        stored.pop_back();
        ++consumed;
        break;
      default:
        if (const auto credit = pool.poll_credit()) source.on_credit(Instant(), *credit);
        if (rng.chance(0.01)) pool.on_request();
    }
    ASSERT_LE(pool.cells_in_use(), pool.pool_cells());
    ASSERT_GE(source.credit_cells(), 0);
  }
  EXPECT_GT(consumed, 10'000u);
}

TEST(Tfc, packet_beyond_the_credit_is_refused) {
  auto config = hand_config(Algorithm::kTfc);
  config.tfc_pool_cells = 1;
  config = derived(config);
  TfcPool pool(config);
  EXPECT_EQ(pool.pool_cells(), 17u);  // never less than one full packet
  EXPECT_TRUE(pool.on_packet(4136));
  EXPECT_FALSE(pool.on_packet(1));
  EXPECT_FALSE(pool.poll_credit().has_value());
  pool.on_consumed(4136);
  EXPECT_EQ(pool.poll_credit(), 34u);
}

class TfcCccTest : public CccTest {
 protected:
  void SetUp() override {
    auto config = hand_config(Algorithm::kTfc);
    config.tfc_pool_cells = 34;
    make(config);
  }
};

TEST_F(TfcCccTest, two_packets_then_credit_is_asked_for) {
  Transmission t[3];
  EXPECT_EQ(ccc_->path_count(), 1u);
  ccc_->on_new_data(now_, 3 * kPacket);
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(ccc_->may_send(kPacket));
    const auto params = ccc_->next_send(now_, nullptr, kPacket);
    EXPECT_EQ(params.ack_request, i == 1);
    ccc_->on_send(now_, t[i], share_, kPacket, params, false);
  }
  EXPECT_FALSE(ccc_->may_send(kPacket));
  ack(t[0], share_, 17);
  now_ = ccc_->next_deadline();
  EXPECT_EQ(ccc_->poll_credit_request(now_), 34u + 17u);
  ccc_->on_credit(now_, 34 + 17);
  EXPECT_TRUE(ccc_->may_send(kPacket));
}

TEST_F(TfcCccTest, lost_packet_gives_its_cells_back) {
  Transmission t[2];
  send(t[0], share_);
  send(t[1], share_);
  EXPECT_EQ(ccc_->state(), CccState::kPending);
  ccc_->on_inferred_loss(now_, t[0], share_, true);
  EXPECT_TRUE(ccc_->may_send(kPacket));
  ack(t[0], share_, 17);  // it had arrived after all
  ccc_->on_new_data(now_, kPacket);
  EXPECT_FALSE(ccc_->may_send(kPacket));
}

}  // namespace
}  // namespace uet::cc
