#include "ses/unexpected_store.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "lib/base/planted.h"
#include "ses/sender_table.h"

namespace uet::ses {

/// Blocks of one size: what one message gives back suits every other. A segment takes no more of them than it has KiB, whatever
/// its size: so a message takes no more than its length says. [decision 0053]
constexpr std::size_t kBlock = kEthernetPayload;
constexpr std::size_t kCounted = kSmallestPayload;

UnexpectedStore::UnexpectedStore(const SesConfig& config)
    : bytes_per_endpoint_(config.overflow_bytes),
      messages_per_endpoint_(config.overflow_msgs),
      slab_(config.overflow_bytes_total, kBlock, kBlock),
      pool_(config.overflow_msgs_total) {}

/// One sender leaves an eighth of an endpoint's room to others.
constexpr std::uint64_t kFactor = 7;
/// Part of an endpoint's room that there is besides for messages before their turn.
constexpr std::uint32_t kHeldPart = 8;

OverflowUse& UnexpectedStore::use_of_sender(UnexpectedMessage& message) {
  return message.is_held ? message.sender->held : message.sender->overflow;
}

bool UnexpectedStore::has_room(const OverflowUse& use, const OverflowUse& of_sender,
                               std::size_t cost) const {
  if (use.messages >= messages_per_endpoint_ ||
      !has_share(of_sender.messages, messages_per_endpoint_ - use.messages, kFactor))
    return false;
  // A header, alone or with a short payload, takes none of the bytes, so where there are none left, or no more for this sender,
  // messages can still be announced.
  // What was held may have brought more of them than there are for messages in their turn.
  if (cost == 0) return true;
  return cost <= bytes_per_endpoint_ && use.bytes <= bytes_per_endpoint_ - cost &&
         has_share(of_sender.bytes, bytes_per_endpoint_ - use.bytes, kFactor);
}

bool UnexpectedStore::has_room_for(const OverflowUse& use, const Sender& sender,
                                   std::uint32_t length) const {
  return has_room(use, sender.overflow, cost_of(length)) && has_descriptor_for(sender);
}

bool UnexpectedStore::may_ask_for_more(const Sender& sender) const {
  return has_share(sender.reports_open, pool_.available());
}

bool UnexpectedStore::has_descriptor_for(const Sender& sender) const {
  return has_descriptor() && may_ask_for_more(sender);
}

UnexpectedMessage* UnexpectedStore::admit(OverflowUse& use, Sender& sender, std::uint32_t length) {
  const std::size_t cost = cost_of(length);
  if (!has_descriptor_for(sender) || !has_room(use, sender.overflow, cost) || !slab_.reserve(cost))
    return nullptr;
  UnexpectedMessage* message = note_header(sender, length);
  if (message == nullptr) {
    slab_.unreserve(cost);
    return nullptr;
  }
  message->is_header_only = false;
  message->cost = cost;
  use.bytes += cost;
  sender.overflow.bytes += cost;
  count_header(*message, use);
  return message;
}

bool UnexpectedStore::may_hold(const OverflowUse& use, const OverflowUse& held,
                               const OverflowUse& of_sender, std::size_t cost) const {
  const std::uint64_t bytes = bytes_per_endpoint_ / kHeldPart;
  const std::uint32_t messages = std::max(messages_per_endpoint_ / kHeldPart, 1u);
  if (held.messages >= messages || cost > bytes || held.bytes > bytes - cost) return false;
  if (use.messages + held.messages >= messages_per_endpoint_ + messages ||
      use.bytes + held.bytes + cost > bytes_per_endpoint_ + bytes)
    return false;
  return has_share(of_sender.messages, messages - held.messages, kFactor) &&
         (cost == 0 || has_share(of_sender.bytes, bytes - held.bytes, kFactor));
}

UnexpectedMessage* UnexpectedStore::admit_held(const OverflowUse& use, OverflowUse& held,
                                               Sender& sender, std::uint32_t length) {
  const std::size_t cost = cost_of(length);
  if (!has_descriptor_for(sender) || !may_hold(use, held, sender.held, cost) ||
      !slab_.reserve(cost))
    return nullptr;
  UnexpectedMessage* message = note_header(sender, length);
  if (message == nullptr) {
    slab_.unreserve(cost);
    return nullptr;
  }
  message->is_header_only = false;
  message->is_held = true;
  message->cost = cost;
  held.bytes += cost;
  ++held.messages;
  sender.held.bytes += cost;
  ++sender.held.messages;
  return message;
}

void UnexpectedStore::end_hold(UnexpectedMessage& message, OverflowUse& held, OverflowUse& use) {
  const auto move = [&](OverflowUse& from, OverflowUse& to) {
    --from.messages;
    ++to.messages;
    from.bytes -= message.cost;
    to.bytes += message.cost;
  };
  move(held, use);
  move(message.sender->held, message.sender->overflow);
  message.is_held = false;
}

UnexpectedMessage* UnexpectedStore::note_header(Sender& sender, std::uint32_t length) {
  UnexpectedMessage* message = pool_.acquire();
  if (message == nullptr) return nullptr;
  message->sender = &sender;
  message->length = length;
  message->captured = 0;
  message->first = message->last = nullptr;
  message->cost = message->taken = 0;
  message->message = nullptr;
  message->claimed = false;
  message->is_header_only = true;
  message->receive = nullptr;
  message->is_unwanted = false;
  message->is_awaitable = message->is_asked = false;
  message->failure = ReturnCode::kOk;
  message->som_seen = message->has_header_data = false;
  message->header_data = 0;
  message->is_held = message->is_gap = false;
  message->is_rendezvous = message->is_deferred = message->waits_for_fetch = false;
  message->fetch = nullptr;
  return message;
}

void UnexpectedStore::count_header(UnexpectedMessage& message, OverflowUse& use) {
  ++use.messages;
  ++message.sender->overflow.messages;
}

void UnexpectedStore::release(UnexpectedMessage& message, OverflowUse& use) {
  --use.messages;
  --use_of_sender(message).messages;
}

/// Such a message is one packet, so its bytes come once.
bool UnexpectedStore::capture_short(UnexpectedMessage& message, std::uint32_t offset,
                                    std::span<const std::uint8_t> bytes) {
  if (bytes.empty()) return true;
  if (bytes.size() > UnexpectedMessage::kShort || message.first != nullptr) return false;
  auto* const block = new (message.short_block.data()) Block;
  block->offset = offset;
  block->length = static_cast<std::uint32_t>(bytes.size());
  std::memcpy(block->bytes(), bytes.data(), bytes.size());
  message.first = message.last = block;
  message.captured = block->length;
  return true;
}

bool UnexpectedStore::capture(UnexpectedMessage& message, std::uint32_t offset,
                              std::span<const std::uint8_t> bytes) {
  if (message.cost == 0) return capture_short(message, offset, bytes);
  const std::size_t cost = slab_.cost_of(kBlock);
  for (std::size_t at = 0; at < bytes.size(); at += kBlock) {
    if (message.taken + cost > message.cost) return false;
    Block* block = slab_.take(kBlock);
    if (block == nullptr) return false;
    message.taken += cost;
    block->offset = offset + static_cast<std::uint32_t>(at);
    block->length = static_cast<std::uint32_t>(std::min(kBlock, bytes.size() - at));
    std::memcpy(block->bytes(), bytes.data() + at, block->length);
    if (message.last != nullptr)
      message.last->next = block;
    else
      message.first = block;
    message.last = block;
  }
  message.captured += static_cast<std::uint32_t>(bytes.size());
  return true;
}

std::size_t UnexpectedStore::move_to(UnexpectedMessage& message, OverflowUse& use,
                                     const IovList& to, std::size_t to_offset, std::size_t limit) {
  std::size_t copied = 0;
  for (const Block* b = message.first; b != nullptr; b = b->next) {
    if (b->offset >= limit) continue;
    const std::size_t n = std::min<std::size_t>(b->length, limit - b->offset);
    to.scatter(to_offset + b->offset, b->bytes(), n);
    copied += n;
  }
  drop_payload(message, use);
  return copied;
}

void UnexpectedStore::drop_payload(UnexpectedMessage& message, OverflowUse& use) {
  if (message.cost != 0) slab_.give_back_chain(message.first);
  message.first = message.last = nullptr;
  if (base::planted(base::PlantedBug::kUnexpectedLeak)) return;
  slab_.unreserve(message.cost);
  use.bytes -= message.cost;
  use_of_sender(message).bytes -= message.cost;
  message.cost = message.taken = 0;
}

std::uint32_t UnexpectedStore::fill(const OverflowUse& use) const {
  const auto part = [](std::uint64_t used, std::uint64_t capacity) {
    return capacity == 0 ? 0
                         : static_cast<std::uint32_t>(std::min(used, capacity) * 1000 / capacity);
  };
  return std::max({part(use.bytes, bytes_per_endpoint_), part(use.messages, messages_per_endpoint_),
                   part(slab_.reserved(), slab_.max_bytes()),
                   part(pool_.in_use(), most_without_receive())});
}

std::size_t UnexpectedStore::cost_of(std::uint32_t length) const {
  if (length <= UnexpectedMessage::kShort) return 0;
  return (std::size_t{length} + kCounted - 1) / kCounted * slab_.cost_of(kBlock);
}

}  // namespace uet::ses
