#include "ses/slab.h"

#include <bit>
#include <new>

#include "lib/base/check.h"

namespace uet::ses {

Slab::Slab(std::size_t max_bytes, std::size_t max_block, std::size_t min_block)
    : max_bytes_(max_bytes),
      max_block_(max_block),
      min_block_((min_block + alignof(Block) - 1) / alignof(Block) * alignof(Block)) {
  UET_CHECK(class_for(max_block) < kClasses);
}

Slab::~Slab() = default;

bool Slab::reserve(std::size_t cost) {
  if (cost > max_bytes_ - reserved_) return false;
  reserved_ += cost;
  return true;
}

Block* Slab::take(std::size_t length) {
  UET_DCHECK(length <= max_block_);
  const std::size_t size_class = class_for(length);
  if (free_[size_class] == nullptr && !grow(size_class)) return nullptr;
  Block* block = free_[size_class];
  free_[size_class] = block->next;
  block->next = nullptr;
  return block;
}

void Slab::give_back(Block* block) {
  block->next = free_[block->size_class];
  free_[block->size_class] = block;
}

void Slab::give_back_chain(Block* first) {
  while (first != nullptr) {
    Block* next = first->next;
    give_back(first);
    first = next;
  }
}

std::size_t Slab::class_for(std::size_t length) const {
  if (length <= min_block_) return 0;
  return static_cast<std::size_t>(std::bit_width((length - 1) / min_block_));
}

bool Slab::grow(std::size_t size_class) {
  const std::size_t stride = stride_of(size_class);
  const std::size_t count = stride < kChunkBytes ? kChunkBytes / stride : 1;
  // Blocks of one size are never cut up for another, so different sizes wanted at different times
  // may together need more than what is reserved now. Twice the budget is where that ends.
  if (allocated_ + count * stride > 2 * max_bytes_ + kClasses * kChunkBytes) return false;
  auto* chunk = new (std::nothrow) std::uint8_t[count * stride];
  if (chunk == nullptr) return false;
  chunks_.emplace_back(chunk);
  allocated_ += count * stride;
  for (std::size_t i = 0; i < count; ++i) {
    Block* block = new (chunk + i * stride) Block;
    block->size_class = static_cast<std::uint32_t>(size_class);
    give_back(block);
  }
  return true;
}

}  // namespace uet::ses
