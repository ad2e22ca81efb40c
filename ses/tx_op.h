/// Operations at the initiator, and the queues they wait in.
#pragma once

#include <array>
#include <boost/intrusive/list.hpp>
#include <optional>

#include "ses/amo.h"
#include "ses/coverage.h"
#include "ses/endpoint.h"
#include "ses/rendezvous.h"
#include "ses/request_view.h"
#include "ses/timers.h"
#include "ses/tokens.h"

namespace uet::ses {

struct Flow;

/// What the target said so far about the whole message. [SES 4.4]
enum class Semantic : std::uint8_t { kNone, kOk, kError };

enum class OpState : std::uint8_t {
  kPending,   ///< waits in its lane
  kCarried,   ///< the carrier has it, or read data is still to come
  kFailed,    ///< refused, waits until its lane may resend [SES 2.5 recover]
  kBackoff,   ///< refused, waits for its own timer
  kDeferred,  ///< the target will say when it wants it again
  kEnded,     ///< its user was told; what the target accepted may still come [SES 4.1]
};

/// What an atomic is beside its header. [SES 16.1]
struct AtomicPart : Pooled {
  AmoOpcode op{};
  AmoDatatype type{};
  std::uint8_t extension_bytes = 0;                     ///< with the operands of a compare-and-swap
  std::uint8_t operand_bytes = 0;                       ///< of `operand` that are payload
  std::array<std::uint8_t, kLargestElement> operand{};  ///< fetching: one element
  wire::U128 compare, swap;
};

struct TxOp : Pooled {
  ListHook all_hook;    ///< every operation, by age
  ListHook flow_hook;   ///< of one flow, by age
  ListHook lane_hook;   ///< pending or failed in its lane
  ListHook extra_hook;  ///< waits to be truncated
  ListHook small_hook;  ///< in SmallReads
  TimerNode retry_timer;
  base::Instant waits_since;  ///< put off, or for the next READ of its target

  // As posted.
  Endpoint* endpoint = nullptr;  ///< null: closed meanwhile: no completion is written
  Flow* flow = nullptr;
  Peer* peer = nullptr;
  std::uint8_t lane = 0;
  pds::Mode mode = pds::Mode::kRud;
  std::uint64_t sequence = 0;  ///< in its flow
  SesOpcode opcode{};
  IovList iov;
  std::uint64_t length = 0;
  std::uint64_t buffer_offset = 0;
  std::uint64_t mkey_match = 0;
  std::uint64_t header_data = 0;
  std::uint64_t context = 0;
  Block* inject_block = nullptr;
  std::size_t inject_cost = 0;
  AtomicPart* atomic = nullptr;  ///< of atomics alone
  Fetch* fetch = nullptr;        ///< a READ for the rest of a rendezvous: not the user's
  bool has_header_data = false;
  bool delivery_complete = false;
  bool fence = false;
  bool completion_may_wait = false;
  std::uint8_t user_flags = 0;
  // Of the endpoint, kept because packets may be cut after it was closed.
  std::uint32_t job_id = 0;
  std::uint32_t initiator_id = 0;
  EndpointId endpoint_id = 0;

  // Ordered without an ordered context. [decision 141]
  bool may_spray = false;     ///< as far as its endpoint and its peer's address say
  bool is_sequenced = false;  ///< has a number, and no answer yet
  bool fills_gap =
      false;  ///< what it was has ended: it only tells the target not to wait for the number
  // The target reads what does not come with the message. [SES 9, decision 142]
  bool is_rendezvous = false;
  // Its target may put it off. [SES 8.2]
  bool is_deferrable = false;
  bool was_deferred = false;    ///< this attempt
  bool is_restart_due = false;  ///< the target wants it again, and this attempt is not over
  std::uint32_t own_token = 0;
  std::uint32_t target_token = 0;  ///< of the restart; 0: the target may put it off
  std::uint32_t next_token = 0;    ///< with is_restart_due
  bool is_withdrawn =
      false;  ///< what it was has ended: it only tells the target that asked for it that it does not come
  SequenceField place;
  TxOp* before = nullptr;  ///< in its SendStream
  TxOp* behind = nullptr;

  // Rendezvous.
  std::uint32_t eager = 0;                         ///< bytes that go with the message
  std::uint16_t source_pid = 0, source_index = 0;  ///< of the endpoint through which it is read
  std::uint64_t source_key = 0;                    ///< of the region that the target reads
  std::uint64_t read_bytes = 0;                    ///< by the target, of the rest
  std::uint64_t wanted = 0;                        ///< by the target, of the rest

