/// What an operator makes of one element. [SES 16.3]
#pragma once

#include "ses/amo_numbers.h"
#include "ses/ses.h"

namespace uet::ses {

/// In unsigned arithmetic: it wraps, where int would not.
template <typename T>
T wrapped(AmoOpcode op, T t, T v) {
  const auto a = static_cast<Uint128>(t);
  const auto b = static_cast<Uint128>(v);
  if (op == AmoOpcode::kSum) return static_cast<T>(a + b);
  if (op == AmoOpcode::kDiff) return static_cast<T>(a - b);
  return static_cast<T>(a * b);
}

template <typename T>
T calculate(AmoOpcode op, T t, T v) {
  if constexpr (kIsInteger<T>) {
    return wrapped(op, t, v);
  } else if constexpr (kIsNarrow<T>) {
    return T(calculate(op, static_cast<float>(t), static_cast<float>(v)));
  } else {
    if (op == AmoOpcode::kSum) return t + v;
    if (op == AmoOpcode::kDiff) return t - v;
    return t * v;
  }
}

template <typename T>
bool is_less(T a, T b) {
  if constexpr (kIsNarrow<T>)
    return static_cast<float>(a) < static_cast<float>(b);
  else if constexpr (kIsComplex<T>)
    return false;
  else
    return a < b;
}

template <typename T>
bool is_equal(T a, T b) {
  if constexpr (kIsNarrow<T>)
    return static_cast<float>(a) == static_cast<float>(b);
  else
    return a == b;
}

template <typename T>
T logical(AmoOpcode op, T t, T v) {
  const bool a = !is_equal(t, T{});
  const bool b = !is_equal(v, T{});
  const bool r = op == AmoOpcode::kLor ? a || b : op == AmoOpcode::kLand ? a && b : a != b;
  if constexpr (kIsNarrow<T>)
    return T(r ? 1.0f : 0.0f);
  else
    return static_cast<T>(r ? 1 : 0);
}

template <typename T>
T bitwise(AmoOpcode op, T t, T v, T c) {
  if constexpr (kIsInteger<T>) {
    if (op == AmoOpcode::kBor) return static_cast<T>(t | v);
    if (op == AmoOpcode::kBand) return static_cast<T>(t & v);
    if (op == AmoOpcode::kBxor) return static_cast<T>(t ^ v);
    return static_cast<T>((t & ~c) | (v & c));
  } else {
    return t;
  }
}

/// "C op T", for a swap. Not merely the negation of its opposite: nothing holds of a NaN but "not equal".
template <typename T>
bool holds(AmoOpcode op, T c, T t) {
  switch (op) {
    case AmoOpcode::kCswap:
      return is_equal(c, t);
    case AmoOpcode::kCswapNe:
      return !is_equal(c, t);
    case AmoOpcode::kCswapLe:
      return is_less(c, t) || is_equal(c, t);
    case AmoOpcode::kCswapLt:
      return is_less(c, t);
    case AmoOpcode::kCswapGe:
      return is_less(t, c) || is_equal(c, t);
    default:
      return is_less(t, c);
  }
}

/// What becomes of `t`. False: it stays.
template <typename T>
bool combine(AmoOpcode op, T& t, T v, T c) {
  switch (op) {
    case AmoOpcode::kMin:
    case AmoOpcode::kMax: {
      const bool wins = op == AmoOpcode::kMin ? is_less(v, t) : is_less(t, v);
      if (wins) t = v;
      return wins;
    }
    case AmoOpcode::kSum:
    case AmoOpcode::kDiff:
    case AmoOpcode::kProd:
      t = calculate(op, t, v);
      return true;
    case AmoOpcode::kLor:
    case AmoOpcode::kLand:
    case AmoOpcode::kLxor:
      t = logical(op, t, v);
      return true;
    case AmoOpcode::kBor:
    case AmoOpcode::kBand:
    case AmoOpcode::kBxor:
    case AmoOpcode::kMswap:
      t = bitwise(op, t, v, c);
      return true;
    case AmoOpcode::kWrite:
      t = v;
      return true;
    case AmoOpcode::kRead:
    case AmoOpcode::kInval:
      return false;
    default: {
      const bool swaps = holds(op, c, t);
      if (swaps) t = v;
      return swaps;
    }
  }
}

}  // namespace uet::ses
