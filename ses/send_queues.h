/// Operations on their way to packet delivery: queued in the order in which they may go, tried again after a pause.
#pragma once

#include "lib/base/standstills.h"
#include "ses/operations.h"

namespace uet::ses {

/// One Flow for each endpoint and peer with operations, of several lanes each. Knows when an operation may go and in which way; what
/// became of it when it went, others say: they put it back, or take it out.
class SendQueues {
 public:
  SendQueues(Core& core, Operations& operations, RendezvousSources& sources);
  ~SendQueues();
  SendQueues(const SendQueues&) = delete;
  SendQueues& operator=(const SendQueues&) = delete;

  /// The flow of an operation that is about to be posted; null when there is no room for one more.
  Flow* flow_for(Endpoint& endpoint, Peer& peer);
  /// A flow lives while it has operations.
  void release_if_idle(Flow& flow);

  // --- In
  /// A new operation, behind all others of its lane. It may leave at once.
  void enqueue(Instant now, TxOp& op);
  /// Before all others of its lane. pump() or mark_ready() sends it.
  void put_first(TxOp& op);
  /// The same, and as soon as it may.
  void try_again(Instant now, TxOp& op);
  /// After a pause that doubles with each of `tries`.
  void try_later(Instant now, TxOp& op, std::uint32_t tries);
  /// It was refused: its lane sends nothing new until all that is out has its answer, and then what failed in its old order.
  /// [SES 2.5 recover] `at_once`: without a pause, if that goes for all that failed.
  void recover(Instant now, TxOp& op, bool at_once);
  /// The peer did not take it for the way it went: its lane leaves that way, if nothing speaks against it, when it goes on.
  void note_way_refused(TxOp& op) { lane_of(op).is_way_refused = true; }
  /// It waits for its target to ask for it. [SES 8.2]
  void put_off(Instant now, TxOp& op);
  /// Its target reads it, and has to go on within the time for which a message may rest.
  void await_read(Instant now, TxOp& op);

  // --- Out
  /// Takes out an operation that packet delivery does not have.
  void take_out(TxOp& op);
  /// The target has its number, or will never wait for it.
  void leave_stream(TxOp& op, bool is_taken);
  /// So much of what a READ asked for has come, or will not. Others may be able to ask now.
  void end_asking(TxOp& op, std::uint64_t bytes);
  /// The operation is over; it is in its flow and in no lane.
  void leave(TxOp& op);
  /// An attempt of the lane is over. The last one that was out lets the lane go on.
  void go_on(Instant now, Flow& flow, Lane& lane);
  /// What of the flow is under way is waited for.
  void hurry(Instant now, Flow& flow);
  /// Hands over what may start, in the order of each lane.
  void pump(Instant now, Flow& flow);
  /// To be pumped when the upcall is over.
  void mark_ready(Flow& flow);
  void mark_all_ready(const Peer& peer);
  /// Packet delivery has freed queue space, of one PDC or of all.
  void on_resume(Instant now);

  // --- Time
  /// Tries what has waited long enough. Returns an operation that was put off for too long, or whose target has stopped reading, or
  /// null when all is done that was due.
  TxOp* pop_expired(Instant now);
  void pump_ready(Instant now);
  Instant next_deadline() const { return ready_.empty() ? timers_.next() : Instant(); }

 private:
  bool may_start(const Flow& flow, const TxOp& op) const;
  bool has_asked_enough(const TxOp& op) const;
  static bool must_drain(const Lane& lane, const TxOp& op);
  bool is_patient(const Flow& flow, const TxOp& op) const;
  bool waits_on(Instant now, TxOp& op);
  void prefer_rendezvous(TxOp& op);
  bool submit(Instant now, TxOp& op);
  /// True when something went.
  bool hand_over(Instant now, Flow& flow);
  struct Served {
    bool did = false, lacks_room = false;
  };
  Served serve(Instant now, Flow& flow, Lane& lane);
  void block(Flow& flow);
  void begin_attempt(Lane& lane, TxOp& op, bool is_numbered);
  void resume(Instant now, Flow& flow, Lane& lane);
  base::Duration pause_after(std::uint32_t tries);

  Core& core_;
  Operations& operations_;
  RendezvousSources& sources_;
  StreamNames stream_names_;
  ChunkedPool<Flow> flows_;
  Timers timers_;
  base::Standstills standstills_;
  FlowList ready_;  ///< those that can go on, once an upcall is over
  FlowList blocked_;
};

}  // namespace uet::ses
