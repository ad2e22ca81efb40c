// Peers choose addresses, identifiers and PSNs so that they collide. Look-ups must stay as short as with keys drawn by chance.
#include "pds/nack_limiter.h"
#include "pds/pdc_table.h"
#include "pds/peer_shares.h"
#include "pds/response_store.h"
#include "pds/tombstones.h"
#include "tests/net/colliding_addresses.h"
#include "tests/pds/open_pdc.h"

namespace uet::pds::test {
namespace {

using net::test::colliding;
const base::HashKey kKey{base::Rng(1)};
/// With as many keys as places; drawn by chance, the longest has seven or eight.
constexpr std::uint32_t kLongest = 16;

TEST(ChosenKeys, the_addresses_do_collide) {
  EXPECT_EQ(colliding(1).hash(), colliding(4711).hash());
  EXPECT_NE(colliding(1), colliding(4711));
}

TEST(ChosenKeys, pdc_table) {
  constexpr std::uint32_t kMany = 1024;
  base::Rng rng(1);
  PdcTable table(kMany, Duration{}, 0, rng, kKey);
  for (std::uint32_t i = 0; i < kMany - 64; ++i) {
    Pdc* pdc = table.allocate(Instant{});
    ASSERT_NE(pdc, nullptr);
    pdc->peer = colliding(i);
    pdc->peer_id = 1;
    pdc->start = Psn(77);
    pdc->is_initiator = false;
    table.index_target(*pdc);
    EXPECT_EQ(table.find_target(pdc->peer, 1, Psn(77)), pdc);
  }
  EXPECT_LE(table.longest_chain(), kLongest);
  for (PdcOrderList& all = table.in_order(); !all.empty();) {
    Pdc& pdc = all.front();
    table.unindex_target(pdc);
    table.release(Instant{}, pdc, Psn(77));
  }
}

TEST(ChosenKeys, tombstones_and_shares) {
  constexpr std::uint32_t kMany = 4096;
  Tombstones stones(kMany, Duration::from_seconds(2), kKey);
  PeerShares shares(kMany, kKey);
  for (std::uint32_t i = 0; i < kMany; ++i) {
    stones.add(Instant{}, colliding(i), 1, Psn(77));
    shares.join(colliding(i), Role::kTarget);
  }
  EXPECT_LE(stones.longest_chain(), kLongest);
  EXPECT_LE(shares.longest_chain(), kLongest);
}

// The PSNs of 16 PDCs that a function without a key puts into one bucket: a search of milliseconds finds them.
TEST(ChosenKeys, stored_answers) {
  constexpr std::uint32_t kMany = 1024;
  ResponseStore store(kMany, 16, 0, kKey);
  for (std::uint64_t i = 0; store.kept() < kMany; ++i) {
    const std::uint32_t owner = i % 16, psn = static_cast<std::uint32_t>(i / 16);
    if ((base::mix(std::uint64_t{owner} << 32 | psn) & (kMany - 1)) == 0)
      store.add(owner, Psn(psn), RxRecord::State::kStored, {});
  }
  EXPECT_LE(store.longest_chain(), kLongest);
}

// Who shares the four places of a victim can take its count of NACKs away, and with that its limit.
TEST(ChosenKeys, nack_limiter) {
  NackLimiter limiter(1024, 1, 1, kKey);
  const Instant now = Instant::from_ns(5'000'000'000);
  EXPECT_TRUE(limiter.allow(now, colliding(0)));
  for (std::uint32_t i = 1; i <= 64; ++i) limiter.allow(now + us(i), colliding(i));
  EXPECT_FALSE(limiter.allow(now + us(100), colliding(0)));
}

}  // namespace
}  // namespace uet::pds::test
