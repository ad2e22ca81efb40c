#include "pds/rx_tracker.h"

#include <algorithm>
#include <cstring>

namespace uet::pds {

RxTrackerPool::RxTrackerPool(std::uint32_t window, std::uint32_t count)
    : count_(count),
      words_per_plane_(std::bit_ceil(std::max<std::uint32_t>(window + 64, 128)) / 64),
      trackers_(new RxTracker[count]),
      words_(new std::uint64_t[static_cast<std::size_t>(count) * words_per_plane_ *
                               RxTracker::kPlanes]) {}

RxTracker* RxTrackerPool::acquire() {
  std::uint32_t index = free_;
  if (index != 0xffff'ffff) {
    free_ = trackers_[index].next_free_;
  } else if (fresh_ < count_) {
    index = fresh_++;
  } else {
    return nullptr;
  }
  ++in_use_;
  RxTracker& tracker = trackers_[index];
  const std::size_t words = static_cast<std::size_t>(words_per_plane_) * RxTracker::kPlanes;
  tracker.words_ = words_.get() + index * words;
  tracker.words_per_plane_ = words_per_plane_;
  std::memset(tracker.words_, 0, words * sizeof(std::uint64_t));
  return &tracker;
}

void RxTrackerPool::release(RxTracker* tracker) {
  tracker->next_free_ = free_;
  free_ = static_cast<std::uint32_t>(tracker - trackers_.get());
  --in_use_;
}

}  // namespace uet::pds
