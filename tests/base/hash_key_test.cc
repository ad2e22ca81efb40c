// Keys chosen by an attacker who knows the function and not the secret.
#include "lib/base/hash_key.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <set>
#include <vector>

namespace uet::base {
namespace {

using Words = std::array<std::uint64_t, 3>;
using Keys = std::vector<Words>;

std::size_t longest_chain(const HashKey& key, const Keys& keys) {
  std::vector<std::size_t> buckets(std::size_t{1} << 12);
  for (const auto& [a, b, c] : keys) ++buckets[key(a, b, c) & (buckets.size() - 1)];
  return *std::max_element(buckets.begin(), buckets.end());
}

Keys made_by(const std::function<Words(std::uint64_t)>& make) {
  Keys keys;
  for (std::uint64_t i = 0; i < 4096; ++i) keys.push_back(make(i));
  return keys;
}

// As many keys as buckets: drawn by chance, the fullest has seven or eight.
TEST(HashKey, chosen_keys_are_spread) {
  const Keys patterns[] = {
      made_by([](std::uint64_t i) {
        return Words{i, 0, 0};
      }),
      made_by([](std::uint64_t i) {
        return Words{i << 52, 0, i << 52};
      }),
      made_by([](std::uint64_t i) {
        return Words{i << 32 | i, ~i, i << 32};
      }),
      made_by([](std::uint64_t i) {
        return Words{7, i << 12, i << 20};
      }),
      // What collided in all 64 bits when addresses were hashed without a key.
      made_by([](std::uint64_t i) {
        return Words{i, 0x1234 ^ (i * 0x9e3779b97f4a7c15ULL), 9};
      }),
  };
  for (std::uint64_t seed = 1; seed <= 20; ++seed)
    for (const Keys& keys : patterns) EXPECT_LE(longest_chain(HashKey(Rng(seed)), keys), 16u);
}

TEST(HashKey, one_word) {
  const HashKey key{Rng(1)};
  std::vector<std::size_t> buckets(1024);
  for (std::uint64_t i = 0; i < 1024; ++i) ++buckets[key(i << 32 | 5000) & 1023];
  EXPECT_LE(*std::max_element(buckets.begin(), buckets.end()), 16u);
}

TEST(HashKey, another_seed_is_another_function_and_the_rng_goes_on_as_before) {
  std::set<std::size_t> results;
  for (std::uint64_t seed = 1; seed <= 100; ++seed) results.insert(HashKey(Rng(seed))(1, 2, 3));
  EXPECT_GE(results.size(), 99u);
  Rng used(5), fresh(5);
  (void)HashKey(used);
  EXPECT_EQ(used.next_u64(), fresh.next_u64());
  EXPECT_EQ(HashKey(Rng(5))(1, 2, 3), HashKey(Rng(5))(1, 2, 3));
}

}  // namespace
}  // namespace uet::base
