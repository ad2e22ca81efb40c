/// The target: finds the buffer of each message, places its packets, answers them. [SES 7, 11, 13]
#pragma once

#include "ses/core.h"
#include "ses/gates.h"
#include "ses/header_entries.h"
#include "ses/responses.h"
#include "ses/rx_delivery.h"
#include "ses/rx_fetches.h"
#include "ses/rx_returns.h"
#include "ses/rx_rma.h"

namespace uet::ses {

class Receiver final : private FetchSink {
 public:
  explicit Receiver(Core& core);
  ~Receiver() override;
  Receiver(const Receiver&) = delete;
  Receiver& operator=(const Receiver&) = delete;

  // --- From the user (rx_post.cc)
  PostResult<Posted> receive(Instant now, Endpoint& endpoint, const ReceiveRequest& request);
  PostResult<Posted> peek(Instant now, Endpoint& endpoint, const PeekRequest& request);
  PostResult<Posted> claim_receive(Instant now, Endpoint& endpoint, const ReceiveRequest& request,
                                   bool discard);
  bool cancel(Instant now, Endpoint& endpoint, std::uint64_t context);
  /// First what is being fetched for the endpoint, before its own operations are cancelled.
  void close_rendezvous(Instant now, Endpoint& endpoint);
  void close_endpoint(Instant now, Endpoint& endpoint);
  void on_memory_enabled(EndpointId endpoint);
  std::size_t free_receives() const { return receives_.available(); }

  // --- From the carrier
  pds::Answer on_request(Instant now, const pds::RxRequest& request);
  void on_pdc_gone(Instant now, pds::PdcRef pdc, const net::FabricAddress& peer);
  void on_resume(Instant now);
  std::uint32_t fill_of(EndpointId endpoint) const;

  // --- What has tokens of its own
  ReadReturns& returns() { return returns_; }
  DeliveryReports& reports() { return reports_; }

  // --- Time
  void on_deadline(Instant now);
  Instant next_deadline() const;

  std::size_t posted() const { return receives_.in_use(); }
  std::size_t messages() const { return messages_.size(); }
  std::size_t unexpected_messages() const {
    return store_.messages() - headers_.size() - held_ - fetches_.messages();
  }
  std::size_t unexpected_bytes() const { return store_.bytes(); }
  std::uint64_t refused_shares() const { return shares_.refused() + returns_.refused(); }
  std::size_t messages_held() const { return held_; }
  std::size_t messages_fetching() const { return fetches_.messages(); }
  std::size_t senders() const { return senders_.size(); }
  std::size_t header_only_messages() const { return headers_.size(); }

 private:
  using Context = RequestContext;

  // rx_dispatch.cc: the checks, in their order
  pds::Answer dispatch(Context& c);
  pds::Answer check_form(Context& c);
  Endpoint* find_endpoint(const Context& c, RiKind space, ReturnCode& code);
  pds::Answer check_address(Context& c);
  pds::Answer begin(Context& c);
  pds::Answer on_datagram(Context& c);
  pds::Answer on_message_error_packet(Context& c);
  pds::Answer proceed(Context& c, RxMessage& m);
  pds::Answer reject(Context& c, ReturnCode code);
  pds::Answer answer_failed(Context& c);

  // rx_sends.cc
  pds::Answer begin_send(Context& c);
  pds::Answer take_in(Context& c, RiSpace& space, Sender* sender);
  Receive* match(Instant now, RiSpace& space, const Incoming& incoming, std::uint64_t need);
  pds::Answer deliver(Context& c, RiSpace& space, Receive& r);
  pds::Answer capture(Context& c, RiSpace& space, Unexpected* header);
  pds::Answer keep(Context& c, Unexpected& u);
  void enlist(Context& c, RiSpace& space, Unexpected& u, Unexpected* header);
  pds::Answer proceed_receive(Context& c, RxMessage& m);
  pds::Answer proceed_capture(Context& c, RxMessage& m);
  void take(RiSpace& space, Receive& receive, std::uint64_t end);
  void bind(RxMessage& m, Receive& r, std::uint64_t buffer_offset);
  void place(RxMessage& m, const RequestView& r);
  void complete_receive(Instant now, Endpoint& endpoint, Receive& r, Completion& completion);
  void release_receive(Receive& r);
  void retire_multi_recv(Instant now, RiSpace& space, Receive& r);
  void unlink_unexpected(Unexpected& u);
  void release_unexpected(Unexpected& u);

