/// The target: finds the buffer of each message, places its packets, answers them. [SES 7, 11, 13]
#pragma once

#include "ses/core.h"
#include "ses/responses.h"
#include "ses/rx_message.h"
#include "ses/slab.h"
#include "ses/unexpected_store.h"

namespace uet::ses {

/// A READ whose data goes back in packets of its own: complete when all were asked for and
/// acknowledged. Outlives the RxMessage, because the initiator may use the message id again before
/// the last acknowledgement is here.
struct ReadTally : Pooled {
  EndpointId endpoint = 0;
  Source source;
  std::uint64_t key = 0;
  std::size_t length = 0;
  std::uint32_t returns_open = 0;
  bool all_requested = false;
  bool failed = false;
};

/// What one packet of a READ asked for, on its way back: one packet, or several where the way carries less than the peer's.
/// [SES 6.3]
struct ReadReturn : Pooled {
  ListHook hook;  ///< while the carrier has no room for it
  pds::RxHandle request;
  PoolRef region;
  std::uint64_t start = 0;  ///< in the region
  std::uint32_t length = 0;
  std::uint32_t piece = 0;  ///< of it in each packet but the last
  std::uint32_t segments = 0;
  std::uint32_t answered = 0;
  std::uint32_t message_offset = 0;
  std::uint32_t request_length = 0;
  std::uint16_t request_message_id = 0;
  std::uint32_t job_id = 0;
  bool small = false;     ///< the request had no message id
  bool failed = false;    ///< a part was refused
  Block* copy = nullptr;  ///< ordered reads: the bytes as they were when the request arrived
  std::size_t copy_cost = 0;
  std::uint32_t attempt = 0;
  PoolRef tally;
};

class Receiver {
 public:
  explicit Receiver(Core& core);
  ~Receiver();
  Receiver(const Receiver&) = delete;
  Receiver& operator=(const Receiver&) = delete;

  // --- From the user (rx_post.cc)
  PostResult<Posted> receive(Instant now, Endpoint& endpoint, const ReceiveRequest& request);
  PostResult<Posted> peek(Instant now, Endpoint& endpoint, const PeekRequest& request);
  PostResult<Posted> claim_receive(Instant now, Endpoint& endpoint, const ReceiveRequest& request,
                                   bool discard);
  bool cancel(Instant now, Endpoint& endpoint, std::uint64_t context);
  void close_endpoint(Instant now, Endpoint& endpoint);
  void on_memory_enabled(EndpointId endpoint);
  std::size_t free_receives() const { return receives_.available(); }

  // --- From the carrier
  pds::Answer on_request(Instant now, const pds::RxRequest& request);
  pds::SegmentInfo emit_return(pds::MessageToken token, std::uint32_t segment, net::Packet& packet);
  void on_return_response(Instant now, pds::MessageToken token, std::uint8_t next_hdr,
                          std::span<const std::uint8_t> response);
  void on_return_error(Instant now, pds::MessageToken token);
  void on_pdc_gone(Instant now, pds::PdcRef pdc, const net::FabricAddress& peer,
                   std::uint16_t peer_pdcid);
  void on_resume(Instant now);
  std::uint32_t fill_of(EndpointId endpoint) const;

  // --- Time
  void on_deadline(Instant now);
  Instant next_deadline() const;

  std::size_t posted() const { return receives_.in_use(); }
  std::size_t messages() const { return messages_.size(); }
  std::size_t unexpected_messages() const { return store_.messages(); }
  std::size_t unexpected_bytes() const { return store_.bytes(); }

 private:
  /// One packet being handled.
  struct Context {
    Instant now;
    const pds::RxRequest& packet;
    RequestView request;
    MessageKey key;
    Endpoint* endpoint = nullptr;

    Incoming incoming() const {
      return {is_tagged(request.opcode) ? request.mkey_match : 0, request.job_id, request.initiator,
              packet.source};
    }
    bool is_ordered() const { return packet.mode == pds::Mode::kRod; }
  };

  // rx_dispatch.cc: the checks, in their order
  pds::Answer check_form(Context& c);
  pds::Answer check_address(Context& c);
  pds::Answer begin(Context& c);
  pds::Answer on_datagram(Context& c);
  pds::Answer on_message_error_packet(Context& c);
  pds::Answer proceed(Context& c, RxMessage& m);
  pds::Answer reject(Context& c, ReturnCode code);
  Source source_of(const Context& c) const;

