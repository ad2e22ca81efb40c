#include "lib/base/fixed_pool.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "lib/base/rng.h"

namespace uet::base {
namespace {

struct Item {
  explicit Item(int k = 0) : key(k) { ++alive; }
  ~Item() { --alive; }
  int key;
  std::uint32_t next = 0;
  static inline int alive = 0;
};

TEST(FixedPool, acquire__makes_objects_up_to_the_capacity_and_release_destroys_them) {
  Item::alive = 0;
  FixedPool<Item> pool(3);
  Item* a = pool.acquire(1);
  Item* b = pool.acquire(2);
  Item* c = pool.acquire(3);
  EXPECT_TRUE(pool.is_full());
  EXPECT_EQ(pool.acquire(4), nullptr);
  EXPECT_EQ(Item::alive, 3);
  EXPECT_EQ(&pool.at(pool.index_of(b)), b);
  pool.release(a);
  pool.release(b);
  EXPECT_EQ(Item::alive, 1);
  EXPECT_EQ(pool.acquire(5), b);  // freed last, used next
  EXPECT_EQ(b->key, 5);
  pool.release(b);
  pool.release(c);
  EXPECT_EQ(pool.in_use(), 0u);
}

// Against a set, with so few buckets that every chain has several objects.
TEST(PoolIndex, finds_what_is_in_it_and_nothing_else) {
  constexpr int kKeys = 200;
  FixedPool<Item> pool(kKeys);
  PoolIndex<Item, &Item::next> index(pool, 16);
  std::set<int> model;
  Rng rng(3);
  const auto find = [&](int key) {
    return index.find(static_cast<std::size_t>(key % 7),
                      [&](const Item& i) { return i.key == key; });
  };
  for (int step = 0; step < 5000; ++step) {
    const int key = static_cast<int>(rng.below(kKeys));
    Item* item = find(key);
    ASSERT_EQ(item != nullptr, model.contains(key));
    if (item == nullptr) {
      index.insert(static_cast<std::size_t>(key % 7), *pool.acquire(key));
      model.insert(key);
    } else {
      index.erase(static_cast<std::size_t>(key % 7), *item);
      pool.release(item);
      model.erase(key);
    }
  }
  std::set<int> seen;
  index.for_each([&](const Item& item) { EXPECT_TRUE(seen.insert(item.key).second); });
  EXPECT_EQ(seen, model);
  EXPECT_GT(index.longest_chain(), 1u);
}

}  // namespace
}  // namespace uet::base
