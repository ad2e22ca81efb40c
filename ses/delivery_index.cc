#include "ses/delivery_index.h"

#include <algorithm>

namespace uet::ses {
namespace {

constexpr std::size_t kFirstBuckets = 64;

bool is_named(const UnexpectedMessage& m, const Incoming& sender, std::uint16_t message_id) {
  return m.message_id == message_id && m.header.initiator_id == sender.initiator_id &&
         m.header.job_id == sender.job_id && m.header.source == sender.source;
}

}  // namespace

void DeliveryIndex::add(UnexpectedMessage& message) {
  if (UnexpectedMessage* old = find(message.header, message.message_id)) remove(*old);
  if (size_ >= 2 * buckets_.size()) grow();
  UnexpectedMessage*& head = bucket(message.header, message.message_id);
  message.next_awaited = head;
  head = &message;
  message.is_awaitable = true;
  ++size_;
}

void DeliveryIndex::remove(UnexpectedMessage& message) {
  if (!message.is_awaitable) return;
  UnexpectedMessage** link = &bucket(message.header, message.message_id);
  while (*link != &message) link = &(*link)->next_awaited;
  *link = message.next_awaited;
  message.is_awaitable = false;
  --size_;
}

UnexpectedMessage* DeliveryIndex::find(const Incoming& sender, std::uint16_t message_id) const {
  if (size_ == 0) return nullptr;
  UnexpectedMessage* m = buckets_[hash(sender, message_id) & (buckets_.size() - 1)];
  while (m != nullptr && !is_named(*m, sender, message_id)) m = m->next_awaited;
  return m;
}

std::size_t DeliveryIndex::hash(const Incoming& sender, std::uint16_t message_id) const {
  const std::size_t message = hash_key_(std::uint64_t{sender.job_id} << 16 | message_id);
  return sender.source.hash(hash_key_, std::uint64_t{message} << 32 | sender.initiator_id);
}

std::size_t DeliveryIndex::longest_chain() const {
  std::size_t longest = 0;
  for (const UnexpectedMessage* m : buckets_) {
    std::size_t length = 0;
    for (; m != nullptr; m = m->next_awaited) ++length;
    longest = std::max(longest, length);
  }
  return longest;
}

UnexpectedMessage*& DeliveryIndex::bucket(const Incoming& sender, std::uint16_t message_id) {
  return buckets_[hash(sender, message_id) & (buckets_.size() - 1)];
}

void DeliveryIndex::grow() {
  std::vector<UnexpectedMessage*> old(buckets_.empty() ? kFirstBuckets : 2 * buckets_.size());
  old.swap(buckets_);
  for (UnexpectedMessage* m : old)
    while (m != nullptr) {
      UnexpectedMessage* next = m->next_awaited;
      UnexpectedMessage*& head = bucket(m->header, m->message_id);
      m->next_awaited = head;
      head = m;
      m = next;
    }
}

}  // namespace uet::ses
