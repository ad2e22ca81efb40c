/// Keeps at most so many of what comes, evenly: when it is full every second one goes, and from then on fewer are taken.
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
    if (total_++ % stride_ != 0) return;
    kept_.push_back(std::move(one));
    if (kept_.size() < most_) return;
    for (std::size_t i = 0; 2 * i < kept_.size(); ++i)
      if (i > 0) kept_[i] = std::move(kept_[2 * i]);
    kept_.resize((kept_.size() + 1) / 2);
    stride_ *= 2;
  }
  const std::vector<T>& kept() const { return kept_; }
  std::uint64_t total() const { return total_; }

 private:
  std::size_t most_;
  std::uint64_t total_ = 0, stride_ = 1;
  std::vector<T> kept_;
};

}  // namespace uet::dump
