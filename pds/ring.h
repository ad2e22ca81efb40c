/// A first-in first-out queue of fixed capacity.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>

namespace uet::pds {

template <typename T>
class Ring {
 public:
  explicit Ring(std::size_t capacity) : capacity_(capacity), items_(new T[capacity]) {}

  bool is_empty() const { return count_ == 0; }
  bool is_full() const { return count_ == capacity_; }
  std::size_t size() const { return count_; }
  /// False, and `item` is dropped, when full.
  bool push(T item) {
    if (is_full()) return false;
    items_[(head_ + count_) % capacity_] = std::move(item);
    ++count_;
    return true;
  }
  T& front() { return items_[head_]; }
  T pop() {
    T item = std::move(items_[head_]);
    head_ = (head_ + 1) % capacity_;
    --count_;
    return item;
  }

 private:
  std::size_t capacity_;
  std::unique_ptr<T[]> items_;
  std::size_t head_ = 0;
  std::size_t count_ = 0;
};

}  // namespace uet::pds
