// Hosts on the link choose addresses that collide. Look-ups must stay as short as with addresses drawn by chance.
#include <gtest/gtest.h>

#include "lib/net/neighbor_table.h"
#include "tests/net/colliding_addresses.h"

namespace uet::net::test {
namespace {

TEST(ChosenKeys, neighbors) {
  const NeighborConfig config;
  NeighborTable neighbors(config, base::HashKey(base::Rng(1)));
  for (std::size_t i = 0; i < config.max_neighbors; ++i)
    ASSERT_NE(neighbors.find_or_start(Instant{}, colliding(i)), nullptr);
  EXPECT_LE(neighbors.longest_chain(), 16u);
}

}  // namespace
}  // namespace uet::net::test
