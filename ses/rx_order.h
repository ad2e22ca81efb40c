/// Ordered sends that came over all paths: each waits for its turn before it is matched. [decision 141]
#pragma once

#include "ses/rx_post.h"
#include "ses/rx_sends.h"

namespace uet::ses {

class OrderedStreams {
 public:
  OrderedStreams(RxShared& shared, ReceivePosting& posting, SendTarget& sends, Failures& failures)
      : shared_(shared), posting_(posting), sends_(sends), failures_(failures) {}
  ~OrderedStreams() { holding_.clear(); }
  OrderedStreams(const OrderedStreams&) = delete;
  OrderedStreams& operator=(const OrderedStreams&) = delete;

  /// A message that its initiator numbered, or word that one does not come. `sender`: if it is known.
  pds::Answer begin(RequestContext& c, Sender* sender);
  /// What waits for its turn at the endpoint is dropped.
  void close(Instant now, const Endpoint& endpoint);
  /// The initiator has gone, or has forgotten what it owed: what came is not kept from the receives for ever.
  void pass_idle_gaps(Instant now);

  std::size_t held() const { return held_; }  ///< messages before their turn
  bool is_empty() const { return holding_.empty(); }

 private:
  Stream* open_stream(const RequestContext& c, Sender* sender);
  pds::Answer take_turn(RequestContext& c, RiSpace& space, Stream& stream);
  pds::Answer hold(RequestContext& c, Stream& stream);
  void pass_to(Instant now, Stream& stream, std::uint32_t number);
  void deliver_in_turn(Instant now, Stream& stream);
  void deliver_first(Instant now, Stream& stream);
  void give_to_receive(Instant now, RiSpace& space, UnexpectedMessage& u, Receive& r);
  void drop_held(UnexpectedMessage& u);

  RxShared& shared_;
  ReceivePosting& posting_;
  SendTarget& sends_;
  Failures& failures_;
  HoldingList holding_;   ///< streams of which messages came before their turn
  std::size_t held_ = 0;  ///< those messages
};

}  // namespace uet::ses