  // rx_sends.cc
  pds::Answer begin_send(Context& c);
  Receive* match(Context& c, RiSpace& space);
  pds::Answer deliver(Context& c, RiSpace& space, Receive& r);
  pds::Answer capture(Context& c, RiSpace& space);
  pds::Answer refuse_for_lack(Context& c, RiSpace& space);
  pds::Answer proceed_receive(Context& c, RxMessage& m);
  pds::Answer proceed_capture(Context& c, RxMessage& m);
  void bind(RxMessage& m, Receive& r, std::uint64_t buffer_offset);
  void place(RxMessage& m, const RequestView& r);
  void complete_receive(Instant now, Receive& r, Completion& completion);
  void release_receive(Receive& r);
  void retire_multi_recv(Instant now, RiSpace& space, Receive& r);
  void release_unexpected(Unexpected& u);
  void enable_if_disabled(RiSpace& space);

  // rx_rma.cc
  pds::Answer begin_write(Context& c);
  pds::Answer begin_read(Context& c);
  MemoryRegion* find_region(Context& c, bool write, std::uint64_t& start, ReturnCode& code);
  pds::Answer replay_read(Context& c);
  pds::Answer return_data(Context& c, const MemoryRegion& region, std::uint64_t at,
                          ReadTally& tally);
  pds::Answer proceed_write(Context& c, RxMessage& m);
  pds::Answer proceed_read(Context& c, RxMessage& m);
  void complete_write(Context& c, std::uint64_t header_data);
  bool data_fits_ack(const Context& c) const;
  pds::Answer answer_with_data(Context& c, const MemoryRegion& region, std::uint64_t at);
  void complete_read(Instant now, EndpointId endpoint, const Source& source, std::uint64_t key,
                     std::size_t length);

  // rx_returns.cc
  ReadTally* make_tally(Context& c);
  ReadReturn* make_return(Context& c, const MemoryRegion& region, std::uint64_t at,
                          ReadTally& tally);
  void settle(Instant now, ReadTally& tally);
  void submit_return(Instant now, ReadReturn& r);
  void release_return(Instant now, ReadReturn& r, bool delivered);
  ReadReturn* find_return(pds::MessageToken token);

  // rx_failures.cc
  pds::Answer fail(Context& c, RxMessage& m, ReturnCode code);
  pds::Answer answer_discarded(Context& c, RxMessage& m);
  void abandon(Instant now, RxMessage& m, ReturnCode told, ReturnCode completed);
  void release_message(RxMessage& m);
  void drop_idle_messages(Instant now);
  void advance_clock(Instant now);

  // rx_post.cc
  Receive* make_receive(Endpoint& endpoint, const ReceiveRequest& request, const Peer* source,
                        PostError& error);
  PostResult<const Peer*> source_filter(PeerId source) const;
  Unexpected* find_unexpected(UnexpectedList& list, const Filter& filter) const;
  bool take_unexpected(Instant now, RiSpace& space, Receive& r);
  void adopt(Instant now, Unexpected& u, Receive& r);
  void discard(Instant now, Unexpected& u);
  void answer_held(Instant now, Unexpected& u, std::uint32_t modified_length, bool news);

  Core& core_;
  ChunkedPool<Receive> receives_;
  RxMessageTable messages_;
  UnexpectedStore store_;
  ChunkedPool<ReadReturn> returns_;
  ChunkedPool<ReadTally> tallies_;
  boost::intrusive::list<ReadReturn,
                         boost::intrusive::member_hook<ReadReturn, ListHook, &ReadReturn::hook>,
                         boost::intrusive::constant_time_size<false>>
      waiting_returns_;
  Slab read_copies_;
  std::vector<std::uint8_t> ack_data_;  ///< read data put together for one answer

  // Loop time: stands still while nobody turns the loop, so that a process that computes loses no
  // message. [SES 4.3 rule 9]
  Instant last_turn_;
  bool has_turned_ = false;
  std::int64_t loop_ns_ = 0;
  Instant next_tick_ = Instant::never();
  Instant returns_retry_ = Instant::never();
};

}  // namespace uet::ses
