/// Messages of several packets, and the share that each source, and each of its PDCs, has of the places for them. [SES 4.3]
#pragma once

#include "ses/loop_clock.h"
#include "ses/request_context.h"
#include "ses/sender_table.h"

namespace uet::ses {

class MessageShares {
 public:
  MessageShares(RxMessageTable& messages, SenderTable& senders, LoopClock& clock)
      : messages_(messages), senders_(senders), clock_(clock) {}

  /// What the packet takes from the pools of all endpoints is its source's. Null when too many sources hold something.
  Sender* owner_of(RequestContext& c);
  /// The packet is answered.
  void let_go(RequestContext& c) {
    if (c.owner != nullptr) senders_.unhold(*c.owner);
  }

  /// May the source of the packet, and its PDC, have one more message on its way in? Discarded messages of its own make room for it, once no
  /// packet has met them for a while: without them a late packet would begin the message anew.
  bool has_place(RequestContext& c);
  /// The message of the packet, for which there is a place. The packet is not counted yet.
  RxMessage& begin(RequestContext& c, RxTarget target);
  void release(RxMessage& message);

  std::uint64_t refused() const { return refused_; }

 private:
  bool fits(const Sender& owner, const RequestContext& c) const;

  RxMessageTable& messages_;
  SenderTable& senders_;
  LoopClock& clock_;
  std::uint64_t refused_ = 0;
};

}  // namespace uet::ses
