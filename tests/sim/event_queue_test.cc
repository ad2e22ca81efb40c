#include "sim/event_queue.h"

#include <gtest/gtest.h>

#include <vector>

#include "lib/base/rng.h"

namespace uet::sim {
namespace {

class Recorder final : public EventHandler {
 public:
  void on_event(std::uint32_t kind, void*) override { kinds.push_back(kind); }
  std::vector<std::uint32_t> kinds;
};

TEST(EventQueueTest, events_run_in_order_of_time) {
  EventQueue queue;
  Recorder r;
  queue.schedule(SimTime::from_ps(30), r, 3);
  queue.schedule(SimTime::from_ps(10), r, 1);
  queue.schedule(SimTime::from_ps(20), r, 2);
  queue.run_until(SimTime::never());
  EXPECT_EQ(r.kinds, (std::vector<std::uint32_t>{1, 2, 3}));
  EXPECT_EQ(queue.now(), SimTime::from_ps(30));
}

TEST(EventQueueTest, equal_times_run_first_in_first_out) {
  EventQueue queue;
  Recorder r;
  std::vector<std::uint32_t> expected;
  for (std::uint32_t i = 0; i < 1000; ++i) {
    queue.schedule(SimTime::from_ps(7), r, i);
    expected.push_back(i);
  }
  queue.run_until(SimTime::never());
  EXPECT_EQ(r.kinds, expected);
}

TEST(EventQueueTest, many_random_times_come_out_sorted) {
  EventQueue queue;
  base::Rng rng(5);
  std::vector<std::int64_t> seen;
  class Times final : public EventHandler {
   public:
    Times(EventQueue& q, std::vector<std::int64_t>& out) : q_(q), out_(out) {}
    void on_event(std::uint32_t, void*) override { out_.push_back(q_.now().ps()); }
    EventQueue& q_;
    std::vector<std::int64_t>& out_;
  } times(queue, seen);
  for (int i = 0; i < 5000; ++i) queue.schedule(SimTime::from_ps(rng.below(100000)), times, 0);
  queue.run_until(SimTime::never());
  EXPECT_EQ(seen.size(), 5000u);
  EXPECT_TRUE(std::is_sorted(seen.begin(), seen.end()));
}

TEST(EventQueueTest, run_until__stops_the_clock_there) {
  EventQueue queue;
  Recorder r;
  queue.schedule(SimTime::from_ps(10), r, 1);
  queue.schedule(SimTime::from_ps(11), r, 2);
  queue.run_until(SimTime::from_ps(10));
  EXPECT_EQ(r.kinds.size(), 1u);
  EXPECT_EQ(queue.now(), SimTime::from_ps(10));
  EXPECT_EQ(queue.next_at(), SimTime::from_ps(11));
}

TEST(EventQueueTest, calls_may_schedule_calls) {
  EventQueue queue;
  int depth = 0;
  std::function<void()> again = [&] {
    if (++depth < 100) queue.call_at(queue.now() + SimSpan::from_ps(1), again);
  };
  queue.call_at(SimTime::from_ps(1), again);
  queue.run_until(SimTime::never());
  EXPECT_EQ(depth, 100);
  EXPECT_EQ(queue.now(), SimTime::from_ps(100));
}

}  // namespace
}  // namespace uet::sim
