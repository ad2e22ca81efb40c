#include "ses/delivery_index.h"

#include <algorithm>
#include <new>
#include <utility>

namespace uet::ses {
namespace {

bool is_named(const UnexpectedMessage& m, const Incoming& sender, std::uint16_t message_id) {
  return m.message_id == message_id && m.header.initiator_id == sender.initiator_id &&
         m.header.job_id == sender.job_id && m.header.source == sender.source;
}

}  // namespace

void DeliveryIndex::add(UnexpectedMessage& message) {
  if (UnexpectedMessage* old = find(message.header, message.message_id)) remove(*old);
  if (size_ >= 2 * count_) grow();
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
  UnexpectedMessage* m = heads_[hash(sender, message_id) & (count_ - 1)];
  while (m != nullptr && !is_named(*m, sender, message_id)) m = m->next_awaited;
  return m;
}

std::size_t DeliveryIndex::hash(const Incoming& sender, std::uint16_t message_id) const {
  const std::size_t message = hash_key_(std::uint64_t{sender.job_id} << 16 | message_id);
  return sender.source.hash(hash_key_, std::uint64_t{message} << 32 | sender.initiator_id);
}

std::size_t DeliveryIndex::longest_chain() const {
  std::size_t longest = 0;
  for (std::size_t i = 0; i < count_; ++i) {
    const UnexpectedMessage* m = heads_[i];
    std::size_t length = 0;
    for (; m != nullptr; m = m->next_awaited) ++length;
    longest = std::max(longest, length);
  }
  return longest;
}

UnexpectedMessage*& DeliveryIndex::bucket(const Incoming& sender, std::uint16_t message_id) {
  return heads_[hash(sender, message_id) & (count_ - 1)];
}

/// Without memory the chains get longer.
void DeliveryIndex::grow() {
  std::unique_ptr<UnexpectedMessage*[]> heads(new (std::nothrow) UnexpectedMessage*[2 * count_]());
  if (heads == nullptr) return;
  heads.swap(heads_);
  const std::size_t before = std::exchange(count_, 2 * count_);
  for (std::size_t i = 0; i < before; ++i)
    for (UnexpectedMessage* m = heads[i]; m != nullptr;) {
      UnexpectedMessage* next = m->next_awaited;
      UnexpectedMessage*& head = bucket(m->header, m->message_id);
      m->next_awaited = head;
      head = m;
      m = next;
    }
}

}  // namespace uet::ses
