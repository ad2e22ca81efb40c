#include "sim/output_queue.h"

#include <gtest/gtest.h>

#include "sim/simulation.h"

namespace uet::sim {
namespace {

constexpr std::uint32_t kFull = 4150;

class OutputQueueTest : public testing::Test {
 protected:
  OutputQueueTest() : simulation(1, 4096, 4200) { model.size = WireModel::Size::kModel; }

  Frame* data(std::uint32_t bytes = kFull) {
    Frame* f = simulation.frames.acquire();
    f->rx.packet = simulation.packets_pool.allocate();
    f->rx.packet.append(4000);
    f->rx.tos = net::TosByte::of(model.dscp.trimmable, 2);
    f->wire_bytes = bytes;
    f->traffic_class = TrafficClass::kData;
    f->trimmable = true;
    return f;
  }
  Frame* control() {
    Frame* f = data(64);
    f->rx.tos = net::TosByte::of(model.dscp.control, 0);
    f->traffic_class = TrafficClass::kControl;
    f->trimmable = false;
    return f;
  }
  Frame* take(OutputQueue& q) {
    q.begin();
    return q.finish(rng);
  }
  void drain(OutputQueue& q) {
    while (!q.is_empty()) simulation.frames.release(take(q));
  }
  QueueConfig config(std::int64_t packets, bool trimming) {
    QueueConfig c;
    c.data_limit_bytes = packets * kFull;
    c.control_limit_bytes = 2 * c.data_limit_bytes + kFull;
    c.trimming = trimming;
    return c;
  }

