/// Which PSNs above CACK a destination has received, which of them SES has answered, and which
/// answers are stored until the source clears them. [PDS 4.4, 7.3]
///
/// A PDC on which everything arrives in order and is answered at once needs no tracker: then CACK
/// says it all.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <memory>

#include "lib/base/fixed_pool.h"
#include "lib/base/serial.h"

namespace uet::pds {

using base::Psn;

/// Three bitmaps over a window, addressed by the low bits of the PSN. Bits at or below CACK are
/// always 0.
class RxTracker {
 public:
  enum Plane : unsigned { kReceived, kAnswered, kStored, kPlanes };

  bool test(Plane plane, Psn psn) const { return (word(plane, psn) >> (psn.value() & 63)) & 1; }
  void set(Plane plane, Psn psn) { word(plane, psn) |= bit(psn); }
  void clear(Plane plane, Psn psn) { word(plane, psn) &= ~bit(psn); }
  void clear_all(Psn psn) {
    for (unsigned p = 0; p < kPlanes; ++p) word(static_cast<Plane>(p), psn) &= ~bit(psn);
  }
  /// 64 bits of one plane starting at `base`; bit i is PSN base + i.
  std::uint64_t window64(Plane plane, Psn base) const {
    const unsigned shift = base.value() & 63;
    const std::uint64_t low = word(plane, base) >> shift;
    return shift == 0 ? low : low | word(plane, base + 64) << (64 - shift);
  }

 private:
  friend class RxTrackerPool;
  std::uint64_t& word(Plane plane, Psn psn) {
    return words_[plane * words_per_plane_ + ((psn.value() >> 6) & (words_per_plane_ - 1))];
  }
  std::uint64_t word(Plane plane, Psn psn) const {
    return words_[plane * words_per_plane_ + ((psn.value() >> 6) & (words_per_plane_ - 1))];
  }
  static std::uint64_t bit(Psn psn) { return std::uint64_t{1} << (psn.value() & 63); }

  std::uint64_t* words_ = nullptr;
  std::uint32_t words_per_plane_ = 0;
};

class RxTrackerPool {
 public:
  /// Trackers cover `window` PSNs and a margin of 64, so that reading 64 bits at the end of the
  /// window never wraps into its beginning.
  RxTrackerPool(std::uint32_t window, std::uint32_t count);

  /// All bits 0. Null when all are in use.
  RxTracker* acquire();
  void release(RxTracker* tracker) { trackers_.release(tracker); }
  bool is_exhausted() const { return trackers_.is_full(); }
  std::uint32_t in_use() const { return trackers_.in_use(); }

 private:
  std::uint32_t words_per_plane_;
  base::FixedPool<RxTracker> trackers_;
  std::unique_ptr<std::uint64_t[]> words_;
};

}  // namespace uet::pds
