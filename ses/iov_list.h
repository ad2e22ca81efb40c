/// A user's buffer: one or several pieces of memory, addressed by the offset in their
/// concatenation.
#pragma once

#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "lib/base/check.h"
#include "lib/net/packet.h"
#include "ses/chunked_pool.h"
#include "ses/device_memory.h"

namespace uet::ses {

inline constexpr std::size_t kMaxIov = 16;

/// Room for the pieces of buffers that have more than one.
struct IovBlock : Pooled {
  std::array<iovec, kMaxIov> pieces{};
};
using IovPool = ChunkedPool<IovBlock>;

/// Does not own the memory it names. One piece is held in place; more need a block of the pool,
/// given back with clear().
class IovList {
 public:
  /// False (and empty) when there are too many pieces or no block for them.
  /// `device`: whose memory it is; null for the CPU's.
  bool assign(std::span<const iovec> pieces, IovPool& pool, DeviceMemory* device = nullptr) {
    if (pieces.size() != 1) return assign_pieces(pieces, pool, device);
    assign(pieces[0].iov_base, pieces[0].iov_len);
    device_ = device;
    return true;
  }
  void assign(void* base, std::size_t length) {
    one_ = {base, length};
    count_ = 1;
    size_ = length;
    block_ = nullptr;
    device_ = nullptr;
  }
  /// n bytes from `offset` on of `whole`; the range must lie inside.
  bool assign_part(const IovList& whole, std::size_t offset, std::size_t n, IovPool& pool);
  void clear(IovPool& pool) {
    if (block_ != nullptr) pool.release(block_);
    *this = IovList();
  }

  std::size_t size() const { return size_; }
  void* base() const { return count_ == 0 ? nullptr : pieces()[0].iov_base; }
  std::span<const iovec> as_span() const { return {pieces(), count_}; }
  DeviceMemory* device() const { return device_; }

  /// Whether the device has the n bytes from `offset` on, which lie inside; the CPU always has.
  bool is_there(std::size_t offset, std::size_t n) const {
    return device_ == nullptr || device_has(offset, n);
  }
  /// Where n bytes from `offset` on lie in one piece; null when they do not. Of a device's memory the CPU may only use the
  /// address.
  std::uint8_t* find(std::size_t offset, std::size_t n) const;
  /// Copies n bytes from `offset` on; the range must lie inside. False, here and below: a device failed.
  bool gather(std::size_t offset, std::uint8_t* out, std::size_t n) const {
    UET_DCHECK(offset <= size_ && n <= size_ - offset);
    if (!is_plain() || n == 0) return gather_pieces(offset, out, n);
    std::memcpy(out, static_cast<const std::uint8_t*>(one_.iov_base) + offset, n);
    return true;
  }
  /// Asks the processor for what the next packet will carry. What it fetches by itself begins anew with each packet: in one of
  /// 8 KiB it catches up, in a short one it does not.
  /// Inline, or a compiler finds that it changes nothing and leaves its calls out.
  [[gnu::always_inline]] void fetch_ahead(std::size_t offset, std::size_t n) const {
    constexpr std::size_t kShort = 2048, kLine = 64;
    if (!is_plain() || n > kShort) return;
    const auto* const memory = static_cast<const std::uint8_t*>(one_.iov_base);
    const std::size_t end = std::min(offset + n, size_);
    for (std::size_t at = offset; at < end; at += kLine) __builtin_prefetch(memory + at);
  }
  /// Puts them behind what `packet` has; without a copy where it may borrow them and that is worth it.
  bool append_to(net::Packet& packet, std::size_t offset, std::size_t n) const;
  bool scatter(std::size_t offset, const std::uint8_t* in, std::size_t n) const {
    UET_DCHECK(offset <= size_ && n <= size_ - offset);
    if (!is_plain() || n == 0) return scatter_pieces(offset, in, n);
    std::memcpy(static_cast<std::uint8_t*>(one_.iov_base) + offset, in, n);
    return true;
  }
  /// What was scattered is in place.
  bool settle() const { return device_ == nullptr || device_->settle(); }

 private:
  /// One piece, of the CPU's memory.
  bool is_plain() const { return count_ == 1 && device_ == nullptr; }
  bool assign_pieces(std::span<const iovec> pieces, IovPool& pool, DeviceMemory* device);
  bool device_has(std::size_t offset, std::size_t n) const;
  bool gather_pieces(std::size_t offset, std::uint8_t* out, std::size_t n) const;
  bool scatter_pieces(std::size_t offset, const std::uint8_t* in, std::size_t n) const;
  const iovec* pieces() const { return block_ != nullptr ? block_->pieces.data() : &one_; }

  iovec one_{};
  IovBlock* block_ = nullptr;
  std::size_t size_ = 0;
  DeviceMemory* device_ = nullptr;
  std::uint32_t count_ = 0;
};

}  // namespace uet::ses
