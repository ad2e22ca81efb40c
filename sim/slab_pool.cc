#include "sim/slab_pool.h"

#include <algorithm>

namespace uet::sim {

SlabPool::SlabPool(std::size_t limit, std::size_t packet_bytes)
    : limit_(limit), packet_bytes_(packet_bytes), buffer_bytes_(kHeadroom + packet_bytes) {}

SlabPool::~SlabPool() = default;

void SlabPool::set_exhausted(bool exhausted) {
  exhausted_ = exhausted;
  // What is cached would still be handed out: put it back behind refill().
  while (exhausted_ && cached_ > 0) free_.push_back(cache_[--cached_]);
}

bool SlabPool::refill() {
  if (exhausted_) return false;
  if (free_.empty()) grow();
  if (free_.empty()) {
    has_run_out_ = true;
    return false;
  }
  const std::size_t n = std::min(free_.size(), kCacheSize / 2);
  for (std::size_t i = 0; i < n; ++i) {
    cache_[cached_++] = free_.back();
    free_.pop_back();
  }
  return true;
}

void SlabPool::spill() {
  while (cached_ > kCacheSize / 2) free_.push_back(cache_[--cached_]);
}

void SlabPool::grow() {
  const std::size_t n = std::min(kSlab, limit_ - created_);
  if (n == 0) return;
  slabs_.push_back(std::make_unique_for_overwrite<std::uint8_t[]>(n * buffer_bytes_));
  buffers_.push_back(std::make_unique<net::PacketBuffer[]>(n));
  free_.reserve(created_ + n);
  for (std::size_t i = n; i-- > 0;) {
    net::PacketBuffer& b = buffers_.back()[i];
    b.room = slabs_.back().get() + i * buffer_bytes_;
    b.capacity = static_cast<std::uint32_t>(buffer_bytes_);
    b.pool = this;
    free_.push_back(&b);
  }
  created_ += n;
}

}  // namespace uet::sim
