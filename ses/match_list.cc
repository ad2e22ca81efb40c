#include "ses/match_list.h"

namespace uet::ses {

MatchList::~MatchList() {
  // The owner releases the receives; the hooks must not outlive the list heads.
  for (Group& group : groups_)
    if (group.buckets != nullptr)
      for (BucketList& bucket : *group.buckets) bucket.clear();
  unhashed_.clear();
  order_.clear();
}

void MatchList::post(Receive& receive) {
  receive.sequence = next_sequence_++;
  receive.is_posted = true;
  receive.is_indexed = false;
  order_.push_back(receive);
  if (first_unindexed_ == nullptr) first_unindexed_ = &receive;
}

void MatchList::index_rest() {
  if (first_unindexed_ == nullptr) return;
  for (auto it = order_.iterator_to(*first_unindexed_); it != order_.end(); ++it) {
    Receive& receive = *it;
    receive.group = group_for(receive.filter.ignore);
    receive.bucket = bucket_of(receive.filter.tag, receive.filter.ignore);
    receive.is_indexed = true;
    list_of(receive).push_back(receive);
    if (receive.group != kUnhashed) ++groups_[receive.group].count;
  }
  first_unindexed_ = nullptr;
}

void MatchList::remove(Receive& receive) {
  if (first_unindexed_ == &receive) {
    const auto next = std::next(order_.iterator_to(receive));
    first_unindexed_ = next == order_.end() ? nullptr : &*next;
  }
  order_.erase(order_.iterator_to(receive));
  if (receive.is_indexed) {
    BucketList& list = list_of(receive);
    list.erase(list.iterator_to(receive));
    if (receive.group != kUnhashed) --groups_[receive.group].count;
  }
  receive.is_posted = false;
}

Receive* MatchList::find(const Incoming& message) {
  if (order_.empty()) return nullptr;
  if (order_.front().filter.accepts(message)) return &order_.front();
  if (!hashed_ || order_.size() < kHashFrom) {
    for (Receive& r : order_)
      if (r.filter.accepts(message)) return &r;
    return nullptr;
  }
  index_rest();
  Receive* best = nullptr;
  const auto consider = [&](BucketList& list) {
    for (Receive& r : list) {
      if (best != nullptr && r.sequence > best->sequence) return;
      if (r.filter.accepts(message)) {
        best = &r;
        return;
      }
    }
  };
  for (Group& group : groups_)
    if (group.count > 0) consider((*group.buckets)[bucket_of(message.tag, group.ignore)]);
  consider(unhashed_);
  return best;
}

Receive* MatchList::find_context(std::uint64_t context) {
  for (Receive& r : order_)
    if (r.context == context) return &r;
  return nullptr;
}

std::uint8_t MatchList::group_for(std::uint64_t ignore) {
  std::uint8_t unused = kUnhashed;
  for (std::uint8_t i = 0; i < kGroups; ++i) {
    Group& group = groups_[i];
    if (group.count > 0 && group.ignore == ignore) return i;
    if (group.count == 0 && unused == kUnhashed) unused = i;
  }
  if (unused == kUnhashed) return kUnhashed;
  Group& group = groups_[unused];
  if (group.buckets == nullptr) group.buckets.reset(new (std::nothrow) Buckets);
  if (group.buckets == nullptr)
    return kUnhashed;  // a packet waits: without memory the walk is longer
  group.ignore = ignore;
  return unused;
}

MatchList::BucketList& MatchList::list_of(const Receive& receive) {
  if (receive.group == kUnhashed) return unhashed_;
  return (*groups_[receive.group].buckets)[receive.bucket];
}

}  // namespace uet::ses
