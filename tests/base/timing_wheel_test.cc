#include "lib/base/timing_wheel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <vector>

#include "lib/base/rng.h"

namespace uet::base {
namespace {

constexpr Instant at_us(std::int64_t us) {
  return Instant::from_ns(us * 1000);
}

TEST(TimingWheel, empty_wheel_has_no_deadline) {
  TimingWheel wheel;
  EXPECT_TRUE(wheel.next_deadline().is_never());
  wheel.advance(at_us(1'000'000));
  EXPECT_EQ(wheel.pop_due(), nullptr);
}

TEST(TimingWheel, fires_at_the_exact_instant) {
  TimingWheel wheel;
  TimerNode node;
  wheel.schedule(node, Instant::from_ns(1'000'001));
  wheel.advance(Instant::from_ns(1'000'000));
  EXPECT_EQ(wheel.pop_due(), nullptr);
  EXPECT_EQ(wheel.next_deadline(), Instant::from_ns(1'000'001));
  wheel.advance(Instant::from_ns(1'000'001));
  EXPECT_EQ(wheel.pop_due(), &node);
  EXPECT_FALSE(node.is_armed());
}

TEST(TimingWheel, a_deadline_in_the_past_fires_at_once) {
  TimingWheel wheel;
  TimerNode node;
  wheel.advance(at_us(500));
  wheel.schedule(node, at_us(10));
  wheel.advance(at_us(500));
  EXPECT_EQ(wheel.pop_due(), &node);
}

TEST(TimingWheel, restart_moves_and_cancel_removes) {
  TimingWheel wheel;
  TimerNode a, b;
  wheel.schedule(a, at_us(100));
  wheel.schedule(b, at_us(200));
  wheel.schedule(a, at_us(9'000));
  wheel.cancel(b);
  wheel.advance(at_us(300));
  EXPECT_EQ(wheel.pop_due(), nullptr);
  wheel.advance(at_us(9'000));
  EXPECT_EQ(wheel.pop_due(), &a);
  EXPECT_EQ(wheel.pop_due(), nullptr);
}

TEST(TimingWheel, a_due_timer_can_still_be_cancelled) {
  TimingWheel wheel;
  TimerNode a, b;
  wheel.schedule(a, at_us(10));
  wheel.schedule(b, at_us(20));
  wheel.advance(at_us(50));
  EXPECT_EQ(wheel.pop_due(), &a);
  wheel.cancel(b);
  EXPECT_EQ(wheel.pop_due(), nullptr);
  wheel.advance(at_us(51));
  EXPECT_TRUE(wheel.next_deadline().is_never());
}

TEST(TimingWheel, never_is_not_armed) {
  TimingWheel wheel;
  TimerNode node;
  wheel.schedule(node, at_us(5));
  wheel.schedule(node, Instant::never());
  EXPECT_FALSE(node.is_armed());
}

TEST(TimingWheel, years_ahead_work) {
  TimingWheel wheel;
  TimerNode node;
  const Instant far = Instant::from_ns(0) + Duration::from_seconds(100LL * 365 * 86400);
  wheel.schedule(node, far);
  wheel.advance(far - Duration::from_ns(1));
  EXPECT_EQ(wheel.pop_due(), nullptr);
  wheel.advance(far);
  EXPECT_EQ(wheel.pop_due(), &node);
}

// Against a plain list: random starts, restarts and cancels; every timer fires in the step that
// passes its deadline.
TEST(TimingWheel, agrees_with_a_sorted_list) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Rng rng(seed);
    TimingWheel wheel;
    std::deque<TimerNode> nodes(64);
    std::vector<Instant> expected(nodes.size(), Instant::never());
    Instant now = Instant::from_ns(static_cast<std::int64_t>(rng.below(1'000'000'000)));
    wheel.advance(now);
    for (int step = 0; step < 2000; ++step) {
      const std::size_t i = rng.below(static_cast<std::uint32_t>(nodes.size()));
      if (rng.chance(0.8)) {
        const std::int64_t span = std::int64_t{1} << rng.below(36);
        expected[i] = now + Duration::from_ns(
                                static_cast<std::int64_t>(rng.unit() * static_cast<double>(span)));
        wheel.schedule(nodes[i], expected[i]);
      } else {
        expected[i] = Instant::never();
        wheel.cancel(nodes[i]);
      }
      const Instant earliest = *std::min_element(expected.begin(), expected.end());
      ASSERT_LE(wheel.next_deadline(), earliest);
      if (rng.chance(0.5)) {
        now = now + Duration::from_ns(static_cast<std::int64_t>(rng.below(1u << rng.below(31))));
      } else if (!earliest.is_never()) {
        now = std::max(now, wheel.next_deadline());
      }
      wheel.advance(now);
      while (TimerNode* due = wheel.pop_due()) {
        std::size_t k = 0;
        while (&nodes[k] != due) ++k;
        ASSERT_LE(expected[k], now);
        expected[k] = Instant::never();
      }
      for (const Instant e : expected) ASSERT_TRUE(e.is_never() || e > now);
    }
  }
}

}  // namespace
}  // namespace uet::base
