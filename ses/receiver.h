/// The target: the checks of each request in their order, and the parts that carry it out. [SES 4.3, 13]
#pragma once

#include "ses/rx_atomics.h"
#include "ses/rx_order.h"
#include "ses/rx_post.h"
#include "ses/rx_rma.h"

namespace uet::ses {

class Receiver final {
 public:
  explicit Receiver(Core& core);
  Receiver(const Receiver&) = delete;
  Receiver& operator=(const Receiver&) = delete;

  // --- From the user
  ReceivePosting& posting() { return posting_; }
  /// First what is being fetched for the endpoint, before its own operations are cancelled.
  void begin_close(Instant now, Endpoint& endpoint) { rendezvous_.close(now, endpoint); }
  /// Nothing of the endpoint is completed any more; what still arrives for it is told so.
  void close(Instant now, Endpoint& endpoint);
  void on_memory_enabled(EndpointId endpoint);

  // --- From the carrier
  pds::Answer on_request(Instant now, const pds::RxRequest& request);
  void on_pdc_gone(Instant now, pds::PdcRef pdc, const net::FabricAddress& peer);
  void on_resume(Instant now);
  /// Of the room for unexpected messages of an endpoint.
  std::uint32_t fill_of(EndpointId endpoint) const;

  // --- What has tokens of its own
  ReadReturns& returns() { return returns_; }
  DeliveryReports& reports() { return shared_.reports; }

  // --- Time
  void on_deadline(Instant now);
  Instant next_deadline() const { return shared_.clock.next_tick(); }

  std::size_t free_receives() const { return shared_.receives.available(); }
  std::size_t posted() const { return shared_.receives.in_use(); }
  std::size_t messages() const { return shared_.messages.size(); }
  std::size_t unexpected_messages() const {
    return shared_.store.messages() - shared_.headers.size() - streams_.held() -
           rendezvous_.messages();
  }
  std::size_t unexpected_bytes() const { return shared_.store.bytes(); }
  std::uint64_t refused_shares() const { return shared_.shares.refused() + returns_.refused(); }
  std::size_t messages_held() const { return streams_.held(); }
  std::size_t messages_fetching() const { return rendezvous_.messages(); }
  std::size_t senders() const { return shared_.senders.size(); }
  std::size_t header_only_messages() const { return shared_.headers.size(); }

 private:
  bool look_at_plain_send(RequestContext& c);
  bool look_at_plain_next(RequestContext& c);
  pds::Answer dispatch(RequestContext& c);
  pds::Answer decide(RequestContext& c);
  pds::Answer check_form(RequestContext& c);
  ReturnCode find_endpoint(RequestContext& c);
  pds::Answer check_atomic(RequestContext& c);
  pds::Answer check_address(RequestContext& c);
  pds::Answer begin(RequestContext& c);
  pds::Answer begin_send(RequestContext& c);
  pds::Answer begin_rendezvous(RequestContext& c);
  pds::Answer proceed(RequestContext& c, RxMessage& m);
  pds::Answer on_datagram(RequestContext& c);
  pds::Answer on_restart(RequestContext& c);
  void end_refused(const RequestContext& c, const pds::Answer& answer);

  RxShared shared_;
  ReadReturns returns_;
  RmaTarget rma_;
  RendezvousTarget rendezvous_;
  Deferrals deferrals_;
  Failures failures_;
  ReceivePosting posting_;
  SendTarget sends_;
  OrderedStreams streams_;
  AtomicTarget atomics_;
};

}  // namespace uet::ses
