// Several ports behind one address: which planes are worth a packet, and how one leaves and returns.

#include <gtest/gtest.h>

#include "cc/ccc.h"
#include "cc/path_table.h"

namespace uet::cc {
namespace {

class PlanesTest : public testing::Test {
 protected:
  void make(std::uint8_t planes, std::uint32_t size) {
    config_.planes = planes;
    config_.trimming = true;
    table_.emplace(config_, size, true, rng_, trace_);
  }
  void lose(std::uint32_t index) {
    table_->on_feedback(now_, index, PathFeedback::kTimeout, Duration::from_us(10), now_);
  }
  void answer(std::uint32_t index, Instant sent) {
    table_->on_delivered(index, sent, Duration::from_us(10));
    table_->on_answered(now_, index, sent);
  }
  void wait(Duration time) { now_ = now_ + time; }
  std::uint32_t in_state(std::uint8_t plane, PathState state) const {
    std::uint32_t n = 0;
    for (std::uint32_t i = 0; i < table_->size(); ++i)
      n += table_->plane(i) == plane && table_->state(i, now_) == state ? 1 : 0;
    return n;
  }

  CcConfig config_;
  base::Rng rng_{1};
  base::Trace trace_{16};
  std::optional<PathTable> table_;
  Instant now_ = Instant::from_ns(1'000'000'000);
};

TEST_F(PlanesTest, link__is_lost_all_paths_of_the_plane_rest_and_return_with_one_packet_each) {
  make(2, 8);
  table_->on_planes_changed(now_, 0b01);
  EXPECT_EQ(in_state(1, PathState::kEvicted), 4u);
  EXPECT_EQ(in_state(0, PathState::kGood), 4u);
  EXPECT_EQ(table_->healthy_planes(now_), 0b01);
  wait(Duration::from_seconds(2));
  EXPECT_EQ(table_->healthy_planes(now_), 0b01) << "however long it takes";

  table_->on_planes_changed(now_, 0b11);
  EXPECT_EQ(in_state(1, PathState::kReturning), 4u);
  EXPECT_EQ(table_->healthy_planes(now_), 0b11);
  const PathRequest request{.now = now_, .free_planes = 0b10, .avoid_entropy = {}};
  EXPECT_TRUE(table_->usable(1, request));
  table_->on_sent(now_, 1);
  EXPECT_FALSE(table_->usable(1, request)) << "one packet is out";
  const Instant sent = now_;
  wait(Duration::from_us(10));
  answer(1, sent);
  EXPECT_EQ(in_state(1, PathState::kGood), 1u);
  EXPECT_EQ(in_state(1, PathState::kReturning), 3u);
}

TEST_F(PlanesTest, eviction__a_whole_plane_may_go_but_only_three_quarters_of_the_best) {
  make(2, 16);
  for (std::uint32_t i = 1; i < 16; i += 2) lose(i);
  wait(Duration::from_ms(2));  // the caution is over
  EXPECT_EQ(in_state(1, PathState::kEvicted), 8u);
  for (std::uint32_t i = 0; i < 16; i += 2) lose(i);
  EXPECT_EQ(in_state(1, PathState::kEvicted), 8u) << "a dead plane is not released";
  EXPECT_EQ(in_state(0, PathState::kEvicted) + in_state(0, PathState::kReturning), 6u);
  EXPECT_EQ(in_state(0, PathState::kGood), 2u);
}

TEST_F(PlanesTest, healthy_planes__leaves_out_a_plane_without_a_usable_path_until_one_may_try) {
  make(2, 8);
  for (std::uint32_t i = 1; i < 8; i += 2) lose(i);
  wait(Duration::from_ms(2));
  EXPECT_EQ(table_->healthy_planes(now_), 0b01);
  wait(config_.evict_time);
  EXPECT_EQ(table_->healthy_planes(now_), 0b11);
}

TEST_F(PlanesTest, healthy_planes__while_a_loss_is_fresh_only_planes_that_delivered_since) {
  make(2, 8);
  lose(1);
  EXPECT_EQ(table_->healthy_planes(now_), 0) << "nothing has arrived since";
  const Instant sent = now_ + Duration::from_ns(1);
  wait(Duration::from_us(10));
  answer(2, sent);
  EXPECT_EQ(table_->healthy_planes(now_), 0b01);
}

TEST_F(PlanesTest, rebase__a_single_path_moves_to_the_next_plane_that_is_free) {
  make(3, 1);
  for (int i = 0; i < 20; ++i) {
    const auto before = table_->plane(0);
    table_->rebase(rng_, 0b111);
    EXPECT_EQ(table_->plane(0), (before + 1) % 3);
  }
  table_->rebase(rng_, 0b010);
  EXPECT_EQ(table_->plane(0), 1);
  table_->rebase(rng_, 0b010);
  EXPECT_EQ(table_->plane(0), 1);
}

TEST_F(PlanesTest, worthwhile_planes__without_a_healthy_one_any_free_one_will_do) {
  config_.planes = 2;
  config_.paths = 8;
  config_.load_balancing = LoadBalancing::kBitmap;
  const CcConfig complete = derived(config_);
  Ccc ccc(complete, 1, true, {}, rng_, trace_, now_);
  EXPECT_EQ(ccc.worthwhile_planes(now_, 0b10), 0b10);
  ccc.on_planes_changed(now_, 0b01);
  EXPECT_EQ(ccc.worthwhile_planes(now_, 0b10), 0) << "wait for plane 0";
  EXPECT_EQ(ccc.worthwhile_planes(now_, 0b11), 0b01);
  ccc.on_planes_changed(now_, 0);
  EXPECT_EQ(ccc.worthwhile_planes(now_, 0b10), 0b10) << "nothing is healthy";
}

}  // namespace
}  // namespace uet::cc
