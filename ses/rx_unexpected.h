/// Unexpected messages in the lists of their endpoints. [SES 7.2, 7.3]
#pragma once

#include "ses/gates.h"
#include "ses/request_context.h"
#include "ses/rx_receives.h"

namespace uet::ses {

/// What a completion says of the message beside how it went.
Completion completion_of(const UnexpectedMessage& u);
/// `placed` bytes of it are in the receive that took it, from `start` on.
PlacedMessage placed_of(const UnexpectedMessage& u, std::uint64_t start, std::uint64_t placed);

class UnexpectedLists {
 public:
  UnexpectedLists(UnexpectedStore& store, SenderTable& senders, Gates& gates)
      : store_(store), senders_(senders), gates_(gates) {}

  /// Where `header`, what was kept of an earlier attempt, is; without one, at the end.
  void enlist(const RequestContext& c, RiSpace& space, UnexpectedMessage& u,
              UnexpectedMessage* header);
  /// Takes `u`, whose payload must be gone, from its endpoint. The room it leaves may let its space go on. recycle() or a report
  /// must follow.
  void unlink(UnexpectedMessage& u);
  /// Forgets one whose sender cannot be waiting for its delivery: it is not complete.
  void release(UnexpectedMessage& u);

 private:
  UnexpectedStore& store_;
  SenderTable& senders_;
  Gates& gates_;
};

}  // namespace uet::ses
