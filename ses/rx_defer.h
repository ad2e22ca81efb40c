/// Messages that are put off until there is a receive for them, and then sent again. [SES 7.2, 8.3]
///
/// Such a message is among the unexpected ones with its header. When a receive takes it, it goes the way of a rendezvous: it waits for
/// its turn among the READs, and a request to restart takes the place of the READ. Then its initiator sends all of it once more, with
/// the token that finds the receive.
#pragma once

#include "ses/rx_rendezvous.h"

namespace uet::ses {

class Deferrals {
 public:
  Deferrals(RxShared& shared, RendezvousTarget& rendezvous)
      : shared_(shared), rendezvous_(rendezvous) {}

  /// Only known peers can be asked to restart. A message that was asked for is not put off again.
  bool may_defer(const RequestContext& c, const Sender& sender) const;
  /// Keeps the header of the packet's message in the place of `header`, what was kept of an earlier attempt; what comes of the payload
  /// is discarded. False when there is no room.
  bool defer(RequestContext& c, RiSpace& space, Sender& sender, UnexpectedMessage* header);
  /// The message that the packet's token was made for, if the packet is of that message; a token serves for one restart. Else null.
  UnexpectedMessage* find_restarted(const RequestContext& c);
  /// All of it is in the receive.
  pds::Answer end_restarted(const RequestContext& c, UnexpectedMessage& u);

 private:
  RxShared& shared_;
  RendezvousTarget& rendezvous_;
};

}  // namespace uet::ses
