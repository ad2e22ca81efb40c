/// Which segments of a message have arrived. [SES 4.3 rules 5 and 6, decision 108]
#pragma once

#include <algorithm>
#include <array>
#include <span>

#include "ses/chunked_pool.h"
#include "ses/payload_sizes.h"

namespace uet::ses {

/// One bit for each segment behind the first that is missing. Only messages whose packets overtook one another have one.
struct CoverageWindow : Pooled {
  std::span<std::uint64_t> bits;
  std::uint32_t count = 0;

  std::uint32_t segments() const { return static_cast<std::uint32_t>(bits.size()) * 64; }
};

/// Windows for messages that come in packets of one PDC, and for the data of READs.
class CoveragePool {
 public:
  /// More than the packets that packet delivery lets one message have under way, unless it is told otherwise.
  static constexpr std::uint32_t kSegments = 2048;
  /// At least the data that may come behind a request of a READ that was lost, where no more than `requests` are under way and none
  /// asks for more than most_asked(requests). See docs/decisions/0108.
  static constexpr std::uint32_t kReadSegments = 131'072;
  static constexpr std::uint32_t most_asked(std::uint32_t requests) {
    constexpr std::uint32_t kMostCuts =
        kLargestPayload / kSmallestPayload;  // of a packet asked for
    return std::clamp(kReadSegments / kMostCuts / requests, 1u, WideAsk::kMostPackets);
  }

  explicit CoveragePool(std::uint32_t max, std::uint32_t max_of_reads = 0)
      : windows_(max), read_windows_(max_of_reads, 4) {}

  /// Null when there is none. `segments`: of the whole message.
  CoverageWindow* acquire(std::uint64_t segments) {
    if (is_long(segments)) return read_windows_.acquire();
    return windows_.acquire();
  }
  /// All its bits are 0.
  void release(CoverageWindow& window) {
    if (window.segments() == kSegments)
      windows_.release(static_cast<Sized<kSegments>*>(&window));
    else
      read_windows_.release(static_cast<Sized<kReadSegments>*>(&window));
  }
  /// acquire() would find one.
  bool has(std::uint64_t segments) {
    return is_long(segments) ? read_windows_.has_one() : windows_.has_one();
  }
  std::uint32_t reach(std::uint64_t segments) const {
    return is_long(segments) ? kReadSegments : kSegments;
  }
  std::size_t in_use() const { return windows_.in_use() + read_windows_.in_use(); }

 private:
  template <std::uint32_t kCount>
  struct Sized : CoverageWindow {
    Sized() { bits = words; }
    std::array<std::uint64_t, kCount / 64> words{};
  };
  bool is_long(std::uint64_t segments) const {
    return segments > kSegments && read_windows_.max() > 0;
  }

  ChunkedPool<Sized<kSegments>> windows_;
  ChunkedPool<Sized<kReadSegments>> read_windows_;
};

/// Packet delivery hands every packet up once; that no two packets hold the same bytes is for the sender to keep, and checked
/// here. All segments but the last are equally long; how long, the first of them tells.
class Coverage {
 public:
  enum class Look : std::uint8_t {
    kNew,
    kKnown,   ///< these bytes came before
    kWrong,   ///< does not fit between the other segments
    kTooFar,  ///< beyond the window, or there is none: must come again
  };

  /// The first segment that is missing, as long as those that came, and not the last: there is nothing to be said about it.
  bool is_next(std::uint32_t offset, std::uint32_t bytes, std::uint64_t length) const {
    const std::uint64_t end = std::uint64_t{offset} + bytes;
    return bytes == segment_ && bytes != 0 && offset == std::uint64_t{next_} * segment_ &&
           end < length && (!has_last_ || end <= last_offset_);
  }
  /// What is to be said about a segment; add() may follow when it is kNew. The segment must lie in the message.
  Look look(std::uint32_t offset, std::uint32_t bytes, std::uint64_t length,
            CoveragePool& pool) const;
  void add(std::uint32_t offset, std::uint32_t bytes, std::uint64_t length, CoveragePool& pool);
  /// Bytes that were added, of a message of `length`.
  std::uint64_t bytes(std::uint64_t length) const;
  bool is_complete() const { return has_last_ && reaches(last_offset_); }
  /// Nothing was added.
  bool is_empty() const { return segment_ == 0 && !has_last_; }
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
