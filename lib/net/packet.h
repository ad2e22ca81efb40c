/// The packet handle: one buffer of some port's pool, owned by exactly one holder at a time.
#pragma once

#include <cstdint>
#include <span>
#include <utility>

#include "lib/base/check.h"

namespace uet::net {

class PacketPool;

/// Bookkeeping of one buffer. Lives in the pool's memory (behind an rte_mbuf in its private area, in front of
/// the bytes elsewhere). Only pools and ports touch it directly.
struct PacketBuffer {
  std::uint8_t* room = nullptr;  ///< first usable byte
  std::uint32_t capacity = 0;    ///< usable bytes from `room`
  std::uint32_t offset = 0;      ///< where the packet begins, from `room`
  std::uint32_t length = 0;      ///< bytes of the packet
  PacketPool* pool = nullptr;    ///< where it goes back to
  void* native = nullptr;        ///< the driver's own object (rte_mbuf), if any
};

/// Move-only owner of a PacketBuffer; gives it back to its pool when destroyed.
class Packet {
 public:
  Packet() = default;
  explicit Packet(PacketBuffer* buffer) : buffer_(buffer) {}
  Packet(Packet&& other) noexcept : buffer_(std::exchange(other.buffer_, nullptr)) {}
  Packet& operator=(Packet&& other) noexcept {
    if (this != &other) {
      reset();
      buffer_ = std::exchange(other.buffer_, nullptr);
    }
    return *this;
  }
  Packet(const Packet&) = delete;
  Packet& operator=(const Packet&) = delete;
  ~Packet() { reset(); }

  explicit operator bool() const { return buffer_ != nullptr; }
  void reset();
  /// Gives the buffer to the caller, who must return it to its pool (ports hand it to a driver).
  [[nodiscard]] PacketBuffer* release() { return std::exchange(buffer_, nullptr); }
  PacketBuffer* buffer() { return buffer_; }

  std::uint8_t* data() { return buffer_->room + buffer_->offset; }
  const std::uint8_t* data() const { return buffer_->room + buffer_->offset; }
  std::size_t size() const { return buffer_->length; }
  std::span<std::uint8_t> bytes() { return {data(), size()}; }
  std::span<const std::uint8_t> bytes() const { return {data(), size()}; }
  std::size_t headroom() const { return buffer_->offset; }
  std::size_t tailroom() const { return buffer_->capacity - buffer_->offset - buffer_->length; }

  /// Grows at the front by n bytes and returns the new first byte. n must not exceed headroom().
  std::uint8_t* prepend(std::size_t n) {
    UET_DCHECK(n <= headroom());
    buffer_->offset -= static_cast<std::uint32_t>(n);
    buffer_->length += static_cast<std::uint32_t>(n);
    return data();
  }
  /// Grows at the end by n bytes and returns the first new byte. n must not exceed tailroom().
  std::uint8_t* append(std::size_t n) {
    UET_DCHECK(n <= tailroom());
    std::uint8_t* end = data() + buffer_->length;
    buffer_->length += static_cast<std::uint32_t>(n);
    return end;
  }
  void trim_front(std::size_t n) {
    UET_DCHECK(n <= size());
    buffer_->offset += static_cast<std::uint32_t>(n);
    buffer_->length -= static_cast<std::uint32_t>(n);
  }
  void trim_back(std::size_t n) {
    UET_DCHECK(n <= size());
    buffer_->length -= static_cast<std::uint32_t>(n);
  }

 private:
  PacketBuffer* buffer_ = nullptr;
};

/// Where packets come from and go back to. One thread. Allocation and release run inline against a small
/// last-in-first-out cache; the virtual functions move whole batches.
class PacketPool {
 public:
  virtual ~PacketPool() = default;

  /// An empty packet with kHeadroom bytes in front, or a null packet when the pool is exhausted.
  Packet allocate() {
    if (cached_ == 0 && !refill()) return Packet();
    PacketBuffer* b = cache_[--cached_];
    b->offset = kHeadroom;
    b->length = 0;
    return Packet(b);
  }
  void give_back(PacketBuffer* b) {
    if (cached_ == kCacheSize) spill();
    cache_[cached_++] = b;
  }

  /// Buffers that exist, and buffers that nobody holds now.
  virtual std::size_t capacity() const = 0;
  virtual std::size_t available() const = 0;
  /// Largest packet that fits behind the headroom.
  virtual std::size_t max_packet_bytes() const = 0;

  /// Room for Ethernet + 2 VLAN + IPv6 + UDP + TSS in front of a UET packet.
  static constexpr std::uint32_t kHeadroom = 128;
  static constexpr std::size_t kCacheSize = 64;

 protected:
  /// Puts at least one buffer into the cache; false when there is none.
  virtual bool refill() = 0;
  /// Takes at least one buffer out of the full cache.
  virtual void spill() = 0;

  PacketBuffer* cache_[kCacheSize] = {};
  std::size_t cached_ = 0;
};

inline void Packet::reset() {
  if (buffer_ != nullptr) {
    PacketBuffer* b = std::exchange(buffer_, nullptr);
    b->pool->give_back(b);
  }
}

}  // namespace uet::net
