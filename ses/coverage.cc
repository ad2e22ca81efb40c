#include "ses/coverage.h"

#include <algorithm>

#include "lib/base/check.h"
#include "lib/base/planted.h"

namespace uet::ses {
namespace {

std::uint64_t bit_of(std::uint32_t index) {
  return std::uint64_t{1} << (index % 64);
}

std::uint64_t& word_of(CoverageWindow& window, std::uint32_t index) {
  return window.bits[(index & (window.segments() - 1)) / 64];
}

}  // namespace

Coverage::Look Coverage::look(std::uint32_t offset, std::uint32_t bytes, std::uint64_t length,
                              CoveragePool& pool) const {
  if (is_next(offset, bytes, length)) return Look::kNew;
  const std::uint64_t end = std::uint64_t{offset} + bytes;
  if (end == length) {
    if (has_last_ && !base::planted(base::PlantedBug::kBytesNotCovered)) return Look::kKnown;
    return segment_ != 0 && offset % segment_ != 0 ? Look::kWrong : Look::kNew;
  }
  const std::uint32_t segment = segment_ != 0 ? segment_ : bytes;
  if (bytes == 0 || bytes != segment || offset % segment != 0) return Look::kWrong;
  if (has_last_ && (end > last_offset_ || last_offset_ % segment != 0)) return Look::kWrong;
  const std::uint32_t index = offset / segment;
  if (base::planted(base::PlantedBug::kBytesNotCovered)) return Look::kNew;
  if (has(index)) return Look::kKnown;
  if (index == next_) return Look::kNew;
  const std::uint64_t segments = length / segment;
  const bool can_be_noted = window_ != nullptr || pool.has(segments);
  return can_be_noted && index - next_ < pool.reach(segments) ? Look::kNew : Look::kTooFar;
}

void Coverage::add(std::uint32_t offset, std::uint32_t bytes, std::uint64_t length,
                   CoveragePool& pool) {
  if (is_next(offset, bytes, length) && window_ == nullptr) [[likely]] {
    ++next_;
    return;
  }
  if (std::uint64_t{offset} + bytes == length) {
    has_last_ = true;
    last_offset_ = offset;
    return;
  }
  segment_ = bytes;
  const std::uint32_t index =
      base::planted(base::PlantedBug::kBytesNotCovered) ? next_ : offset / segment_;
  if (index != next_) {
    if (window_ == nullptr) window_ = pool.acquire(length / segment_);
    UET_CHECK(window_ != nullptr);  // look() saw one
    word_of(*window_, index) |= bit_of(index);
    ++window_->count;
    return;
  }
  ++next_;
  while (window_ != nullptr && has(next_)) {
    word_of(*window_, next_) &= ~bit_of(next_);
    ++next_;
    if (--window_->count > 0) continue;
    pool.release(*window_);
    window_ = nullptr;
  }
}

std::uint64_t Coverage::bytes(std::uint64_t length) const {
  const std::uint64_t noted = next_ + (window_ != nullptr ? window_->count : 0);
  return noted * segment_ + (has_last_ ? length - last_offset_ : 0);
}

void Coverage::release_window(CoveragePool& pool) {
  std::ranges::fill(window_->bits, 0);
  window_->count = 0;
  pool.release(*window_);
}

bool Coverage::has(std::uint32_t index) const {
  if (index < next_) return true;
  if (window_ == nullptr || index - next_ >= window_->segments()) return false;
  return (word_of(*window_, index) & bit_of(index)) != 0;
}

}  // namespace uet::ses
