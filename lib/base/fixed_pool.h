/// A pool of objects with a fixed capacity, and a hash over them. Memory is reserved at construction and touched when
/// first used, so a large bound costs address space, not memory. Objects are named by pointer or by
/// index.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <utility>

#include "lib/base/check.h"
#include "lib/base/zeroed_array.h"

namespace uet::base {

inline constexpr std::uint32_t kNoIndex = 0xffff'ffff;

/// Releases storage only: the pool's owner releases its objects first, or they must not need a
/// destructor.
template <typename T>
class FixedPool {
 public:
  explicit FixedPool(std::uint32_t capacity)
      : capacity_(capacity),
        storage_(static_cast<Cell*>(
            ::operator new (sizeof(Cell) * capacity, std::align_val_t{alignof(Cell)}))) {}

  /// A newly constructed object, or null when all are in use.
  template <typename... Args>
  T* acquire(Args&&... args) {
    Cell* cell = nullptr;
    if (free_ != kNoIndex) {
      cell = storage_.get() + free_;
      free_ = cell->next_free;
    } else if (fresh_ < capacity_) {
      cell = storage_.get() + fresh_++;
    } else {
      return nullptr;
    }
    ++in_use_;
    return new (cell->object) T(std::forward<Args>(args)...);
  }
  void release(T* object) {
    const std::uint32_t index = index_of(object);
    object->~T();
    storage_.get()[index].next_free = free_;
    free_ = index;
    --in_use_;
  }

  T& at(std::uint32_t index) {
    return *std::launder(reinterpret_cast<T*>(storage_.get()[index].object));
  }
  std::uint32_t index_of(const T* object) const {
    const auto* cell = reinterpret_cast<const Cell*>(object);
    UET_DCHECK(cell >= storage_.get() && cell < storage_.get() + capacity_);
    return static_cast<std::uint32_t>(cell - storage_.get());
  }

  std::uint32_t capacity() const { return capacity_; }
  std::uint32_t in_use() const { return in_use_; }
  bool is_full() const { return in_use_ == capacity_; }

 private:
  union Cell {
    std::uint32_t next_free;
    alignas(T) std::byte object[sizeof(T)];
  };
  struct Deleter {
    void operator()(Cell* p) const { ::operator delete (p, std::align_val_t{alignof(Cell)}); }
  };

  std::uint32_t capacity_;
  std::unique_ptr<Cell, Deleter> storage_;
  std::uint32_t free_ = kNoIndex;
  std::uint32_t fresh_ = 0;
  std::uint32_t in_use_ = 0;
};

/// Chained hash over objects of a FixedPool; the chain runs through a member of the objects.
template <typename T, std::uint32_t T::*Next>
class PoolIndex {
 public:
  /// `buckets` is rounded up to a power of two, 16 at least.
  PoolIndex(FixedPool<T>& pool, std::uint32_t buckets)
      : pool_(pool), mask_(std::bit_ceil(std::max(buckets, 16u)) - 1), heads_(mask_ + 1) {}

  void insert(std::size_t hash, T& object) {
    std::uint32_t& head = heads_[hash & mask_];
    object.*Next = head;
    head = link_to(object);
  }
  void erase(std::size_t hash, T& object) {
    const std::uint32_t link = link_to(object);
    std::uint32_t* at = &heads_[hash & mask_];
    while (*at != link) {
      UET_CHECK(*at != 0);
      at = &(follow(*at).*Next);
    }
    *at = object.*Next;
  }
  /// The first object of this hash for which `matches` holds, or null.
  template <typename Matches>
  T* find(std::size_t hash, Matches&& matches) const {
    for (std::uint32_t link = heads_[hash & mask_]; link != 0; link = follow(link).*Next)
      if (matches(follow(link))) return &follow(link);
    return nullptr;
  }
  /// For tests: how many objects one look-up may have to look at.
  std::uint32_t longest_chain() const {
    std::uint32_t longest = 0;
    for (std::uint32_t bucket = 0; bucket <= mask_; ++bucket) {
      std::uint32_t length = 0;
      for (std::uint32_t link = heads_[bucket]; link != 0; link = follow(link).*Next) ++length;
      longest = std::max(longest, length);
    }
    return longest;
  }
  template <typename Visit>
  void for_each(Visit&& visit) const {
    for (std::uint32_t bucket = 0; bucket <= mask_; ++bucket)
      for (std::uint32_t link = heads_[bucket]; link != 0; link = follow(link).*Next)
        visit(follow(link));
  }

 private:
  /// Links are indices plus one, and 0 ends a chain.
  std::uint32_t link_to(const T& object) const { return pool_.index_of(&object) + 1; }
  T& follow(std::uint32_t link) const { return pool_.at(link - 1); }

  FixedPool<T>& pool_;
  std::uint32_t mask_;
  ZeroedArray<std::uint32_t> heads_;
};

}  // namespace uet::base
