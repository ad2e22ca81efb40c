/// Which segments of a message have arrived. [SES 4.3 rules 5 and 6, decision 108]
#pragma once

#include <array>

#include "ses/chunked_pool.h"

namespace uet::ses {

/// One bit for each segment behind the first that is missing. Only messages whose packets overtook one another have one.
struct CoverageWindow : Pooled {
  /// More than what packet delivery lets one message have under way, there and back.
  static constexpr std::uint32_t kSegments = 2048;
  std::array<std::uint64_t, kSegments / 64> bits{};
  std::uint32_t count = 0;
};
using CoveragePool = ChunkedPool<CoverageWindow>;

/// Packet delivery hands every packet up once; that no two packets hold the same bytes is for the sender to keep, and checked
/// here. All segments but the last are equally long; how long, the first of them tells.
class Coverage {
 public:
  enum class Look : std::uint8_t {
    kNew,
    kKnown,   ///< these bytes came before
    kWrong,   ///< does not fit between the other segments
    kTooFar,  ///< beyond the window: must come again
  };

  /// What is to be said about a segment; add() may follow when it is kNew. The segment must lie in the message.
  Look look(std::uint32_t offset, std::uint32_t bytes, std::uint64_t length,
            const CoveragePool& pool) const;
  void add(std::uint32_t offset, std::uint32_t bytes, std::uint64_t length, CoveragePool& pool);
  bool is_complete() const { return has_last_ && reaches(last_offset_); }
  /// Everything below `end` has arrived; `end` is where a segment begins.
  bool reaches(std::uint64_t end) const { return std::uint64_t{next_} * segment_ >= end; }
  void clear(CoveragePool& pool) {
    if (window_ != nullptr) release_window(pool);
    *this = Coverage();
  }

 private:
  void release_window(CoveragePool& pool);
  bool has(std::uint32_t index) const;

  std::uint32_t segment_ = 0;  ///< bytes in each but the last; 0: not known yet
  std::uint32_t next_ = 0;     ///< the first that is missing
  std::uint32_t last_offset_ = 0;
  bool has_last_ = false;
  CoverageWindow* window_ = nullptr;
};

}  // namespace uet::ses