  // This attempt.
  OpState state = OpState::kPending;
  std::uint32_t attempt = 0;  ///< never reset: makes tokens of one slot differ
  std::uint16_t message_id = 0;
  std::uint8_t ri_generation = 0;
  bool medium = false;
  bool small = false;
  bool is_plain =
      false;  ///< a short send: one packet with the standard header, and nothing beside it
  bool in_small_reads = false;
  base::Psn request_psn;    ///< of the packet of a small read
  std::uint32_t piece = 0;  ///< of the message in each packet but the last
  std::uint32_t segments = 0;
  std::uint32_t emitted = 0;  ///< highest segment cut so far, plus 1
  std::uint32_t answered = 0;
  std::uint32_t error_segment =
      0;  ///< the packet that ends the message early, plus 1; 0 when there is none
  Semantic semantic = Semantic::kNone;
  ReturnCode code = ReturnCode::kOk;
  bool bad_response = false;
  Coverage returned;          ///< read data that arrived
  std::uint64_t refused = 0;  ///< bytes of it that will not come, or came in vain
  std::uint64_t owed =
      0;  ///< when the attempt ended: bytes of it that may still come; 1: a report of delivery
  std::uint64_t asked = 0;  ///< bytes of it that its flow counts as still to come
  pds::PdcRef pdc;
  bool truncate_wanted = false;
  bool waits_for_target = false;  ///< every packet is answered, and the target still owes something

  // Delivery complete: the target keeps the message until a receive takes it, and is asked about that. [SES 14.1]
  bool captured = false;         ///< this attempt was answered "unexpected"
  bool awaits_delivery = false;  ///< this attempt is the question
  bool is_delivered = false;
  bool peer_was_lost =
      false;  ///< while it was asked: then a target that does not know the message may be another process
  std::uint32_t keeper = 0;  ///< the process that said it has the message; 0: none has named itself
  std::uint32_t times_asked = 0;  ///< on PDCs whose places others wanted
  bool reads_tell =
      false;  ///< a rendezvous: its target knows no questions, so nothing but its READs says how far it is

  // All attempts.
  std::uint32_t retries = 0;
  bool cancelled = false;
  bool memory_gone = false;   ///< the user's buffer may no longer be touched
  bool returns_data = false;  ///< `iov` is filled with what the target has
  bool was_read = false;      ///< rendezvous: as much as the target wants

  /// Its present attempt, as packet delivery knows it.
  pds::MessageToken token() const { return make_token(TokenKind::kOperation, pool_index, attempt); }
  /// The first error wins, and wins over success: early packets may have been answered before the message failed.
  void fail(ReturnCode why) {
    if (semantic == Semantic::kError) return;
    semantic = Semantic::kError;
    code = why;
  }
  void succeed() {
    if (semantic == Semantic::kNone) semantic = Semantic::kOk;
  }
  /// The target has been told that it comes, and has heard of no packet of it since. [SES 8.2]
  bool is_awaited() const {
    const bool was_cut = state == OpState::kCarried && emitted > 0;
    return !is_withdrawn && (is_restart_due || (target_token != 0 && !was_cut));
  }
  /// Its user was told: nothing is left to do but to tell the target.
  bool is_notice() const { return fills_gap || is_withdrawn; }
  SendStream& stream() const { return peer->stream_of(space()); }
  /// Goes by RUD with a number, as far as its target is known to take that.
  bool wants_spray() const { return fills_gap || (may_spray && !stream().is_refused()); }

