#include "pds/tx_window.h"

#include <algorithm>
#include <bit>
#include <new>

#include "lib/base/check.h"

namespace uet::pds {

TxBlockPool::TxBlockPool(std::uint32_t window, std::uint32_t blocks, std::uint32_t further)
    : ring_size_(std::bit_ceil(std::max<std::uint32_t>(window, 32))),
      // At least 32 records a block: a block is then a few cache pages and the directory stays at
      // 32 entries.
      block_size_(std::max<std::uint32_t>(32, ring_size_ / TxRing::kBlocks)),
      block_shift_(static_cast<unsigned>(std::countr_zero(block_size_))),
      block_count_(std::min<std::uint32_t>(blocks, TxRing::kNoBlock)),
      further_(std::min(further, block_count_)),
      records_(static_cast<TxRecord*>(
          ::operator new (sizeof(TxRecord) * block_count_ * static_cast<std::size_t>(block_size_),
                          std::align_val_t{64}))),
      heads_(new BlockHead[block_count_]) {}

bool TxBlockPool::may_grow(const TxRing& ring) const {
  constexpr std::uint32_t kFactor = 3;
  if (free_blocks() == 0) return false;
  if (ring.held == 0) return true;
  const std::uint32_t left = further_ - further_in_use_;
  return left > 0 && *ring.further_of_peer <= kFactor * left;
}

std::uint16_t TxBlockPool::acquire_block(TxRing& ring) {
  std::uint16_t block = free_head_;
  if (block != TxRing::kNoBlock)
    free_head_ = heads_[block].next_free;
  else
    block = static_cast<std::uint16_t>(fresh_++);
  heads_[block].live = 0;
  ++blocks_in_use_;
  if (ring.held++ > 0) {
    ++further_in_use_;
    ++*ring.further_of_peer;
  }
  return block;
}

/// Its last record is gone: the ring holds it no more.
void TxBlockPool::release_block(TxRing& ring, std::uint16_t& block) {
  --blocks_in_use_;
  if (--ring.held > 0) {
    --further_in_use_;
    --*ring.further_of_peer;
  }
  heads_[block].next_free = free_head_;
  free_head_ = block;
  block = TxRing::kNoBlock;
}

}  // namespace uet::pds
