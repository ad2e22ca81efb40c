/// Checks what every visitor of the decision tree may rely on.
#pragma once

#include <algorithm>
#include <string_view>
#include <vector>

#include "lib/base/check.h"
#include "lib/wire/dissect.h"
#include "tests/fuzz/targets.h"

namespace uet::fuzz {

/// Pieces lie inside the frame, each byte is given away
/// exactly once, and every header encodes to the bytes it came from.
class CheckingVisitor {
 public:
  explicit CheckingVisitor(Bytes frame) : frame_(frame), given_(frame.size()) {}

  template <typename H>
  void on_header(const H& h, std::string_view name, std::size_t offset, Bytes raw) {
    UET_CHECK(!name.empty());
    UET_CHECK(raw.size() == H::kSize);
    mark(offset, raw);
    UET_CHECK(wire::fits(h));
    std::array<std::uint8_t, H::kSize> out;
    wire::emit(h, out.data());
    for (std::size_t i = 0; i < H::kSize; ++i)
      UET_CHECK(out[i] == (raw[i] & wire::kDefinedMask<H>[i]));
    ++pieces_;
  }
  void on_bytes(wire::BytesKind, std::size_t offset, Bytes bytes) {
    mark(offset, bytes);
    ++pieces_;
  }
  void on_problem(wire::Problem p, std::size_t offset, std::uint64_t, std::uint64_t) {
    UET_CHECK(p < wire::Problem::kCount);
    UET_CHECK(offset <= frame_.size());
    ++pieces_;
  }

  /// No byte may be passed over in silence.
  void finish() const {
    UET_CHECK(pieces_ > 0);
    UET_CHECK(std::all_of(given_.begin(), given_.end(), [](bool g) { return g; }));
  }

 private:
  void mark(std::size_t offset, Bytes bytes) {
    UET_CHECK(offset <= frame_.size());
    UET_CHECK(bytes.size() <= frame_.size() - offset);
    UET_CHECK(bytes.data() == frame_.data() + offset);
    for (std::size_t i = offset; i < offset + bytes.size(); ++i) {
      UET_CHECK(!given_[i]);
      given_[i] = true;
    }
  }

  Bytes frame_;
  std::vector<bool> given_;
  std::size_t pieces_ = 0;
};

}  // namespace uet::fuzz