  // rx_rendezvous.cc
  pds::Answer begin_rendezvous(Context& c);
  void note_rest(const Context& c, Unexpected& u);
  pds::Answer deliver_rendezvous(Context& c, RiSpace& space, Receive& receive);
  pds::Answer end_eager_part(Context& c, RxMessage& m);
  void adopt_rendezvous(Instant now, Unexpected& u, Receive& r, std::uint64_t start,
                        std::uint64_t limit, std::size_t copied);
  void bind_rendezvous(Unexpected& u, Receive& r, std::uint64_t start, std::uint64_t limit);
  void fetch_rest(Instant now, Unexpected& u);
  void end_rendezvous(Instant now, Unexpected& u, ReturnCode code);
  void leave_fetching(Instant now, Unexpected& u, ReturnCode told);
  void on_fetched(Instant now, Fetch& fetch, ReturnCode code) override;
  void drop_idle_fetches(Instant now);

  // rx_defer.cc
  bool may_defer(const Context& c, const Sender& sender) const;
  pds::Answer defer(Context& c, RiSpace& space, Sender& sender, Unexpected* header);
  void sink_deferred(Instant now, Unexpected& u);
  pds::Answer begin_restarted(Context& c);
  pds::Answer end_restarted(Context& c, Unexpected& u);
  pds::Answer on_restart(Context& c);

  // rx_order.cc
  pds::Answer begin_sequenced(Context& c, Sender* sender);
  Stream* open_stream(const Context& c, Sender* sender);
  pds::Answer take_turn(Context& c, RiSpace& space, Stream& stream);
  pds::Answer hold(Context& c, Stream& stream);
  void pass_to(Instant now, Stream& stream, std::uint32_t number);
  void surface_all(Instant now, Stream& stream);
  void surface(Instant now, Stream& stream);
  void give_to_receive(Instant now, RiSpace& space, Unexpected& u, Receive& r);
  void drop_held(Unexpected& u);
  void close_streams(Instant now, const Endpoint& endpoint);
  void pass_idle_gaps(Instant now);

  // rx_without_room.cc
  pds::Answer refuse_for_lack(Context& c, RiSpace& space, Sender& sender, Unexpected* header);
  pds::Answer refuse_closed(Context& c, Sender& sender);
  pds::Answer deliver_claimed(Context& c, RiSpace& space, Unexpected& header);
  bool reopens(Context& c, RiSpace& space, Sender& sender);
  void throw_away(Unexpected& header);
  bool cancel_claimed(Instant now, Endpoint& endpoint, std::uint64_t context);
  void drop_idle_headers(Instant now);

  // rx_atomics.cc
  struct Amo;
  pds::Answer on_atomic(Context& c);
  pds::Answer begin_atomic(Context& c, const Amo& amo);
  pds::Answer begin_tagged_atomic(Context& c, const Amo& amo);
  pds::Answer refuse_atomic(Context& c, ReturnCode code);
  pds::Answer refuse_unmatched_atomic(Context& c, RiSpace& space);
  bool perform(Context& c, const Amo& amo, const IovList& memory, std::uint64_t start,
               pds::Answer& answer);
  bool perform_and_return(Context& c, const Amo& amo, const IovList& memory, std::uint64_t start,
                          pds::Answer& answer);
  void complete_atomic(Context& c, std::uint64_t key);

  // rx_failures.cc
  pds::Answer fail(Context& c, RxMessage& m, ReturnCode code);
  pds::Answer answer_discarded(Context& c, RxMessage& m);
  void abandon(Instant now, RxMessage& m, ReturnCode told, ReturnCode completed);
  void drop_idle_messages(Instant now);

  // rx_post.cc
  Receive* make_receive(Endpoint& endpoint, const ReceiveRequest& request, const Peer* source,
                        PostError& error);
  PostResult<const Peer*> source_filter(PeerId source) const;
  void post(Instant now, Receive& r);
  bool take_unexpected(Instant now, RiSpace& space, Receive& r);
  void adopt(Instant now, Unexpected& u, Receive& r);
  void discard(Instant now, Unexpected& u);

  Core& core_;
  LoopClock clock_;
  ChunkedPool<Receive> receives_;
  RxMessageTable messages_;
  UnexpectedStore store_;
  DeliveryReports reports_;
  SenderTable senders_;
  MessageShares shares_;
  Gates gates_;
  HeaderEntries headers_;
  ReadReturns returns_;
  RmaTarget rma_;
  Fetches fetches_;
  HoldingList holding_;   ///< streams of which messages came before their turn
  std::size_t held_ = 0;  ///< those messages
  ReceiveList
      orphans_;  ///< between both steps of closing: the last message placed into each was dropped
};

}  // namespace uet::ses
