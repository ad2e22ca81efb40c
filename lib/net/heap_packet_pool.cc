#include "lib/net/heap_packet_pool.h"

#include <algorithm>
#include <new>

namespace uet::net {

namespace {

constexpr std::size_t kCacheLine = 64;
// Half of the cache per exchange: a pool that swings around one level does not exchange on every
// packet.
constexpr std::size_t kExchange = PacketPool::kCacheSize / 2;

constexpr std::size_t stride_for(std::size_t packet_bytes) {
  const std::size_t bytes = PacketPool::kHeadroom + packet_bytes;
  return (bytes + kCacheLine - 1) / kCacheLine * kCacheLine;
}

}  // namespace

HeapPacketPool::HeapPacketPool(std::size_t packets, std::size_t packet_bytes)
    : packet_bytes_(packet_bytes),
      slab_(static_cast<std::uint8_t*>(
          ::operator new(packets* stride_for(packet_bytes), std::align_val_t(kCacheLine)))),
      buffers_(packets) {
  UET_CHECK(packets > 0);
  const std::size_t stride = stride_for(packet_bytes);
  free_.reserve(packets);
  for (std::size_t i = packets; i-- > 0;) {
    buffers_[i] = PacketBuffer{.room = slab_.get() + i * stride,
                               .capacity = static_cast<std::uint32_t>(stride),
                               .offset = kHeadroom,
                               .length = 0,
                               .pool = this,
                               .native = nullptr};
    free_.push_back(&buffers_[i]);
  }
}

HeapPacketPool::~HeapPacketPool() = default;

void HeapPacketPool::FreeSlab::operator()(std::uint8_t* slab) const {
  ::operator delete(slab, std::align_val_t(kCacheLine));
}

bool HeapPacketPool::refill() {
  const std::size_t n = std::min(kExchange, free_.size());
  for (std::size_t i = 0; i < n; ++i) {
    cache_[cached_++] = free_.back();
    free_.pop_back();
  }
  return n != 0;
}

void HeapPacketPool::spill() {
  // The oldest half goes, so that what was touched last is taken first.
  for (std::size_t i = 0; i < kExchange; ++i) free_.push_back(cache_[i]);
  std::move(cache_ + kExchange, cache_ + cached_, cache_);
  cached_ -= kExchange;
}

}  // namespace uet::net
