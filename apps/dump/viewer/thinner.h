/// Keeps at most so many of what comes: when it is full half of it goes, and from then on half as many are taken. Which ones depends
/// on a hash of their number: of things that come in turn, as sendings and acknowledgements, every kind stays.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace uet::dump {

template <typename T>
class Thinner {
 public:
  explicit Thinner(std::size_t most) : most_(most) {}

  void add(T one) {
    const std::uint64_t hash = hash_of(total_++);
    if ((hash & mask_) != 0) return;
    kept_.push_back(std::move(one));
    hashes_.push_back(hash);
    while (kept_.size() >= most_ && mask_ != ~std::uint64_t{0}) halve();
  }
  /// In the order in which they came.
  const std::vector<T>& kept() const { return kept_; }
  std::uint64_t total() const { return total_; }

 private:
  /// splitmix64: neighbouring numbers have nothing in common.
  static std::uint64_t hash_of(std::uint64_t n) {
    n += 0x9e37'79b9'7f4a'7c15;
    n = (n ^ (n >> 30)) * 0xbf58'476d'1ce4'e5b9;
    n = (n ^ (n >> 27)) * 0x94d0'49bb'1331'11eb;
    return n ^ (n >> 31);
  }
  void halve() {
    mask_ = mask_ << 1 | 1;
    std::size_t to = 0;
    for (std::size_t i = 0; i < kept_.size(); ++i) {
      if ((hashes_[i] & mask_) != 0) continue;
      if (to != i) kept_[to] = std::move(kept_[i]);
      hashes_[to++] = hashes_[i];
    }
    kept_.erase(kept_.begin() + static_cast<std::ptrdiff_t>(to), kept_.end());
    hashes_.resize(to);
  }

  std::size_t most_;
  std::uint64_t total_ = 0, mask_ = 0;
  std::vector<T> kept_;
  std::vector<std::uint64_t> hashes_;
};

}  // namespace uet::dump
