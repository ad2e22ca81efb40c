#include "ses/unexpected_queue.h"

#include <new>

namespace uet::ses {
namespace {

template <class List>
UnexpectedMessage* first_accepted(List& list, const Filter& filter, bool with_headers) {
  for (UnexpectedMessage& u : list)
    if ((with_headers || !u.is_header_only) && filter.accepts(u.header)) return &u;
  return nullptr;
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

UnexpectedMessage* UnexpectedQueue::find(const Filter& filter, bool with_headers) {
  if (!tagged_ || arrivals_.size() < kHashFrom || !is_indexed_for(filter.ignore))
    return first_accepted(arrivals_, filter, with_headers);
  return first_accepted(bucket_of(filter.tag), filter, with_headers);
}

/// Buckets are filled for the bits that a filter ignores when there are none, and anew when two filters in a row ignore others: that
/// costs as much as to walk over all once.
bool UnexpectedQueue::is_indexed_for(std::uint64_t ignore) {
  const bool is_usual = buckets_ == nullptr || ignore == last_ignore_;
  last_ignore_ = ignore;
  if (buckets_ != nullptr && ignore == ignore_) return true;
  if (!is_usual) return false;
  try {
    if (buckets_ == nullptr) buckets_ = std::make_unique<Buckets>();
  } catch (const std::bad_alloc&) {
    return false;
  }
  for (BucketList& bucket : *buckets_) bucket.clear();
  ignore_ = ignore;
  for (UnexpectedMessage& u : arrivals_) bucket_of(u.header.tag).push_back(u);
  return true;
}

}  // namespace uet::ses
