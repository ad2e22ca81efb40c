// Records of outstanding PSNs, found by PSN. [PDS 4.3]
#include "pds/tx_window.h"

#include <gtest/gtest.h>

#include <vector>

namespace uet::pds {
namespace {

constexpr std::uint32_t kWindow = 1024;  // 32 blocks of 32 records

/// Of the only PDC of its peer.
struct LoneRing : TxRing {
  LoneRing() { further_of_peer = &further; }
  std::uint32_t further = 0;
};

TEST(TxBlockPool, records_keep_their_place_over_the_wrap) {
  TxBlockPool pool(kWindow, 4, 3);
  LoneRing ring;
  const Psn first(0xffff'fff0u);
  for (std::uint32_t i = 0; i < 64; ++i) {
    TxRecord* record = pool.add(ring, first + i);
    ASSERT_NE(record, nullptr);
    record->segment = i;
  }
  for (std::uint32_t i = 0; i < 64; ++i) EXPECT_EQ(pool.at(ring, first + i).segment, i);
}

TEST(TxBlockPool, a_record_begins_without_the_past_of_its_place) {
  TxBlockPool pool(kWindow, 1, 0);
  LoneRing ring;
  TxRecord& old = *pool.add(ring, Psn(3));
  old.rto_cnt = 9;
  old.move(TxEvent::kSent);
  old.move(TxEvent::kRefused);
  pool.remove(ring, Psn(3));
  const TxRecord& fresh = *pool.add(ring, Psn(3) + kWindow);
  EXPECT_EQ(fresh.rto_cnt, 0);
  EXPECT_EQ(fresh.state(), TxState::kUnsent);
  EXPECT_FALSE(fresh.was_refused());
  EXPECT_TRUE(fresh.deadline.is_never());
}

TEST(TxBlockPool, a_block_goes_back_with_its_last_record) {
  TxBlockPool pool(kWindow, 1, 0);
  LoneRing one, other;
  ASSERT_NE(pool.add(one, Psn(0)), nullptr);
  ASSERT_NE(pool.add(one, Psn(1)), nullptr);
  EXPECT_FALSE(pool.can_add(other, Psn(0)));
  EXPECT_EQ(pool.add(other, Psn(0)), nullptr);
  pool.remove(one, Psn(0));
  EXPECT_FALSE(pool.can_add(other, Psn(0)));
  pool.remove(one, Psn(1));
  EXPECT_EQ(pool.in_use(), 0u);
  EXPECT_NE(pool.add(other, Psn(0)), nullptr);
}

TEST(TxBlockPool, can_add__is_true_inside_a_block_that_the_ring_has) {
  TxBlockPool pool(kWindow, 1, 0);
  LoneRing ring;
  ASSERT_NE(pool.add(ring, Psn(0)), nullptr);
  EXPECT_TRUE(pool.can_add(ring, Psn(31)));
  EXPECT_FALSE(pool.can_add(ring, Psn(32)));
}

/// Rings of PDCs of one peer.
struct Peer {
  explicit Peer(TxBlockPool& p) : pool(p) {
    for (TxRing& ring : rings) ring.further_of_peer = &further;
  }
  /// How many blocks one ring gets, as a full one would take them.
  std::uint32_t fill(std::size_t ring) {
    std::uint32_t blocks = 0;
    while (blocks < TxRing::kBlocks && pool.add(rings[ring], Psn(blocks * 32)) != nullptr) ++blocks;
    return blocks;
  }
  TxBlockPool& pool;
  std::uint32_t further = 0;
  std::array<TxRing, 4> rings;
};

TEST(TxBlockPool, the_first_block_of_a_ring_is_left_to_it) {
  TxBlockPool pool(kWindow, 6, 3);
  Peer peer(pool);
  EXPECT_EQ(peer.fill(0), 4u);
  EXPECT_EQ(peer.fill(1), 1u);
  EXPECT_EQ(peer.fill(2), 1u);
  EXPECT_FALSE(pool.can_add(peer.rings[3], Psn(0)));
  pool.remove(peer.rings[0], Psn(0));  // of those that are left one is its first now
  EXPECT_EQ(peer.further, 2u);
  EXPECT_TRUE(pool.can_add(peer.rings[3], Psn(0)));
  EXPECT_TRUE(pool.can_add(peer.rings[1], Psn(32)));
  EXPECT_NE(pool.add(peer.rings[1], Psn(32)), nullptr);
  EXPECT_EQ(peer.further, 3u);
  EXPECT_FALSE(pool.can_add(peer.rings[2], Psn(32)));
}

TEST(TxBlockPool, one_peer_leaves_a_quarter_of_the_further_blocks_to_others) {
  TxBlockPool pool(kWindow, 24, 16);
  Peer many(pool), honest(pool);
  EXPECT_EQ(many.fill(0), 1u + 13);
  EXPECT_EQ(many.fill(1), 1u);
  EXPECT_EQ(honest.fill(0), 1u + 3);
  EXPECT_EQ(honest.fill(1), 1u);
}

// NEW_START_PSN moves the origin; records stay where they are. [PDS 6.5]
TEST(TxBlockPool, moving_the_origin_renumbers_all_records) {
  TxBlockPool pool(kWindow, 2, 1);
  LoneRing ring;
  for (std::uint32_t i = 0; i < 40; ++i) pool.add(ring, Psn(100) + i)->segment = i;
  const std::uint32_t delta = 0x8765'4321u;
  ring.origin = ring.origin + delta;
  for (std::uint32_t i = 0; i < 40; ++i) EXPECT_EQ(pool.at(ring, Psn(100) + delta + i).segment, i);
}

}  // namespace
}  // namespace uet::pds
