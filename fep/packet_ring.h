/// A bounded first-in-first-out queue that never allocates after construction.
#pragma once

#include <bit>
#include <cstddef>
#include <utility>
#include <vector>

#include "lib/base/check.h"

namespace uet::fep {

template <typename T>
class PacketRing {
 public:
  /// Rounded up to a power of two.
  explicit PacketRing(std::size_t capacity)
      : slots_(std::bit_ceil(capacity)), mask_(slots_.size() - 1) {}

  std::size_t size() const { return tail_ - head_; }
  bool empty() const { return head_ == tail_; }
  std::size_t room() const { return slots_.size() - size(); }

  void push(T value) {
    UET_DCHECK(room() > 0);
    slots_[tail_++ & mask_] = std::move(value);
  }
  T pop() {
    UET_DCHECK(!empty());
    return std::move(slots_[head_++ & mask_]);
  }

 private:
  std::vector<T> slots_;
  std::size_t mask_;
  std::size_t head_ = 0, tail_ = 0;
};

}  // namespace uet::fep
