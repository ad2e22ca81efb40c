/// Posted receives, and those who look at the unexpected messages. [SES 7.1, 7.3]
#pragma once

#include "ses/rx_rendezvous.h"

namespace uet::ses {

class ReceivePosting {
 public:
  ReceivePosting(RxShared& shared, RendezvousTarget& rendezvous)
      : shared_(shared), rendezvous_(rendezvous) {}

  // --- From the user
  PostResult<Posted> receive(Instant now, Endpoint& endpoint, const ReceiveRequest& request);
  PostResult<Posted> peek(Instant now, Endpoint& endpoint, const PeekRequest& request);
  PostResult<Posted> claim_receive(Instant now, Endpoint& endpoint, const ReceiveRequest& request,
                                   bool discard);
  bool cancel(Instant now, Endpoint& endpoint, std::uint64_t context);
  /// Drops the endpoint's receives and unexpected messages.
  void close(Instant now, Endpoint& endpoint);
  /// What was set aside while `endpoint` closed: its own receives go with it; others are posted again.
  void end_close(Instant now, const Endpoint& endpoint);

  /// Moves an unexpected message into a receive. When packets are still to come they go straight there. [SES 7.2]
  void adopt(Instant now, UnexpectedMessage& u, Receive& r);
  /// Messages of which only the header is kept, and whose senders have given up, or are gone.
  void drop_idle_headers(Instant now);

 private:
  void post(Instant now, Receive& r);
  bool take_unexpected(Instant now, RiSpace& space, Receive& r);
  void claim(RiSpace& space, UnexpectedMessage& u, std::uint64_t context);
  void discard(Instant now, UnexpectedMessage& u);
  void discard_header(UnexpectedMessage& u);
  bool cancel_claimed(Instant now, Endpoint& endpoint, std::uint64_t context);

  RxShared& shared_;
  RendezvousTarget& rendezvous_;
  std::uint64_t peeks_ = 0;
};

}  // namespace uet::ses
