#include "provider/cq_ring.h"

#include <algorithm>
#include <bit>
#include <mutex>
#include <new>
#include <utility>

namespace uet::provider {

void CqRing::reserve(std::size_t size) {
  const std::lock_guard guard(readers_);
  if (ring_.empty()) ring_.resize(std::bit_ceil(std::max<std::size_t>(size, 16)));
}

/// Throws nothing: completions arrive where no call could say so.
bool CqRing::grow() {
  const std::size_t used = size();
  if (used >= kMostEntries) return false;
  std::vector<CqEntry> larger;
  try {
    larger.resize(std::max<std::size_t>(ring_.size() * 2, 16));
  } catch (const std::bad_alloc&) {
    return false;
  }
  const std::lock_guard guard(readers_);
  const std::size_t head = head_.load(std::memory_order_relaxed);
  for (std::size_t i = head; i != tail_.load(std::memory_order_relaxed); ++i)
    larger[i & (larger.size() - 1)] = at(i);
  ring_ = std::move(larger);
  return true;
}

}  // namespace uet::provider
