// Operations enter their flow and leave it for the carrier.
#include <algorithm>
#include <bit>

#include "ses/tx_common.h"

namespace uet::ses {
namespace {

constexpr std::uint32_t kMaxOperations = 0xffff;  // each needs its own 16-bit message id

std::uint32_t bounded(std::uint32_t max_sends) {
  return std::clamp<std::uint32_t>(max_sends, 1, kMaxOperations);
}

/// Those of the users, READs for rendezvous, and requests to restart.
std::uint32_t all_operations(const SesConfig& c) {
  return bounded(bounded(c.max_sends) + (c.rendezvous || c.defers ? c.max_fetches : 0));
}

/// [SES 2.4] Peers of the profile HPC do. Those that say nothing of their profile are asked; the key has already said that
/// its owner means it.
bool understands_rudi(const Address& peer) {
  constexpr std::uint16_t kProfiles = 0b111, kHpc = 0b100;
  return (peer.fep_cap & kProfiles) == 0 || (peer.fep_cap & kHpc) != 0;
}

/// What is under way in the lane, for those behind it. [decision 142]
void note_plain(Lane& lane) {
  lane.carries_plain = true;
  lane.must_empty = false;
}

}  // namespace

Transmitter::Transmitter(Core& core)
    : core_(core),
      ops_(all_operations(core.config), 32),
      atomics_(bounded(core.config.max_sends), 32),
      flows_(all_operations(core.config), 16),
      inject_slab_(std::size_t{bounded(core.config.max_sends)} *
                       (2 * std::size_t{core.config.inject_size} + 256),
                   std::max<std::size_t>(core.config.inject_size, 1)),
      windows_(all_operations(core.config)),
      small_reads_(core.config.small_headers),
      id_index_bits_(static_cast<unsigned>(std::bit_width(all_operations(core.config)))),
      kept_for_fetches_(core.config.rendezvous || core.config.defers
                            ? std::min(core.config.max_fetches, all_operations(core.config) - 1)
                            : 0) {
  core.fetcher = this;
  core.region_reads = this;
  core.restarts = this;
}

Transmitter::~Transmitter() {
  blocked_.clear();
  deferred_.clear();
  to_truncate_.clear();
  all_.clear();
}

namespace {

/// [PDS 3.1] What UUD has no way to carry: order, tags, and the knowledge that something arrived.
bool may_be_datagram(const Endpoint& endpoint, const SendRequest& r) {
  return !r.tagged && !r.delivery_complete && !endpoint.config.sends_ordered;
}

/// [PDS 3.1] A notification cannot be repeated, and a packet that may come twice keeps no order.
bool may_be_idempotent(const Endpoint& endpoint, const RmaRequest& r) {
  return !r.data && !endpoint.config.rma_ordered;
}

}  // namespace

PostResult<Posted> Transmitter::send(Instant now, Endpoint& endpoint, const SendRequest& request) {
  if (request.delivery == Delivery::kDatagram)
    return may_be_datagram(endpoint, request) ? send_datagram(now, endpoint, request)
                                              : PostError::kModeForbids;
  if (request.delivery != Delivery::kReliable) return PostError::kModeForbids;
  auto prepared = prepare(now, endpoint, Common(request),
                          request.tagged ? SesOpcode::kTaggedSend : SesOpcode::kSend);
  if (!prepared) return prepared.error();
  TxOp& op = **prepared;
  op.mkey_match = request.tagged ? request.tag : 0;
  op.buffer_offset = 0;
  const bool ordered = endpoint.config.sends_ordered;
  if (!ordered)
    op.lane = kUnorderedLane;
  else if (request.tagged && !endpoint.config.rma_ordered)
    op.lane = kOrderedTaggedLane;
  else
    op.lane = kOrderedLane;
  op.mode = op.lane == kUnorderedLane ? pds::Mode::kRud : pds::Mode::kRod;
  op.may_spray = core_.config.spray_ordered && ordered && !endpoint.config.rma_ordered &&
                 !endpoint.config.atomics_ordered &&
                 (op.peer->address.fep_cap & kRestoresOrder) != 0;
  if (op.length >= core_.config.rendezvous_from) [[unlikely]]
    return send_long(now, op);
  enqueue(now, op);
  return Posted{};
}

PostResult<Posted> Transmitter::send_datagram(Instant now, Endpoint& endpoint,
                                              const SendRequest& request) {
  auto prepared = prepare(now, endpoint, Common(request), SesOpcode::kDatagramSend);
  if (!prepared) return prepared.error();
  TxOp& op = **prepared;
  op.mkey_match = op.buffer_offset = 0;
  op.lane = kUnorderedLane;
  op.mode = pds::Mode::kUud;
  enqueue(now, op);
  return Posted{};
}

PostResult<Posted> Transmitter::rma(Instant now, Endpoint& endpoint, const RmaRequest& request) {
  if (request.read && (request.data || request.inject)) return PostError::kBadArgument;
  const bool idempotent = request.delivery == Delivery::kIdempotent;
  if (idempotent ? !may_be_idempotent(endpoint, request) : request.delivery != Delivery::kReliable)
    return PostError::kModeForbids;
  if (idempotent && (request.key & kKeyIdempotentSafe) == 0) return PostError::kBadKey;
  auto prepared =
      prepare(now, endpoint, Common(request), request.read ? SesOpcode::kRead : SesOpcode::kWrite);
  if (!prepared) return prepared.error();
  TxOp& op = **prepared;
  op.mkey_match = request.key;
  op.returns_data = request.read;
  op.buffer_offset = request.remote_offset;
  op.lane = endpoint.config.rma_ordered ? kOrderedLane : kUnorderedLane;
  op.mode = idempotent                    ? pds::Mode::kRudi
            : endpoint.config.rma_ordered ? pds::Mode::kRod
                                          : pds::Mode::kRud;
  enqueue(now, op);
  return Posted{};
}

/// Checks the request and fills a descriptor; nothing is left behind when it is refused.
PostResult<TxOp*> Transmitter::prepare(Instant now, Endpoint& endpoint, const Common& common,
                                       SesOpcode opcode) {
  Peer* peer = core_.peers.find(common.peer);
  if (peer == nullptr) return PostError::kBadPeer;
  if (common.iov.size() > std::min<std::size_t>(core_.config.iov_limit, kMaxIov))
    return PostError::kBadArgument;
  std::uint64_t length = 0;
  for (const iovec& piece : common.iov)
    if (__builtin_add_overflow(length, piece.iov_len, &length)) return PostError::kTooLong;
  if (length > core_.config.max_message) return PostError::kTooLong;
  if (common.delivery != Delivery::kReliable) {
    if (common.delivery == Delivery::kIdempotent && !understands_rudi(peer->address))
      return PostError::kModeForbids;
    if (length > core_.payload_to(now, *peer, length)) return PostError::kTooLong;
  }
  if (common.inject && length > core_.config.inject_size) return PostError::kInjectTooLong;
  TxOp* op = ops_.available() > kept_for_fetches_ ? ops_.acquire() : nullptr;
  if (op == nullptr) return PostError::kAgain;
  Flow* flow = flow_for(endpoint, *peer);
  op->inject_block = nullptr;
  op->inject_cost = 0;
  const bool has_buffer =
      flow != nullptr &&
      (common.inject && length > 0 ? copy_for_inject(*op, common)
                                   : op->iov.assign(common.iov, core_.iov_pool, common.device));
  if (!has_buffer) {
    if (flow != nullptr) release_flow_if_idle(*flow);
    ops_.release(op);
    return PostError::kAgain;
  }
  core_.peers.hold(*peer);
  assign(*op, endpoint, *flow, opcode, length);
  op->has_header_data = common.data->has_value();
  op->header_data = common.data->value_or(0);
  op->context = common.context;
  op->delivery_complete = common.delivery_complete;
  op->fence = common.fence;
  op->silent = common.silent;
  op->user_flags = common.user_flags;
  return op;
}

/// What the user does not choose.
void Transmitter::assign(TxOp& op, Endpoint& endpoint, Flow& flow, SesOpcode opcode,
                         std::uint64_t length) {
  op.endpoint = &endpoint;
  op.flow = &flow;
  op.peer = flow.peer;
  op.opcode = opcode;
  op.length = length;
  op.job_id = endpoint.config.job_id;
  op.initiator_id = endpoint.address.initiator_id;
  op.endpoint_id = endpoint.id;
  op.retries = 0;
  op.awaits_delivery = op.peer_was_lost = false;
  op.keeper = op.times_asked = 0;
  op.is_deferrable = op.was_deferred = op.is_restart_due = false;
  op.own_token = op.target_token = 0;
  op.cancelled = op.memory_gone = op.returns_data = op.was_read = false;
  op.may_spray = op.is_sequenced = op.fills_gap = op.is_rendezvous = false;
  op.fetch = nullptr;
}

/// The bytes go into a block of ours, so that the caller may reuse its buffer at once.
bool Transmitter::copy_for_inject(TxOp& op, const Common& common) {
  IovList from;
  if (!from.assign(common.iov, core_.iov_pool, common.device)) return false;
  const std::size_t cost = inject_slab_.cost_of(from.size());
  Block* block = nullptr;
  if (inject_slab_.reserve(cost)) {
    block = inject_slab_.take(from.size());
    if (block == nullptr) inject_slab_.unreserve(cost);
  }
  if (block != nullptr) {
    from.gather(0, block->bytes(), from.size());
    op.inject_block = block;
    op.inject_cost = cost;
    op.iov.assign(block->bytes(), from.size());
  }
  from.clear(core_.iov_pool);
  return block != nullptr;
}

Flow* Transmitter::flow_for(Endpoint& endpoint, Peer& peer) {
  for (Flow* f = peer.flows; f != nullptr; f = f->next_of_peer)
    if (f->endpoint == &endpoint) return f;
  Flow* flow = flows_.acquire();
  if (flow == nullptr) return nullptr;
  core_.peers.hold(peer);
  flow->endpoint = &endpoint;
  flow->peer = &peer;
  flow->next_of_peer = peer.flows;
  peer.flows = flow;
  // [SES 17] One ordering context per {endpoint, peer}; the same each time the flow comes back.
  flow->rod_context = (endpoint.id & 0xfff) << 20 | (peer.pool_index & 0xf'ffff);
  flow->next_sequence = 0;
  flow->waiting_fences = 0;
  flow->wait = FlowWait::kNone;
  for (Lane& lane : flow->lanes) {
    lane.carried = 0;
    lane.retries = 0;
    lane.only_generation = true;
    lane.is_sprayed = lane.is_way_refused = lane.carries_plain = lane.must_empty = false;
    lane.state = Lane::State::kOpen;
    lane.resume_timer.kind = TimerNode::Kind::kLaneResume;
    lane.resume_timer.owner = flow;
  }
  return flow;
}

void Transmitter::enqueue(Instant now, TxOp& op) {
  Flow& flow = *op.flow;
  op.sequence = flow.next_sequence++;
  op.state = OpState::kPending;
  op.retry_timer.kind = TimerNode::Kind::kOpRetry;
  op.retry_timer.owner = &op;
  all_.push_back(op);
  flow.operations.push_back(op);
  lane_of(op).pending.push_back(op);
  if (op.fence) ++flow.waiting_fences;
  ++op.endpoint->sends;
  pump(now, flow);
}

/// Hands over what may start, in the order of each lane.
void Transmitter::pump(Instant now, Flow& flow) {
  if (flow.wait == FlowWait::kRoom) return;
  if (core_.upcall_depth > 0) {
    defer(flow);
    return;
  }
  if (flow.wait == FlowWait::kTurn) {  // its turn has come another way
    deferred_.erase(deferred_.iterator_to(flow));
    flow.wait = FlowWait::kNone;
  }
  bool is_blocked = false;
  std::uint32_t fences;
  do {
    // A fence that starts frees what waits behind it, perhaps in a lane that was looked at before.
    fences = flow.waiting_fences;
    for (Lane& lane : flow.lanes) {
      while (lane.state == Lane::State::kOpen && !lane.pending.empty() &&
             may_start(flow, lane.pending.front())) {
        TxOp& op = lane.pending.front();
        if (must_drain(lane, op)) {
          lane.state = Lane::State::kDraining;
          lane.only_generation = true;
          break;
        }
        if ((op.may_spray || op.fills_gap) && is_stream_full(op)) break;
        if (!submit(now, op)) {
          is_blocked = true;
          break;
        }
      }
    }
  } while (!is_blocked && flow.waiting_fences != fences);
  if (!is_blocked) return;
  flow.wait = FlowWait::kRoom;
  blocked_.push_back(flow);
}

/// [SES 2.5] The target's generation changed while older messages are out: those will be refused, and this one would be
/// taken before them. So it would where it goes another way than they did, and behind a rendezvous that the target does not know.
bool Transmitter::must_drain(const Lane& lane, const TxOp& op) const {
  if (op.lane == kUnorderedLane || op.is_rma() || lane.carried == 0) return false;
  if (lane.is_sprayed != wants_spray(op) || lane.must_empty) return true;
  const auto space = static_cast<std::size_t>(op.space());
  return lane.generation[space] != op.peer->generation[space];
}

/// [SES 17] A fence holds its operation until everything before it is complete, and everything
/// behind it back.
bool Transmitter::may_start(const Flow& flow, const TxOp& op) const {
  if (flow.waiting_fences == 0) return true;
  if (op.fence && &flow.operations.front() != &op) return false;
  for (const TxOp& earlier : flow.operations) {
    if (earlier.sequence >= op.sequence) break;
    if (earlier.fence && earlier.state == OpState::kPending) return false;
  }
  return true;
}

/// Begins a new attempt. False when the carrier has no room; nothing has changed then.
bool Transmitter::submit(Instant now, TxOp& op) {
  Lane& lane = lane_of(op);
  if (op.peer->lacks_room) [[unlikely]]
    prefer_rendezvous(op);
  const std::uint32_t attempt = op.attempt + 1;
  const net::FabricAddress& destination = op.peer->address.fabric_address;
  op.piece =
      op.is_connectionless() ? core_.payload_mtu : core_.payload_to(now, *op.peer, op.length);
  op.segments = op.awaits_delivery ? 1 : segments_for(op.length, op.piece);
  const bool sprayed = (op.may_spray || op.fills_gap) && wants_spray(op);
  if (op.may_spray) op.mode = sprayed ? pds::Mode::kRud : pds::Mode::kRod;
  op.medium = core_.config.medium_headers && !sprayed && fits_medium(op);
  op.small = core_.config.small_headers && fits_small(op);
  if (core_.config.sends_deferrable) make_deferrable(op, attempt);

  pds::TxMessage message;
  message.token = make_token(TokenKind::kOperation, op.pool_index, attempt);
  message.destination = destination;
  message.mode = op.mode;
  message.rod_context = op.mode == pds::Mode::kRod ? op.flow->rod_context : 0;
  message.segments = op.segments;
  message.ses_header_bytes = op.medium ? wire::SesMedium::kSize : wire::SesStandardFirst::kSize;
  if (op.small) message.ses_header_bytes = wire::SesSmall::kSize;
  const bool is_bare = op.returns_data || op.awaits_delivery;
  message.payload_bytes = is_bare ? 0 : op.length;
  message.segment_payload = is_bare ? 0 : op.piece;
  message.lock = op.holds_lock();
  if (op.atomic != nullptr) size_atomic(op, message);
  if (op.is_rendezvous)
    size_rendezvous(op, message);
  else
    note_plain(lane);
  if (core_.carrier->submit(now, message) == pds::SubmitResult::kAgain) return false;

  if (op.fence && op.retries == 0) {
    --op.flow->waiting_fences;
    op.fence = false;
  }
  lane.pending.erase(lane.pending.iterator_to(op));
  ++lane.carried;
  op.attempt = attempt;
  // The slot makes the id unique among all outstanding operations, the attempt makes it differ from
  // the last one.
  if (!op.awaits_delivery)  // then it names the message that is asked about
    op.message_id = static_cast<std::uint16_t>(attempt << id_index_bits_ | op.pool_index);
  if (op.is_datagram()) op.message_id = 0;  // [SES 6.5] nothing ever refers to it
  op.ri_generation = op.is_rma() || op.is_datagram() ? 0 : op.peer->generation_of(op.space());
  if (lane.carried == 1) {
    lane.generation = op.peer->generation;
    lane.is_sprayed = sprayed;
  }
  if (sprayed)
    join_stream(op);
  else if (op.is_sequenced)
    leave_stream(op);
  op.state = OpState::kCarried;
  op.emitted = op.answered = op.error_segment = 0;
  op.semantic = Semantic::kNone;
  op.code = ReturnCode::kOk;
  op.bad_response = false;
  op.returned.clear(windows_);
  op.pdc = {};
  op.truncate_wanted = op.captured = op.is_delivered = false;
  op.was_deferred = op.is_restart_due = false;
  core_.trace.emit(
      now, base::EventId::kMessageSubmitted, 0, {},
      static_cast<std::uint64_t>(op.is_rendezvous ? op.rendezvous_opcode() : op.wire_opcode()),
      op.length);
  return true;
}

/// To be pumped when the upcall is over.
void Transmitter::defer(Flow& flow) {
  work_deferred_ = true;
  if (flow.wait != FlowWait::kNone) return;
  flow.wait = FlowWait::kTurn;
  deferred_.push_back(flow);
}

void Transmitter::pump_deferred(Instant now) {
  while (!deferred_.empty()) {
    Flow& flow = deferred_.front();
    deferred_.pop_front();
    flow.wait = FlowWait::kNone;
    pump(now, flow);
  }
}

/// Packet delivery has freed queue space, of one PDC or of all. Blocked flows are retried round-robin until kRefusals in a row are
/// refused; packet delivery then calls again.
void Transmitter::on_resume(Instant now) {
  constexpr int kRefusals = 4;
  // It says so when it may be asked again, so this is not held back as other upcalls are.
  const int depth = core_.upcall_depth;
  core_.upcall_depth = 0;
  int refusals = 0;
  const Flow* first_refused = nullptr;
  while (!blocked_.empty() && refusals < kRefusals && &blocked_.front() != first_refused) {
    Flow& flow = blocked_.front();
    blocked_.pop_front();
    flow.wait = FlowWait::kNone;
    pump(now, flow);
    if (flow.wait != FlowWait::kRoom) continue;
    ++refusals;
    if (first_refused == nullptr) first_refused = &flow;
  }
  core_.upcall_depth = depth;
}

void Transmitter::release_flow_if_idle(Flow& flow) {
  if (!flow.operations.empty()) return;
  if (flow.wait != FlowWait::kNone) {
    FlowList& list = flow.wait == FlowWait::kRoom ? blocked_ : deferred_;
    list.erase(list.iterator_to(flow));
    flow.wait = FlowWait::kNone;
  }
  for (Lane& lane : flow.lanes) timers_.cancel(lane.resume_timer);
  Flow** link = &flow.peer->flows;
  while (*link != &flow) link = &(*link)->next_of_peer;
  *link = flow.next_of_peer;
  Peer* peer = flow.peer;
  flows_.release(&flow);
  core_.peers.unhold(*peer);
}

}  // namespace uet::ses
