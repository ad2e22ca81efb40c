/// Unexpected messages with delivery complete, by what their senders call them: a sender asks for the delivery of one.
/// [SES 14.1, decision 105]
#pragma once

#include <memory>

#include "ses/unexpected_store.h"

namespace uet::ses {

class DeliveryIndex {
 public:
  explicit DeliveryIndex(const base::HashKey& hash_key)
      : hash_key_(hash_key), heads_(std::make_unique<UnexpectedMessage*[]>(count_)) {}

  /// A message that its sender named alike before is not found any more: a sender uses a message id again only when it waits
  /// for nothing under it.
  void add(UnexpectedMessage& message);
  void remove(UnexpectedMessage& message);
  UnexpectedMessage* find(const Incoming& sender, std::uint16_t message_id) const;
  std::size_t longest_chain() const;

 private:
  std::size_t hash(const Incoming& sender, std::uint16_t message_id) const;
  UnexpectedMessage*& bucket(const Incoming& sender, std::uint16_t message_id);
  void grow();

  const base::HashKey& hash_key_;
  std::size_t count_ = 64;  ///< of heads; a power of two
  std::unique_ptr<UnexpectedMessage*[]> heads_;
  std::size_t size_ = 0;
};

}  // namespace uet::ses
