/// The initiator: takes operations, has them carried, hears what became of them. [SES 4, 17]
#pragma once

#include "ses/core.h"
#include "ses/responses.h"
#include "ses/slab.h"
#include "ses/small_reads.h"
#include "ses/tx_op.h"

namespace uet::ses {

class Transmitter final : private Fetcher, private RegionReads, private Restarts {
 public:
  explicit Transmitter(Core& core);
  ~Transmitter() override;
  Transmitter(const Transmitter&) = delete;
  Transmitter& operator=(const Transmitter&) = delete;

  // --- From the user
  PostResult<Posted> send(Instant now, Endpoint& endpoint, const SendRequest& request);
  PostResult<Posted> rma(Instant now, Endpoint& endpoint, const RmaRequest& request);
  PostResult<Posted> atomic(Instant now, Endpoint& endpoint, const AtomicRequest& request);
  bool cancel(Instant now, Endpoint& endpoint, std::uint64_t context);
  void close_endpoint(Instant now, Endpoint& endpoint);
  std::size_t free_operations() const { return ops_.available() - kept_for_fetches_; }
  std::size_t active_operations() const { return ops_.in_use(); }

  // --- From the carrier
  pds::SegmentInfo emit_segment(pds::MessageToken token, std::uint32_t segment, pds::PdcRef pdc,
                                base::Psn psn, net::Packet& packet);
  void on_response(Instant now, pds::MessageToken token, std::uint32_t segment,
                   std::uint8_t next_hdr, std::span<const std::uint8_t> response);
  void on_further_response(Instant now, pds::PdcRef pdc, std::uint8_t next_hdr,
                           std::span<const std::uint8_t> bytes);
  pds::Answer on_return_data(Instant now, const pds::RxRequest& request);
  void on_message_error(Instant now, pds::MessageToken token, pds::PdsError error);
  void on_pdc_gone(Instant now, pds::PdcRef pdc, pds::PdsError error);
  void on_pdc_closed(Instant now, pds::PdcRef pdc);
  std::uint32_t yield_locks(Instant now, pds::PdcRef pdc);
  void on_resume(Instant now);

  // --- Time
  void on_deadline(Instant now);
  Instant next_deadline() const;

 private:
  // tx_post.cc: into the queues and out of them
  struct Common;
  PostResult<Posted> send_datagram(Instant now, Endpoint& endpoint, const SendRequest& request);
  PostResult<TxOp*> prepare(Instant now, Endpoint& endpoint, const Common& common,
                            SesOpcode opcode);
  static void assign(TxOp& op, Endpoint& endpoint, Flow& flow, SesOpcode opcode,
                     std::uint64_t length);
  bool copy_for_inject(TxOp& op, const Common& common);
  Flow* flow_for(Endpoint& endpoint, Peer& peer);
  void enqueue(Instant now, TxOp& op);
  void pump(Instant now, Flow& flow);
  bool may_start(const Flow& flow, const TxOp& op) const;
  bool must_drain(const Lane& lane, const TxOp& op) const;
  bool submit(Instant now, TxOp& op);
  void defer(Flow& flow);
  void pump_deferred(Instant now);
  void release_flow_if_idle(Flow& flow);

  // tx_rendezvous.cc
  PostResult<Posted> send_long(Instant now, TxOp& op);
  bool may_begin_rendezvous(const TxOp& op) const;
  bool begin_rendezvous(TxOp& op, std::uint32_t eager);
  void withdraw_source(const TxOp& op);
  bool becomes_rendezvous(TxOp& op);
  void prefer_rendezvous(TxOp& op);
  void size_rendezvous(TxOp& op, pds::TxMessage& message);
  void note_wanted(TxOp& op, const ResponseView& response);
  void on_region_read(Instant now, PoolRef operation, std::uint64_t length) override;
  bool fetch(Instant now, Fetch& fetch, const FetchRequest& request) override;
  void give_up(Instant now, Fetch& fetch) override;

  // tx_defer.cc
  void make_deferrable(TxOp& op, std::uint32_t attempt);
  void note_captured(TxOp& op, const ResponseView& response);
  void wait_for_restart(Instant now, TxOp& op);
  void restart(Instant now, TxOp& op, std::uint32_t target_token);
  ReturnCode on_restart(Instant now, const Endpoint& endpoint, const net::FabricAddress& source,
                        const RequestView& request) override;
  TxOp* find_deferrable(std::uint32_t token);

