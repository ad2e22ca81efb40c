/// Blocks of bytes in a few sizes: payload of unexpected messages, copies of injected data and of
/// read data.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace uet::ses {

/// One block. The user links blocks through `next` and says what the bytes are.
struct Block {
  Block* next = nullptr;
  std::uint32_t offset = 0;  ///< of these bytes in their message
  std::uint32_t length = 0;
  std::uint32_t size_class = 0;
  std::uint32_t reserved = 0;

  std::uint8_t* bytes() { return reinterpret_cast<std::uint8_t*>(this + 1); }
  const std::uint8_t* bytes() const { return reinterpret_cast<const std::uint8_t*>(this + 1); }
};

/// The smallest block, twice that and so on. Users reserve before they take, so that a message which was
/// begun can be finished. Memory is asked for in chunks as it is needed and kept; freed blocks are
/// used again.
class Slab {
 public:
  /// The smallest blocks are for `min_block` bytes. With one size for all, no more memory is used than is reserved at a time.
  Slab(std::size_t max_bytes, std::size_t max_block, std::size_t min_block = 64);
  ~Slab();
  Slab(const Slab&) = delete;
  Slab& operator=(const Slab&) = delete;

  /// What a block for `length` bytes costs, header included.
  std::size_t cost_of(std::size_t length) const { return stride_of(class_for(length)); }
  bool reserve(std::size_t cost);
  void unreserve(std::size_t cost) { reserved_ -= cost; }

  /// A block for `length` bytes within a reservation; null only when no memory can be had.
  Block* take(std::size_t length);
  void give_back(Block* block);
  void give_back_chain(Block* first);

  std::size_t reserved() const { return reserved_; }
  std::size_t max_bytes() const { return max_bytes_; }

 private:
  static constexpr std::size_t kClasses = 16;
  static constexpr std::size_t kChunkBytes = 64 * 1024;

  std::size_t class_for(std::size_t length) const;
  std::size_t stride_of(std::size_t size_class) const {
    return sizeof(Block) + (min_block_ << size_class);
  }
  bool grow(std::size_t size_class);

  std::size_t max_bytes_;
  std::size_t max_block_;
  std::size_t min_block_;
  std::size_t reserved_ = 0;
  std::size_t allocated_ = 0;
  std::array<Block*, kClasses> free_{};
  std::vector<std::unique_ptr<std::uint8_t[]>> chunks_;
};

}  // namespace uet::ses
