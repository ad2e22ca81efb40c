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
class CheckingVisitor final : public wire::DissectVisitor {
 public:
  explicit CheckingVisitor(Bytes frame) : frame_(frame), given_(frame.size()) {}

  void on_header(const wire::HeaderType& type, std::string_view name, std::size_t offset,
                 Bytes raw) override {
    UET_CHECK(!name.empty());
    UET_CHECK(raw.size() == type.size);
    mark(offset, raw);
    std::vector<std::uint8_t> out(type.size);
    UET_CHECK(type.encode(type.decode(raw.data()), out.data()));
    std::vector<std::uint8_t> expected(raw.begin(), raw.end());
    wire::clear_reserved_bits(type, expected);
    UET_CHECK(out == expected);
    ++pieces_;
  }
  void on_bytes(wire::BytesKind, std::size_t offset, Bytes bytes) override {
    mark(offset, bytes);
    ++pieces_;
  }
  void on_problem(wire::Problem p, std::size_t offset, std::uint64_t, std::uint64_t) override {
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
