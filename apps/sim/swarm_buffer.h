/// User memory of a swarm world, in which nothing may be written that does not belong there.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace uet::sim {

inline constexpr std::uint8_t kGuard = 0xa5;   ///< around every buffer
inline constexpr std::uint8_t kPoison = 0x5a;  ///< where nothing may be written any more
inline constexpr std::size_t kGuardBytes = 64;

inline std::uint8_t pattern(std::uint32_t op, std::size_t i) {
  return static_cast<std::uint8_t>(op * 131 + i * 7 + (i >> 8) * 13 + 1);
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
    for (std::size_t i = 0; i < bytes; ++i) data()[i] = pattern(op, i);
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
    for (std::size_t i = 0; i < bytes; ++i) {
      if (data()[i] != pattern(op, i)) return false;
    }
    return true;
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