  Simulation simulation;
  WireModel model;
  base::Rng rng{3};
};

TEST_F(OutputQueueTest, control_leaves_before_data) {
  OutputQueue q(config(10, true), model);
  q.push(data(), rng, simulation.frames);
  q.push(control(), rng, simulation.frames);
  Frame* first = take(q);
  EXPECT_EQ(first->traffic_class, TrafficClass::kControl);
  simulation.frames.release(first);
  drain(q);
  EXPECT_EQ(simulation.frames.in_use(), 0u);
}

TEST_F(OutputQueueTest, full_queue_cuts_arriving_or_newest_with_equal_chance) {
  int newest_cut = 0;
  constexpr int kRounds = 2000;
  for (int i = 0; i < kRounds; ++i) {
    OutputQueue q(config(3, true), model);
    Frame* frames[4];
    for (Frame*& f : frames) {
      f = data();
      q.push(f, rng, simulation.frames);
    }
    ASSERT_EQ(q.counters().trims, 1u);
    ASSERT_NE(frames[2]->trimmed, frames[3]->trimmed);
    if (frames[2]->trimmed) ++newest_cut;
    ASSERT_EQ(q.data_bytes(), 3 * kFull);
    ASSERT_EQ(q.control_bytes(), 64);
    drain(q);
  }
  EXPECT_NEAR(newest_cut, kRounds / 2, 100);
}

TEST_F(OutputQueueTest, trimmed_packet_keeps_headers_and_says_so) {
  OutputQueue q(config(0, true), model);
  Frame* f = data();
  q.push(f, rng, simulation.frames);
  EXPECT_TRUE(f->trimmed);
  EXPECT_EQ(f->wire_bytes, 64u);
  EXPECT_EQ(f->rx.packet.size(), WireModel::kTrimmedBytes);
  EXPECT_EQ(f->rx.tos.dscp(), model.dscp.trimmed);
  EXPECT_EQ(f->rx.tos.ecn(), 2);
  drain(q);
}

TEST_F(OutputQueueTest, last_hop_is_named_in_trimmed_packets) {
  QueueConfig c = config(0, true);
  c.last_hop = true;
  OutputQueue q(c, model);
  Frame* f = data();
  q.push(f, rng, simulation.frames);
  EXPECT_EQ(f->rx.tos.dscp(), model.dscp.trimmed_last_hop);
  drain(q);
}

TEST_F(OutputQueueTest, without_trimming_the_packet_is_dropped) {
  OutputQueue q(config(2, false), model);
  for (int i = 0; i < 5; ++i) q.push(data(), rng, simulation.frames);
  EXPECT_EQ(q.counters().drops_data, 3u);
  EXPECT_EQ(q.data_bytes(), 2 * kFull);
  drain(q);
  EXPECT_EQ(simulation.frames.in_use(), 0u);
  EXPECT_EQ(simulation.packets_pool.in_use(), 0u);
}

TEST_F(OutputQueueTest, untrimmable_data_is_dropped_even_with_trimming) {
  OutputQueue q(config(0, true), model);
  Frame* f = data();
  f->trimmable = false;
  q.push(f, rng, simulation.frames);
  EXPECT_EQ(q.counters().drops_data, 1u);
  EXPECT_TRUE(q.is_empty());
}

TEST_F(OutputQueueTest, control_fifo_is_bounded_too) {
  QueueConfig c = config(1, true);
  c.control_limit_bytes = 128;
  OutputQueue q(c, model);
  for (int i = 0; i < 3; ++i) q.push(control(), rng, simulation.frames);
  EXPECT_EQ(q.counters().drops_control, 1u);
  drain(q);
}

TEST_F(OutputQueueTest, packet_being_sent_is_never_cut) {
  OutputQueue q(config(1, true), model);
  Frame* first = data();
  q.push(first, rng, simulation.frames);
  q.begin();
  for (int i = 0; i < 20; ++i) q.push(data(), rng, simulation.frames);
  EXPECT_FALSE(first->trimmed);
  EXPECT_EQ(q.finish(rng), first);
  simulation.frames.release(first);
  drain(q);
}

TEST_F(OutputQueueTest, marks_grow_linearly_between_thresholds) {
  // Queue left behind of 0, 5, 10, 15 and 20 packets, thresholds at 5 and 15.
  QueueConfig c = config(100, true);
  c.marking = true;
  c.ecn_low_bytes = 5 * kFull;
  c.ecn_high_bytes = 15 * kFull;
  const auto marked_share = [&](int left_behind) {
    int marked = 0;
    constexpr int kRounds = 2000;
    for (int i = 0; i < kRounds; ++i) {
      OutputQueue q(c, model);
      for (int k = 0; k <= left_behind; ++k) q.push(data(), rng, simulation.frames);
      Frame* f = take(q);
      if (f->rx.tos.is_congestion_experienced()) ++marked;
      simulation.frames.release(f);
      drain(q);
    }
    return static_cast<double>(marked) / kRounds;
  };
  EXPECT_EQ(marked_share(0), 0);
  EXPECT_EQ(marked_share(5), 0);
  EXPECT_NEAR(marked_share(8), 0.3, 0.04);
  EXPECT_NEAR(marked_share(10), 0.5, 0.04);
  EXPECT_EQ(marked_share(16), 1);
}

TEST_F(OutputQueueTest, control_and_unmarkable_packets_are_not_marked) {
  QueueConfig c = config(100, true);
  c.marking = true;
  OutputQueue q(c, model);
  Frame* old_sender = data();
  old_sender->rx.tos = net::TosByte::of(model.dscp.trimmable, 0);
  Frame* ack = control();
  q.push(ack, rng, simulation.frames);
  q.push(old_sender, rng, simulation.frames);
  for (int i = 0; i < 3; ++i) q.push(data(), rng, simulation.frames);
  take(q);
  take(q);
  EXPECT_EQ(ack->rx.tos.ecn(), 0);
  EXPECT_EQ(old_sender->rx.tos.ecn(), 0);
  simulation.frames.release(ack);
  simulation.frames.release(old_sender);
  drain(q);
}

TEST_F(OutputQueueTest, scaled__limits_follow_the_speed) {
  QueueConfig c = config(100, true);
  c.ecn_low_bytes = 4000;
  c.ecn_high_bytes = 8000;
  const QueueConfig q = c.scaled(0.25);
  EXPECT_EQ(q.data_limit_bytes, 25 * kFull);
  EXPECT_EQ(q.ecn_low_bytes, 1000);
  EXPECT_EQ(q.ecn_high_bytes, 2000);
  EXPECT_EQ(QueueConfig{}.scaled(0.25).data_limit_bytes, QueueConfig::kUnlimited);
}

}  // namespace
}  // namespace uet::sim
