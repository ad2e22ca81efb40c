#include "ses/unexpected_queue.h"

#include <algorithm>
#include <bit>
#include <new>
#include <utility>

#include "lib/base/planted.h"
#include "ses/sender_table.h"

namespace uet::ses {
namespace {

/// Whether this peek has met no message of the same source before that waits for its first packet.
bool may_see(const UnexpectedMessage& u, std::uint64_t peek) {
  const PeekShade& shade = u.sender->shade;
  return shade.peek != peek || (!shade.is_of_all && shade.initiator != u.header.initiator_id);
}

void hide_later(const UnexpectedMessage& u, std::uint64_t peek) {
  PeekShade& shade = u.sender->shade;
  const std::uint32_t initiator = u.header.initiator_id;
  const bool is_of_all = shade.peek == peek && (shade.is_of_all || shade.initiator != initiator);
  shade = {.peek = peek, .initiator = initiator, .is_of_all = is_of_all};
}

}  // namespace

void UnexpectedQueue::push_back(UnexpectedMessage& message) {
  arrivals_.push_back(message);
  if (buckets_ != nullptr) bucket_of(message.header.tag).push_back(message);
}

void UnexpectedQueue::insert_before(UnexpectedMessage& place, UnexpectedMessage& message) {
  arrivals_.insert(arrivals_.iterator_to(place), message);
  if (buckets_ == nullptr) return;
  BucketList& bucket = bucket_of(place.header.tag);
  bucket.insert(bucket.iterator_to(place), message);
}

void UnexpectedQueue::remove(UnexpectedMessage& message) {
  arrivals_.erase(arrivals_.iterator_to(message));
  if (buckets_ == nullptr) return;
  BucketList& bucket = bucket_of(message.header.tag);
  bucket.erase(bucket.iterator_to(message));
}

template <class Use>
UnexpectedMessage* UnexpectedQueue::with_list(const Filter& filter, const Use& use) {
  if (!tagged_ || arrivals_.size() < kHashFrom || !is_indexed_for(filter.ignore))
    return use(arrivals_);
  return use(bucket_of(filter.tag));
}

UnexpectedMessage* UnexpectedQueue::find(const Filter& filter) {
  return with_list(filter, [&](auto& list) -> UnexpectedMessage* {
    for (UnexpectedMessage& u : list)
      if (!u.is_header_only && filter.accepts(u.header)) return &u;
    return nullptr;
  });
}

UnexpectedMessage* UnexpectedQueue::find_for_peek(const Filter& filter, std::uint64_t number) {
  return with_list(filter, [&](auto& list) -> UnexpectedMessage* {
    for (UnexpectedMessage& u : list) {
      if (!filter.accepts(u.header)) continue;
      if (!u.is_header_known() && !base::planted(base::PlantedBug::kPeekBeforeFirst))
        hide_later(u, number);
      else if (may_see(u, number))
        return &u;
    }
    return nullptr;
  });
}

/// Buckets are filled for the bits that a filter ignores when there are none, anew when two filters in a row ignore others, and when
/// they have become too full: that costs as much as to walk over all once.
bool UnexpectedQueue::is_indexed_for(std::uint64_t ignore) {
  const bool is_usual = buckets_ == nullptr || ignore == last_ignore_;
  last_ignore_ = ignore;
  const bool is_indexed = buckets_ != nullptr && ignore == ignore_;
  if ((is_indexed && !is_crowded()) || !is_usual) return is_indexed;
  const int bits = buckets_ == nullptr || is_crowded() ? bits_for_all() : bucket_bits_;
  std::unique_ptr<BucketList[]> more;
  if (buckets_ == nullptr || bits != bucket_bits_) {
    more.reset(new (std::nothrow) BucketList[std::size_t{1} << bits]);
    if (more == nullptr && (buckets_ == nullptr || is_indexed)) return is_indexed;
  }
  if (buckets_ != nullptr)
    for (UnexpectedMessage& u : arrivals_) bucket_of(u.header.tag).clear();
  if (more != nullptr) {
    buckets_ = std::move(more);
    bucket_bits_ = bits;
  }
  ignore_ = ignore;
  for (UnexpectedMessage& u : arrivals_) bucket_of(u.header.tag).push_back(u);
  return true;
}

int UnexpectedQueue::bits_for_all() const {
  return std::clamp(static_cast<int>(std::bit_width(arrivals_.size() / 2)), kFewestBits, kMostBits);
}

}  // namespace uet::ses
