/// What the bytes of an input choose.
#pragma once

#include <algorithm>
#include <cstdint>

#include "tests/fuzz/targets.h"

namespace uet::fuzz {

/// Reads choices off the fuzzer's input; zeros behind its end.
class Choices {
 public:
  explicit Choices(Bytes input) : input_(input) {}
  bool is_empty() const { return input_.empty(); }
  std::uint8_t u8() {
    if (input_.empty()) return 0;
    const std::uint8_t first = input_.front();
    input_ = input_.subspan(1);
    return first;
  }
  std::uint16_t u16() {
    const unsigned high = u8();
    return static_cast<std::uint16_t>(high << 8 | u8());
  }
  Bytes bytes(std::size_t n) {
    const Bytes out = input_.first(std::min(n, input_.size()));
    input_ = input_.subspan(out.size());
    return out;
  }

 private:
  Bytes input_;
};

}  // namespace uet::fuzz
