#include "pds/rx_tracker.h"

#include <algorithm>
#include <cstring>

namespace uet::pds {

RxTrackerPool::RxTrackerPool(std::uint32_t window, std::uint32_t count)
    : words_per_plane_(std::bit_ceil(std::max<std::uint32_t>(window + 64, 128)) / 64),
      trackers_(count),
      words_(new std::uint64_t[static_cast<std::size_t>(count) * words_per_plane_ *
                               RxTracker::kPlanes]) {}

RxTracker* RxTrackerPool::acquire() {
  RxTracker* tracker = trackers_.acquire();
  if (tracker == nullptr) return nullptr;
  const std::size_t words = static_cast<std::size_t>(words_per_plane_) * RxTracker::kPlanes;
  tracker->words_ = words_.get() + trackers_.index_of(tracker) * words;
  tracker->words_per_plane_ = words_per_plane_;
  std::memset(tracker->words_, 0, words * sizeof(std::uint64_t));
  return tracker;
}

}  // namespace uet::pds
