/// The packet handle: one buffer of some port's pool, owned by exactly one holder at a time.
#pragma once

#include <cstdint>
#include <cstring>
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
  // Of a packet that is about to be sent: bytes that are not in the buffer, and how many of those in it come behind them.
  const std::uint8_t* borrowed = nullptr;
  std::uint32_t borrowed_length = 0;
  std::uint32_t behind = 0;
};

/// Move-only owner of a PacketBuffer; gives it back to its pool when destroyed.
///
/// A packet to send may borrow a part of its bytes from memory that is not the pool's, once, where the pool's port can send
/// such packets. Then data(), size() and bytes() are only what lies in the buffer: headers, and whatever was appended since. Who
/// keeps the packet beyond the call that it is handed to must keep_borrowed(): the memory may change once the call is over.
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
    if (buffer_->borrowed_length != 0) buffer_->behind += static_cast<std::uint32_t>(n);
    return end;
  }
  /// May borrow() be called?
  bool can_borrow() const;
  /// Goes on with n bytes of `memory`.
  void borrow(const std::uint8_t* memory, std::size_t n) {
    UET_DCHECK(can_borrow() && buffer_->borrowed_length == 0);
    buffer_->borrowed = memory;
    buffer_->borrowed_length = static_cast<std::uint32_t>(n);
    buffer_->behind = 0;
  }
  bool has_borrowed() const { return buffer_->borrowed_length != 0; }
  /// All bytes, in order: those in the buffer before the borrowed ones, these, and those behind them.
  std::span<const std::uint8_t> front() const { return {data(), size() - behind()}; }
  std::span<const std::uint8_t> borrowed() const {
    return {buffer_->borrowed, buffer_->borrowed_length};
  }
  std::span<const std::uint8_t> back() const { return {data() + size() - behind(), behind()}; }
  std::size_t full_size() const { return size() + buffer_->borrowed_length; }
  /// Copies the borrowed bytes into the buffer, which must have room for them.
  void keep_borrowed() {
    if (has_borrowed()) copy_borrowed();
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
  std::size_t behind() const { return buffer_->borrowed_length != 0 ? buffer_->behind : 0; }
  void copy_borrowed();

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
    b->borrowed_length = 0;
    return Packet(b);
  }
  void give_back(PacketBuffer* b) {
    if (cached_ == kCacheSize) spill();
    cache_[cached_++] = b;
  }

  /// Buffers that exist, and buffers that are free now.
  virtual std::size_t capacity() const = 0;
  virtual std::size_t available() const = 0;
  /// Largest packet that fits behind the headroom.
  virtual std::size_t max_packet_bytes() const = 0;

  /// Packets of this pool may borrow bytes until they are sent.
  bool can_borrow() const { return can_borrow_; }

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
  bool can_borrow_ = false;
};

inline bool Packet::can_borrow() const {
  return buffer_->pool->can_borrow();
}

inline void Packet::copy_borrowed() {
  const std::size_t n = buffer_->borrowed_length;
  UET_CHECK(n <= tailroom());
  std::uint8_t* const at = data() + size() - buffer_->behind;
  std::memmove(at + n, at, buffer_->behind);
  std::memcpy(at, buffer_->borrowed, n);
  buffer_->length += static_cast<std::uint32_t>(n);
  buffer_->borrowed_length = 0;
}

inline void Packet::reset() {
  if (buffer_ != nullptr) {
    PacketBuffer* b = std::exchange(buffer_, nullptr);
    b->pool->give_back(b);
  }
}

}  // namespace uet::net
