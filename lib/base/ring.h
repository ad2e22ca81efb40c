/// A first-in first-out queue of fixed capacity that never allocates after construction.
#pragma once

#include <bit>
#include <cstddef>
#include <memory>
#include <utility>

#include "lib/base/check.h"

namespace uet::base {

template <typename T>
class Ring {
 public:
  explicit Ring(std::size_t capacity)
      : capacity_(capacity),
        mask_(std::bit_ceil(capacity) - 1),
        items_(std::make_unique<T[]>(mask_ + 1)) {}

  bool is_empty() const { return count_ == 0; }
  bool is_full() const { return count_ == capacity_; }
  std::size_t size() const { return count_; }
  /// Items that may be pushed before it is full.
  std::size_t free() const { return capacity_ - count_; }
  /// False, and `item` is dropped, when full.
  bool push(T item) {
    if (is_full()) return false;
    items_[(head_ + count_++) & mask_] = std::move(item);
    return true;
  }
  T& front() { return (*this)[0]; }
  /// The item that is `age` places behind the front.
  T& operator[](std::size_t age) { return items_[(head_ + age) & mask_]; }
  T pop() {
    UET_DCHECK(!is_empty());
    --count_;
    return std::move(items_[head_++ & mask_]);
  }

 private:
  std::size_t capacity_;
  std::size_t mask_;
  std::unique_ptr<T[]> items_;
  std::size_t head_ = 0;
  std::size_t count_ = 0;
};

}  // namespace uet::base