  /// Has no PDC: all that will ever be said about it comes with the answer to its one packet.
  bool is_connectionless() const { return mode >= pds::Mode::kRudi; }
  bool is_datagram() const { return opcode == SesOpcode::kDatagramSend; }
  /// Its PDC must stay open for what the target sends in the return direction.
  bool holds_lock() const { return (returns_data && !is_connectionless()) || awaits_delivery; }
  bool is_read() const { return opcode == SesOpcode::kRead; }
  wire::NextHdr form() const {
    if (small) return wire::NextHdr::kRequestSmall;
    return medium ? wire::NextHdr::kRequestMedium : wire::NextHdr::kRequestStd;
  }
  /// Reaches memory by its key.
  bool is_rma() const {
    return opcode >= SesOpcode::kWrite && opcode <= SesOpcode::kFetchingAtomic;
  }
  /// RMA for which its endpoint promises that it comes after the sends before it.
  bool follows_sends() const {
    if (!is_rma() || endpoint == nullptr) return false;
    const bool is_write = !is_read(), reads = is_read() || opcode == SesOpcode::kFetchingAtomic;
    return (is_write && endpoint->config.writes_follow_sends) ||
           (reads && endpoint->config.reads_follow_sends);
  }
  /// Of the opcodes that operations have these are the highest.
  bool is_tagged() const { return opcode >= SesOpcode::kTaggedSend; }
  /// Doing it twice does no harm.
  bool is_idempotent() const {
    return opcode == SesOpcode::kRead || (opcode == SesOpcode::kWrite && !has_header_data);
  }
  /// What the header says of a rendezvous.
  SesOpcode rendezvous_opcode() const {
    if (is_sequenced)
      return is_tagged() ? SesOpcode::kSequencedRendezvousTsend
                         : SesOpcode::kSequencedRendezvousSend;
    return is_tagged() ? SesOpcode::kRendezvousTsend : SesOpcode::kRendezvousSend;
  }
  /// What the header says of everything else.
  SesOpcode wire_opcode() const {
    if (is_deferrable)
      return is_tagged() ? SesOpcode::kDeferrableTsend : SesOpcode::kDeferrableSend;
    if (!is_sequenced) return opcode;
    if (fills_gap) return is_tagged() ? SesOpcode::kSequencedTgap : SesOpcode::kSequencedGap;
    return is_tagged() ? SesOpcode::kSequencedTsend : SesOpcode::kSequencedSend;
  }
  Space space() const { return is_tagged() ? Space::kTagged : Space::kUntagged; }
  OpKind kind() const {
    using enum OpKind;
    static constexpr std::array kKinds = {
        kSend, kWrite,      kRead, kAtomic,     kFetchingAtomic, kSend,   kSend,          kSend,
        kSend, kTaggedSend, kSend, kTaggedSend, kTaggedSend,     kAtomic, kFetchingAtomic};
    return kKinds[static_cast<std::size_t>(opcode)];
  }
};

template <ListHook TxOp::*Hook>
using OpList = boost::intrusive::list<TxOp, boost::intrusive::member_hook<TxOp, ListHook, Hook>,
                                      boost::intrusive::constant_time_size<false>>;

/// One queue of a flow. Ordered lanes share the flow's ROD context and recover as one when a
/// message is refused.
struct Lane {
  enum class State : std::uint8_t { kOpen, kDraining, kBackoff };

  OpList<&TxOp::lane_hook> pending;
  OpList<&TxOp::lane_hook> failed;  ///< by sequence
  std::uint32_t carried = 0;
  std::uint32_t carried_sends =
      0;  ///< of them those that a gate may refuse: sends, and atomics on receives
  std::uint32_t retries = 0;    ///< in a row
  bool only_generation = true;  ///< all failed ones were refused for their generation
  bool is_way_refused = false;  ///< the peer did not take some that were sprayed
  bool is_sprayed = false;      ///< how the carried ones go
  bool carries_plain = false;   ///< of them some are no rendezvous
  bool must_empty = false;      ///< one of them is a rendezvous that may be refused for what it is
  State state = State::kOpen;
  std::array<std::uint8_t, 2> generation{};  ///< what carried sends of each space were stamped with
  TimerNode resume_timer;
};

enum LaneIndex : std::uint8_t {
  kOrderedLane = 0,
  kOrderedTaggedLane = 1,
  kUnorderedLane = 2,
  kReadLane = 3,  ///< unordered too: READs wait for each other, nothing else for them
  kLanes = 4
};
constexpr bool is_ordered_lane(std::uint8_t lane) {
  return lane < kUnorderedLane;
}

/// Why a flow is in one of the lists of SendQueues.
enum class FlowWait : std::uint8_t {
  kNone,
  kTurn,  ///< it became able to go on during an upcall
  kRoom,  ///< the carrier took no more from it
};

/// All operations from one endpoint to one peer. Exists while there are any.
struct Flow : Pooled {
  ListHook wait_hook;
  FlowWait wait = FlowWait::kNone;
  Endpoint* endpoint = nullptr;
  Peer* peer = nullptr;
  Flow* next_of_peer = nullptr;
  std::uint32_t rod_context = 0;
  std::uint64_t next_sequence = 0;
  std::uint32_t waiting_fences = 0;
  bool has_patient = false;       ///< some that was handed over may be acknowledged later
  std::uint64_t asked = 0;        ///< bytes that READs of the lane asked for and that have not come
  std::uint32_t asked_piece = 0;  ///< of them, what a request asks for; 8 KiB where it is more
  OpList<&TxOp::flow_hook> operations;
  std::array<Lane, kLanes> lanes;
  std::uint8_t first_lane = 0;  ///< whose turn it is
};

inline Lane& lane_of(TxOp& op) {
  return op.flow->lanes[op.lane];
}

using FlowList =
    boost::intrusive::list<Flow, boost::intrusive::member_hook<Flow, ListHook, &Flow::wait_hook>,
                           boost::intrusive::constant_time_size<false>>;

}  // namespace uet::ses
