/// Messages that do not end well, and what their late packets are told. [SES 4.3, 10, 12]
#pragma once

#include "ses/rx_rendezvous.h"
#include "ses/rx_returns.h"

namespace uet::ses {

class Failures {
 public:
  Failures(RxShared& shared, RendezvousTarget& rendezvous, ReadReturns& returns)
      : shared_(shared), rendezvous_(rendezvous), returns_(returns) {}

  /// The message fails at its first packet.
  pds::Answer reject(RequestContext& c, ReturnCode code);
  /// This packet ends a message that was going well. The first error stays. [SES 12]
  pds::Answer fail(RequestContext& c, RxMessage& m, ReturnCode code);
  /// All has come of a deferrable message that its initiator closed early: as if MSG_ERROR had ended it. [SES 8.2, 10]
  pds::Answer give_up(RequestContext& c, RxMessage& m);
  /// A packet of a message that was failed or discarded.
  pds::Answer answer_discarded(RequestContext& c, RxMessage& m);
  /// What the context says of a message that fails, or is rejected.
  pds::Answer answer(RequestContext& c);
  /// [SES 10] The initiator ends a message early.
  pds::Answer on_message_error(RequestContext& c);

  void on_pdc_gone(Instant now, pds::PdcRef pdc, Sender& sender);
  /// Messages that it has looked at in vain, since the start.
  std::uint64_t passed() const { return passed_; }
  /// Nothing of the endpoint is completed any more; what still arrives for it is told so.
  void close(Instant now, Endpoint& endpoint);
  /// [SES 4.3 rules 9, 10] First the message is discarded, and answers what still comes of it; later it is forgotten.
  void drop_idle(Instant now);

 private:
  void abandon(Instant now, RxMessage& m, ReturnCode told, ReturnCode completed);
  void take_back(Instant now, RxMessage& m);

  RxShared& shared_;
  RendezvousTarget& rendezvous_;
  ReadReturns& returns_;
  std::uint64_t passed_ = 0;
};

}  // namespace uet::ses
