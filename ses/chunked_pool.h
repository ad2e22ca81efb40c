/// A pool of objects of one type: bounded, grown in chunks, never shrunk.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <vector>

namespace uet::ses {

/// Base of everything that lives in a ChunkedPool. `serial` changes at each acquire, so {index,
/// serial} names one life of the object and a stale reference is recognised.
struct Pooled {
  std::uint32_t pool_index = 0;  ///< from 1
  std::uint32_t serial = 0;
  Pooled* next_free = nullptr;
  bool is_live = false;
};

/// Names one life of a pooled object; empty by default.
struct PoolRef {
  std::uint32_t index = 0;
  std::uint32_t serial = 0;
  explicit constexpr operator bool() const { return index != 0; }
};

inline PoolRef ref_of(const Pooled& object) {
  return {object.pool_index, object.serial};
}

/// Memory is asked for when the first object of a chunk is wanted, so an idle pool is small and a
/// warm one never allocates. Objects come back in the order in which they were released (oldest
/// first): numbers derived from the index are then reused as late as possible.
template <typename T>
class ChunkedPool {
 public:
  explicit ChunkedPool(std::uint32_t max, std::uint32_t chunk = 64)
      : max_(max), shift_(static_cast<unsigned>(std::bit_width(std::min(chunk, max) | 1) - 1)) {
    if (max_ > 0) chunks_.reserve((max_ >> shift_) + 1);
  }
  ChunkedPool(const ChunkedPool&) = delete;
  ChunkedPool& operator=(const ChunkedPool&) = delete;

  /// acquire() would find one. Without, there are `max` in use, or the system has no memory for more.
  bool has_one() { return free_ != nullptr || grow(); }
  /// Null where has_one() says no. The object is as its last user left it.
  T* acquire() {
    if (!has_one()) return nullptr;
    T* object = static_cast<T*>(free_);
    free_ = object->next_free;
    if (free_ == nullptr) free_tail_ = nullptr;
    __builtin_prefetch(free_);  // it was last used long ago
    object->next_free = nullptr;
    object->is_live = true;
    ++object->serial;
    ++in_use_;
    return object;
  }

  void release(T* object) {
    object->is_live = false;
    --in_use_;
    append_free(object);
  }

  /// The live object with this index, or null.
  T* at(std::uint32_t index) {
    if (index == 0 || index > made_) return nullptr;
    T* object = &chunks_[(index - 1) >> shift_][(index - 1) & ((1u << shift_) - 1)];
    return object->is_live ? object : nullptr;
  }
  const T* at(std::uint32_t index) const { return const_cast<ChunkedPool*>(this)->at(index); }
  T* find(PoolRef ref) {
    T* object = at(ref.index);
    return object != nullptr && object->serial == ref.serial ? object : nullptr;
  }

  std::size_t in_use() const { return in_use_; }
  std::size_t available() const { return max_ - in_use_; }
  std::uint32_t max() const { return max_; }

 private:
  void append_free(T* object) {
    object->next_free = nullptr;
    if (free_tail_ != nullptr)
      free_tail_->next_free = object;
    else
      free_ = object;
    free_tail_ = object;
  }

  bool grow() {
    if (made_ >= max_) return false;
    const std::uint32_t chunk = 1u << shift_;
    T* objects = new (std::nothrow) T[chunk];
    if (objects == nullptr) return false;
    chunks_.emplace_back(objects);
    for (std::uint32_t i = 0; i < chunk && made_ < max_; ++i) {
      objects[i].pool_index = ++made_;
      append_free(&objects[i]);
    }
    return true;
  }

  std::uint32_t max_;
  unsigned shift_;  ///< of a chunk's size
  std::uint32_t made_ = 0;
  std::size_t in_use_ = 0;
  Pooled* free_ = nullptr;
  Pooled* free_tail_ = nullptr;
  std::vector<std::unique_ptr<T[]>> chunks_;
};

}  // namespace uet::ses
