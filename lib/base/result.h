/// A value, or the reason why there is none.
#pragma once

#include <utility>
#include <variant>

#include "lib/base/check.h"

namespace uet::base {

/// Holds either a T or an E. Like std::expected (missing in C++20), with less of it.
template <typename T, typename E>
class [[nodiscard]] Result {
 public:
  Result(T value) : v_(std::in_place_index<0>, std::move(value)) {}  // NOLINT: implicit on purpose
  Result(E error) : v_(std::in_place_index<1>, std::move(error)) {}  // NOLINT: implicit on purpose

  bool has_value() const { return v_.index() == 0; }
  explicit operator bool() const { return has_value(); }

  T& value() & {
    UET_CHECK(has_value());
    return *std::get_if<0>(&v_);
  }
  const T& value() const& {
    UET_CHECK(has_value());
    return *std::get_if<0>(&v_);
  }
  T&& value() && {
    UET_CHECK(has_value());
    return std::move(*std::get_if<0>(&v_));
  }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  const E& error() const {
    UET_CHECK(!has_value());
    return *std::get_if<1>(&v_);
  }

 private:
  std::variant<T, E> v_;
};

}  // namespace uet::base