  // tx_order.cc
  bool wants_spray(const TxOp& op) const;
  bool is_stream_full(const TxOp& op) const;
  static bool is_stream_known(const TxOp& op);
  void join_stream(TxOp& op);
  void leave_stream(TxOp& op);
  bool leaves_gap(const TxOp& op, ReturnCode code) const;
  void fill_gap(TxOp& op);
  bool may_fall_back(const TxOp& op) const;
  void fall_back(Lane& lane);
  void note_taken(TxOp& op);

  // tx_atomics.cc
  PostResult<AtomicPart*> describe_atomic(Instant now, const AtomicRequest& request);
  std::size_t atomic_payload(const TxOp& op, std::uint32_t segment) const;
  void emit_atomic(const TxOp& op, std::uint32_t segment, net::Packet& packet) const;
  void size_atomic(TxOp& op, pds::TxMessage& message) const;

  // tx_emit.cc
  bool fits_medium(const TxOp& op) const;
  bool fits_small(const TxOp& op) const;
  std::size_t emit_header(const TxOp& op, std::uint32_t segment, net::Packet& packet) const;
  std::size_t emit_rendezvous(const TxOp& op, std::uint32_t segment, net::Packet& packet) const;
  void emit_message_error(const TxOp& op, net::Packet& packet) const;
  void emit_await_delivery(const TxOp& op, net::Packet& packet) const;

  // tx_answers.cc
  TxOp* find(pds::MessageToken token);
  TxOp* find_carried(std::uint16_t message_id);
  TxOp* find_returning(std::uint16_t message_id);
  void interpret(Instant now, TxOp& op, std::uint8_t next_hdr, std::span<const std::uint8_t> bytes);
  void interpret_await(TxOp& op, const ResponseView& response);
  bool place_read_data(TxOp& op, const ResponseView& response);
  bool is_too_far(const TxOp& op, const ResponseView& response) const;
  void fail_semantic(TxOp& op, ReturnCode code);
  void advance(Instant now, TxOp& op);
  template <typename Visit>
  void for_each_waiting(pds::PdcRef pdc, Visit&& visit);
  bool is_owed_something(const TxOp& op) const;

  // tx_retry.cc
  void conclude(Instant now, TxOp& op);
  void await_delivery(Instant now, TxOp& op);
  bool wants_retry(const TxOp& op) const;
  void retry(Instant now, TxOp& op);
  void recover_lane(Instant now, Flow& flow, Lane& lane);
  void resume_lane(Instant now, Flow& flow, Lane& lane);
  base::Duration back_off(std::uint32_t retries);

  // tx_end.cc
  void leave_carrier(Instant now, TxOp& op, bool pdc_is_gone);
  void end_behind(Instant now, TxOp& first);
  void finish(Instant now, TxOp& op, ReturnCode code);
  void release(TxOp& op);
  void release_memory(TxOp& op);
  void want_truncation(Instant now, TxOp& op);
  void truncate_now(Instant now, TxOp& op);
  void detach(Instant now, TxOp& op);
  void unlink_waiting(TxOp& op);

  Lane& lane_of(TxOp& op) { return op.flow->lanes[op.lane]; }

  Core& core_;
  ChunkedPool<TxOp> ops_;
  ChunkedPool<AtomicPart> atomics_;
  ChunkedPool<Flow> flows_;
  Slab inject_slab_;
  CoveragePool windows_;
  SmallReads small_reads_;
  Timers timers_;
  OpList<&TxOp::all_hook> all_;
  OpList<&TxOp::extra_hook> to_truncate_;
  FlowList deferred_;
  FlowList blocked_;
  bool work_deferred_ = false;             ///< something waits for the end of an upcall
  std::uint32_t waiting_for_targets_ = 0;  ///< operations with waits_for_target
  std::uint32_t waiting_questions_ = 0;    ///< of those, with awaits_delivery
  unsigned id_index_bits_;
  std::uint32_t kept_for_fetches_;  ///< descriptors that users do not get
  std::uint32_t next_stream_ = 0;   ///< 0: none was used yet
};

}  // namespace uet::ses
