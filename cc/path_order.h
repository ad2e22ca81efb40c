/// Pseudo-random order in which every path comes once a round. [CC 7.2]
#pragma once

#include <cstdint>

#include "lib/base/rng.h"

namespace uet::cc {

/// A counter exclusive-ored with a mask that is drawn again for each round.
class PathOrder {
 public:
  PathOrder(std::uint32_t size, base::Rng& rng) : size_(size), mask_(rng.below(size)) {}

  /// Call before next(); only then may the number of paths in use change.
  bool at_round_start() const { return counter_ == 0; }
  void resize(std::uint32_t size) {
    size_ = size;
    mask_ &= size - 1;
  }
  std::uint32_t size() const { return size_; }

  std::uint32_t next(base::Rng& rng) {
    const std::uint32_t index = counter_ ^ mask_;
    if (++counter_ == size_) {
      counter_ = 0;
      if (!fixed_) mask_ = rng.below(size_);
    }
    return index;
  }
  /// Tests write out sequences for the mask 0.
  void fix_mask_for_test() {
    mask_ = 0;
    fixed_ = true;
  }

 private:
  std::uint32_t size_;
  std::uint32_t counter_ = 0;
  std::uint32_t mask_;
  bool fixed_ = false;
};

}  // namespace uet::cc
