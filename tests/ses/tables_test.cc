// The tables that everything else stands on.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <set>

#include "ses/iov_list.h"
#include "ses/match_list.h"
#include "ses/slab.h"

namespace uet::ses::testing {
namespace {

TEST(ChunkedPoolTest, acquire__bound_and_oldest_first) {
  ChunkedPool<IovBlock> pool(5, 2);
  std::vector<IovBlock*> taken;
  for (int i = 0; i < 5; ++i) taken.push_back(pool.acquire());
  EXPECT_EQ(pool.acquire(), nullptr);
  EXPECT_EQ(std::set<IovBlock*>(taken.begin(), taken.end()).size(), 5u);
  for (IovBlock* b : taken) EXPECT_EQ(pool.at(b->pool_index), b);
  const PoolRef old = ref_of(*taken[3]);
  pool.release(taken[3]);
  pool.release(taken[1]);
  EXPECT_EQ(pool.find(old), nullptr);
  EXPECT_EQ(pool.acquire(), taken[3]);
  EXPECT_EQ(pool.find(old), nullptr);
  EXPECT_EQ(pool.at(0), nullptr);
  EXPECT_EQ(pool.at(6), nullptr);
}

TEST(SlabTest, blocks__hold_what_they_were_asked_for_and_come_back) {
  Slab slab(100'000, 4096);
  for (const std::size_t n :
       {std::size_t{1}, std::size_t{64}, std::size_t{65}, std::size_t{4096}}) {
    ASSERT_TRUE(slab.reserve(slab.cost_of(n)));
    Block* block = slab.take(n);
    ASSERT_NE(block, nullptr);
    std::fill_n(block->bytes(), n, std::uint8_t{1});
    slab.give_back(block);
    EXPECT_EQ(slab.take(n), block);
    slab.give_back(block);
    slab.unreserve(slab.cost_of(n));
  }
  EXPECT_EQ(slab.reserved(), 0u);
  EXPECT_FALSE(slab.reserve(100'001));
  EXPECT_TRUE(slab.reserve(100'000));
  EXPECT_FALSE(slab.reserve(1));
}

TEST(IovListTest, gather_and_scatter__cross_the_pieces) {
  IovPool pool(2);
  std::vector<std::uint8_t> a(3), b(0), c(5);
  const std::array<iovec, 3> pieces{iovec{a.data(), 3}, iovec{b.data(), 0}, iovec{c.data(), 5}};
  IovList list;
  ASSERT_TRUE(list.assign(pieces, pool));
  const std::array<std::uint8_t, 4> in{1, 2, 3, 4};
  list.scatter(2, in.data(), 4);
  EXPECT_EQ(a[2], 1);
  EXPECT_EQ(c[2], 4);
  std::array<std::uint8_t, 4> out{};
  list.gather(2, out.data(), 4);
  EXPECT_EQ(out, in);
  list.clear(pool);
  EXPECT_EQ(pool.in_use(), 0u);
  const iovec huge[2] = {{a.data(), ~std::size_t{0}}, {a.data(), 2}};
  EXPECT_FALSE(list.assign(huge, pool));
}

/// Hashed matching must give what a plain walk in posting order gives.
TEST(MatchListTest, find__is_the_first_posted_that_accepts) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    base::Rng rng(seed);
    MatchList list(true);
    std::deque<Receive> receives;
    std::vector<Receive*> order;
    const std::uint64_t masks[] = {0, ~0ull, 0xff, 0xff00, 0xf0, 0xffff'0000'0000'0000, 1};
    for (int step = 0; step < 5000; ++step) {
      if (rng.chance(0.52)) {
        Receive& r = receives.emplace_back();
        r.filter.tag = rng.below(64);
        r.filter.ignore = masks[rng.chance(0.7) ? 0 : rng.below(7)];
        if (rng.chance(0.1)) r.filter.job_id = rng.below(2);
        list.post(r);
        order.push_back(&r);
        continue;
      }
      Incoming message;
      message.tag = rng.below(64);
      message.job_id = rng.below(2);
      const auto expected = std::find_if(
          order.begin(), order.end(), [&](const Receive* r) { return r->filter.accepts(message); });
      Receive* found = list.find(message);
      ASSERT_EQ(found, expected == order.end() ? nullptr : *expected);
      if (found == nullptr) continue;
      list.remove(*found);
      order.erase(expected);
    }
    while (Receive* r = list.front()) list.remove(*r);
  }
}

}  // namespace
}  // namespace uet::ses::testing
