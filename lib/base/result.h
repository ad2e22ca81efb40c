/// A value, or the reason why there is none.
#pragma once

#include <cstdint>
#include <type_traits>
#include <utility>
#include <variant>

#include "lib/base/check.h"

namespace uet::base {
namespace detail {

/// Which of the two it is takes a whole word: GCC hands small objects over in registers that it loads from the stack, and the load of
/// a word waits for the store of a byte in it. See docs/notes/loads-that-wait-for-stores.md.
template <typename T, typename E>
class PlainEither {
 public:
  constexpr PlainEither(std::in_place_index_t<0>, T value)
      : has_value_(1), value_(std::move(value)) {}
  constexpr PlainEither(std::in_place_index_t<1>, E error)
      : has_value_(0), error_(std::move(error)) {}

  constexpr bool has_value() const { return has_value_ != 0; }
  constexpr T& value() { return value_; }
  constexpr const T& value() const { return value_; }
  constexpr const E& error() const { return error_; }

 private:
  std::uint64_t has_value_;
  union {
    T value_;
    E error_;
  };
};

template <typename T, typename E>
class Either {
 public:
  Either(std::in_place_index_t<0> i, T&& value) : v_(i, std::move(value)) {}
  Either(std::in_place_index_t<1> i, E&& error) : v_(i, std::move(error)) {}

  bool has_value() const { return v_.index() == 0; }
  T& value() { return *std::get_if<0>(&v_); }
  const T& value() const { return *std::get_if<0>(&v_); }
  const E& error() const { return *std::get_if<1>(&v_); }

 private:
  std::variant<T, E> v_;
};

template <typename T>
inline constexpr bool is_plain = std::is_trivially_copyable_v<T> && sizeof(T) <= sizeof(void*);

}  // namespace detail

/// Holds either a T or an E. Like std::expected (missing in C++20), with less of it.
template <typename T, typename E>
class [[nodiscard]] Result {
 public:
  Result(T value) : v_(std::in_place_index<0>, std::move(value)) {}  // NOLINT: implicit on purpose
  Result(E error) : v_(std::in_place_index<1>, std::move(error)) {}  // NOLINT: implicit on purpose

  bool has_value() const { return v_.has_value(); }
  explicit operator bool() const { return has_value(); }

  T& value() & {
    UET_CHECK(has_value());
    return v_.value();
  }
  const T& value() const& {
    UET_CHECK(has_value());
    return v_.value();
  }
  T&& value() && {
    UET_CHECK(has_value());
    return std::move(v_.value());
  }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  const E& error() const {
    UET_CHECK(!has_value());
    return v_.error();
  }

 private:
  std::conditional_t<detail::is_plain<T> && detail::is_plain<E>, detail::PlainEither<T, E>,
                     detail::Either<T, E>>
      v_;
};

}  // namespace uet::base
