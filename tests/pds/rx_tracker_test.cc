// What a destination knows of PSNs above CACK. [PDS 4.4, 7.3]
#include "pds/rx_tracker.h"

#include <gtest/gtest.h>

#include <set>

namespace uet::pds {
namespace {

constexpr std::uint32_t kWindow = 128;

TEST(RxTracker, planes_do_not_share_bits) {
  RxTrackerPool pool(kWindow, 1);
  RxTracker& t = *pool.acquire();
  t.set(RxTracker::kReceived, Psn(5));
  EXPECT_TRUE(t.test(RxTracker::kReceived, Psn(5)));
  EXPECT_FALSE(t.test(RxTracker::kAnswered, Psn(5)));
  EXPECT_FALSE(t.test(RxTracker::kStored, Psn(5)));
  EXPECT_FALSE(t.test(RxTracker::kReceived, Psn(6)));
}

TEST(RxTracker, clear_all__takes_one_psn_out_of_every_plane) {
  RxTrackerPool pool(kWindow, 1);
  RxTracker& t = *pool.acquire();
  for (const auto plane : {RxTracker::kReceived, RxTracker::kAnswered, RxTracker::kStored})
    for (const Psn psn : {Psn(7), Psn(8)}) t.set(plane, psn);
  t.clear_all(Psn(7));
  for (const auto plane : {RxTracker::kReceived, RxTracker::kAnswered, RxTracker::kStored}) {
    EXPECT_FALSE(t.test(plane, Psn(7)));
    EXPECT_TRUE(t.test(plane, Psn(8)));
  }
}

// Covers: PDS-9, PDS-52
TEST(RxTracker, window64__starts_at_any_psn_and_crosses_the_wrap) {
  RxTrackerPool pool(kWindow, 1);
  for (const std::uint32_t base : {0u, 1u, 63u, 64u, 1000u, 0xffff'ffe0u, 0xffff'ffffu}) {
    RxTracker& t = *pool.acquire();
    const std::set<unsigned> received = {0, 1, 31, 32, 62, 63};
    for (const unsigned bit : received) t.set(RxTracker::kReceived, Psn(base) + bit);
    std::uint64_t expected = 0;
    for (const unsigned bit : received) expected |= std::uint64_t{1} << bit;
    EXPECT_EQ(t.window64(RxTracker::kReceived, Psn(base)), expected) << base;
    pool.release(&t);
  }
}

TEST(RxTracker, window64__at_the_end_of_the_window_shows_nothing_of_its_beginning) {
  RxTrackerPool pool(kWindow, 1);
  RxTracker& t = *pool.acquire();
  const Psn cack(1000);
  for (unsigned i = 1; i <= kWindow; ++i) t.set(RxTracker::kReceived, cack + i);
  EXPECT_EQ(t.window64(RxTracker::kReceived, cack + kWindow), 1u);
}

TEST(RxTrackerPool, a_tracker_comes_back_empty_and_the_pool_is_bounded) {
  RxTrackerPool pool(kWindow, 2);
  RxTracker* first = pool.acquire();
  ASSERT_NE(pool.acquire(), nullptr);
  EXPECT_TRUE(pool.is_exhausted());
  EXPECT_EQ(pool.acquire(), nullptr);
  first->set(RxTracker::kStored, Psn(77));
  pool.release(first);
  EXPECT_EQ(pool.in_use(), 1u);
  RxTracker* again = pool.acquire();
  ASSERT_NE(again, nullptr);
  EXPECT_FALSE(again->test(RxTracker::kStored, Psn(77)));
}

}  // namespace
}  // namespace uet::pds
