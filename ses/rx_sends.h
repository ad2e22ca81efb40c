/// SEND and TAGGED_SEND at the target, with or without a rest to fetch: into a receive, or among the unexpected messages. [SES 7, 9]
#pragma once

#include "ses/rx_defer.h"
#include "ses/rx_failures.h"

namespace uet::ses {

class SendTarget {
 public:
  SendTarget(RxShared& shared, RendezvousTarget& rendezvous, Deferrals& deferrals,
             Failures& failures)
      : shared_(shared), rendezvous_(rendezvous), deferrals_(deferrals), failures_(failures) {}

  /// The turn of the message has come: a receive takes it, or it waits for one. `sender`: if it is known.
  pds::Answer take_in(RequestContext& c, RiSpace& space, Sender* sender);
  /// `receive` takes it.
  pds::Answer deliver(RequestContext& c, RiSpace& space, Receive& receive);
  /// The store has the first packet of a message that came.
  pds::Answer keep(RequestContext& c, UnexpectedMessage& u);
  /// The first packet that came of a message that was asked for. [SES 8.3]
  pds::Answer begin_restarted(RequestContext& c);
  /// A further packet.
  pds::Answer proceed_receive(RequestContext& c, RxMessage& m);
  pds::Answer proceed_capture(RequestContext& c, RxMessage& m);

  /// The gate of the source is closed. [SES 2.5]
  pds::Answer refuse_closed(RequestContext& c, Sender& sender);
  /// The first packet of `m`, of which another one came before and was refused for lack of room.
  void take_late_header(const RequestContext& c, const RxMessage& m);
  /// The message that closed the gate has come again as a rendezvous, for which there is room. Its initiator sends it only when
  /// everything behind it was refused; what else is on its way has an older generation from now on.
  bool reopens(RequestContext& c, RiSpace& space, Sender& sender);

 private:
  pds::Answer deliver_rendezvous(RequestContext& c, RiSpace& space, Receive& receive);
  pds::Answer deliver_claimed(RequestContext& c, RiSpace& space, UnexpectedMessage& header);
  pds::Answer capture(RequestContext& c, RiSpace& space, UnexpectedMessage* header);
  pds::Answer put_off(RequestContext& c, RiSpace& space, Sender& sender, UnexpectedMessage* header);
  pds::Answer refuse_for_lack(RequestContext& c, RiSpace& space, Sender& sender,
                              UnexpectedMessage* header);
  pds::Answer end_eager_part(RequestContext& c, RxMessage& m);

  RxShared& shared_;
  RendezvousTarget& rendezvous_;
  Deferrals& deferrals_;
  Failures& failures_;
};

}  // namespace uet::ses
