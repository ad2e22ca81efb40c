/// Which counters of one sender under one key have been seen. [TSS 11.4, 11.5]
#pragma once

#include <cstdint>
#include <span>

namespace uet::tss {

/// The newest verified TSC, and a bit for each of the values behind it when a window is kept. The
/// epoch is the upper part of a TSC, so a packet of a new epoch is newer than any of the old one.
class ReplayFilter {
 public:
  /// What is accepted of a sender: within `floor` of the newest, and with a window each value once.
  struct Limits {
    std::uint64_t floor = UINT64_MAX;  ///< UINT64_MAX: no floor
    std::uint32_t window = 0;          ///< bits; a power of two from 64, 0: none
  };

  /// Records a verified packet; false when it is a replay, or older than what can be told apart.
  /// `bits` holds `limits.window` bits, zero when the sender is new.
  bool accept(std::uint64_t tsc, const Limits& limits, std::span<std::uint64_t> bits);
  std::uint64_t newest() const { return newest_; }

 private:
  bool accept_in_window(std::uint64_t tsc, std::span<std::uint64_t> bits);
  static void clear_between(std::uint64_t after, std::uint64_t up_to,
                            std::span<std::uint64_t> bits);

  std::uint64_t newest_ = 0;
  bool has_any_ = false;
};

}  // namespace uet::tss
