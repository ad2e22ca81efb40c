/// Big-endian reading and writing of bytes with explicit bounds.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <span>

#include "lib/base/check.h"

namespace uet::base {

/// Unaligned big-endian load of an unsigned integer.
template <typename T>
inline T load_be(const std::uint8_t* p) {
  T v;
  std::memcpy(&v, p, sizeof v);
  if constexpr (sizeof(T) == 1 || std::endian::native == std::endian::big)
    return v;
  else if constexpr (sizeof(T) == 2)
    return __builtin_bswap16(v);
  else if constexpr (sizeof(T) == 4)
    return __builtin_bswap32(v);
  else
    return __builtin_bswap64(v);
}

/// Unaligned big-endian store of an unsigned integer.
template <typename T>
inline void store_be(std::uint8_t* p, T v) {
  if constexpr (sizeof(T) > 1 && std::endian::native != std::endian::big) {
    if constexpr (sizeof(T) == 2)
      v = __builtin_bswap16(v);
    else if constexpr (sizeof(T) == 4)
      v = __builtin_bswap32(v);
    else
      v = __builtin_bswap64(v);
  }
  std::memcpy(p, &v, sizeof v);
}

/// Reads forward through bytes it does not own. Callers ask `has` first: reading past the end is our bug.
class Reader {
 public:
  explicit Reader(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}

  bool has(std::size_t n) const { return bytes_.size() - at_ >= n; }
  std::size_t position() const { return at_; }
  std::span<const std::uint8_t> rest() const { return bytes_.subspan(at_); }

  std::uint8_t u8() { return take<std::uint8_t>(); }
  std::uint16_t u16() { return take<std::uint16_t>(); }
  std::uint32_t u32() { return take<std::uint32_t>(); }
  std::span<const std::uint8_t> bytes(std::size_t n) {
    UET_CHECK(has(n));
    const auto s = bytes_.subspan(at_, n);
    at_ += n;
    return s;
  }
  void skip(std::size_t n) { (void)bytes(n); }

 private:
  template <typename T>
  T take() {
    UET_CHECK(has(sizeof(T)));
    const T v = load_be<T>(bytes_.data() + at_);
    at_ += sizeof(T);
    return v;
  }
  std::span<const std::uint8_t> bytes_;
  std::size_t at_ = 0;
};

/// Writes forward into bytes it does not own.
class Writer {
 public:
  explicit Writer(std::span<std::uint8_t> bytes) : bytes_(bytes) {}

  std::size_t position() const { return at_; }
  std::size_t remaining() const { return bytes_.size() - at_; }
  void u8(std::uint8_t v) { put(v); }
  void u16(std::uint16_t v) { put(v); }
  void u32(std::uint32_t v) { put(v); }
  void u64(std::uint64_t v) { put(v); }
  void bytes(std::span<const std::uint8_t> v) {
    UET_CHECK(remaining() >= v.size());
    if (!v.empty()) std::memcpy(bytes_.data() + at_, v.data(), v.size());
    at_ += v.size();
  }

 private:
  template <typename T>
  void put(T v) {
    UET_CHECK(remaining() >= sizeof(T));
    store_be(bytes_.data() + at_, v);
    at_ += sizeof(T);
  }
  std::span<std::uint8_t> bytes_;
  std::size_t at_ = 0;
};

}  // namespace uet::base
