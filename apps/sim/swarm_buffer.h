/// User memory of a swarm world, in which nothing may be written that does not belong there.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

namespace uet::sim {

inline constexpr std::uint8_t kGuard = 0xa5;   ///< around every buffer
inline constexpr std::uint8_t kPoison = 0x5a;  ///< where nothing may be written any more
inline constexpr std::size_t kGuardBytes = 64;

/// Bytes [at, at + out.size()) of what operation `op` moves; `at` is a multiple of 256.
inline void write_pattern(std::span<std::uint8_t> out, std::uint32_t op, std::size_t at = 0) {
  for (std::size_t row = 0; row < out.size(); row += 256) {
    auto byte = static_cast<std::uint8_t>(op * 131 + ((at + row) >> 8) * 13 + 1);
    for (std::uint8_t& b : out.subspan(row, std::min<std::size_t>(256, out.size() - row))) {
      b = byte;
      byte = static_cast<std::uint8_t>(byte + 7);
    }
  }
}

inline bool is_pattern(std::span<const std::uint8_t> bytes, std::uint32_t op) {
  std::array<std::uint8_t, 256> row;
  for (std::size_t at = 0; at < bytes.size(); at += row.size()) {
    const std::size_t n = std::min(row.size(), bytes.size() - at);
    write_pattern({row.data(), n}, op, at);
    if (std::memcmp(bytes.data() + at, row.data(), n) != 0) return false;
  }
  return true;
}

/// A piece of user memory with guards around it.
class Buffer {
 public:
  void make(std::size_t bytes, std::uint8_t fill) {
    memory_.assign(bytes + 2 * kGuardBytes, kGuard);
    std::fill_n(data(), bytes, fill);
    bytes_ = bytes;
  }
  void make_pattern(std::size_t bytes, std::uint32_t op) {
    make(bytes, 0);
    write_pattern({data(), bytes}, op);
  }
  std::uint8_t* data() { return memory_.data() + kGuardBytes; }
  const std::uint8_t* data() const { return memory_.data() + kGuardBytes; }
  std::size_t size() const { return bytes_; }
  bool exists() const { return !memory_.empty(); }
  bool guards_intact() const {
    const auto is_guard = [](std::uint8_t b) { return b == kGuard; };
    return std::all_of(memory_.begin(), memory_.begin() + kGuardBytes, is_guard) &&
           std::all_of(memory_.end() - kGuardBytes, memory_.end(), is_guard);
  }
  bool has_pattern(std::uint32_t op, std::size_t bytes) const {
    return is_pattern({data(), bytes}, op);
  }
  bool is_all(std::uint8_t value, std::size_t from = 0) const {
    return std::all_of(data() + from, data() + bytes_,
                       [value](std::uint8_t b) { return b == value; });
  }
  void poison() {
    std::fill_n(data(), bytes_, kPoison);
    poisoned_ = true;
  }
  bool is_poisoned() const { return poisoned_; }

 private:
  std::vector<std::uint8_t> memory_;
  std::size_t bytes_ = 0;
  bool poisoned_ = false;
};

}  // namespace uet::sim
