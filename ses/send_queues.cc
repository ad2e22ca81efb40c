#include "ses/send_queues.h"

#include <algorithm>

#include "ses/tx_segments.h"

namespace uet::ses {
namespace {

/// What is under way in the lane, for those behind it. [decision 142]
void note_plain(Lane& lane) {
  lane.carries_plain = true;
  lane.must_empty = false;
}

void note_rendezvous(Lane& lane, const TxOp& op) {
  if (lane.carried == 0) lane.carries_plain = false;
  lane.must_empty = !op.peer->takes_rendezvous;
}

/// The target need not know numbers that are further ahead of what it waits for.
bool waits_for_number(const TxOp& op) {
  return (op.may_spray || op.fills_gap) && !op.is_sequenced && op.wants_spray() &&
         op.stream().is_full();
}

/// What was refused for its number, or because the stream has no place, goes by ROD from now on, behind what is out. Else it is tried
/// again as it is.
void note_stream_refused(Lane& lane) {
  lane.is_way_refused = false;
  if (!lane.failed.empty()) lane.failed.front().stream().on_refused();
}

}  // namespace

SendQueues::SendQueues(Core& core, Operations& operations, RendezvousSources& sources)
    : core_(core),
      operations_(operations),
      sources_(sources),
      stream_names_(core.rng),
      flows_(operations.max(), 16) {}

SendQueues::~SendQueues() {
  blocked_.clear();
  ready_.clear();
}

Flow* SendQueues::flow_for(Endpoint& endpoint, Peer& peer) {
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
  flow->has_patient = false;
  flow->asked = flow->asked_piece = 0;
  flow->first_lane = 0;
  flow->wait = FlowWait::kNone;
  for (Lane& lane : flow->lanes) {
    lane.carried = lane.carried_sends = 0;
    lane.retries = 0;
    lane.only_generation = true;
    lane.is_sprayed = lane.is_way_refused = lane.carries_plain = lane.must_empty = false;
    lane.state = Lane::State::kOpen;
    lane.resume_timer.kind = TimerNode::Kind::kLaneResume;
    lane.resume_timer.owner = flow;
  }
  return flow;
}

void SendQueues::release_if_idle(Flow& flow) {
  if (!flow.operations.empty()) return;
  if (flow.wait != FlowWait::kNone) {
    FlowList& list = flow.wait == FlowWait::kRoom ? blocked_ : ready_;
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

void SendQueues::enqueue(Instant now, TxOp& op) {
  Flow& flow = *op.flow;
  op.sequence = flow.next_sequence++;
  op.state = OpState::kPending;
  op.retry_timer.kind = TimerNode::Kind::kOpRetry;
  op.retry_timer.owner = &op;
  flow.operations.push_back(op);
  Lane& lane = lane_of(op);
  if (op.fence) ++flow.waiting_fences;
  const bool is_alone =
      flow.wait == FlowWait::kNone && flow.waiting_fences == 0 && core_.upcall_depth == 0;
  // Nothing changed for the other lanes; and where nothing waits in this one, the operation need not either.
  const bool may_go = is_alone && lane.state == Lane::State::kOpen && lane.pending.empty() &&
                      !must_drain(lane, op) && !waits_for_number(op) && !has_asked_enough(op);
  if (may_go) {
    if (submit(now, op)) [[likely]]
      return;
    lane.pending.push_front(op);  // before what a sink posted meanwhile
    return block(flow);
  }
  lane.pending.push_back(op);
  if (!is_alone) return pump(now, flow);
  if (serve(now, flow, lane).lacks_room) block(flow);
}

void SendQueues::put_first(TxOp& op) {
  op.state = OpState::kPending;
  lane_of(op).pending.push_front(op);
}

void SendQueues::try_again(Instant now, TxOp& op) {
  timers_.cancel(op.retry_timer);
  put_first(op);
  pump(now, *op.flow);
}

void SendQueues::try_later(Instant now, TxOp& op, std::uint32_t tries) {
  op.state = OpState::kBackoff;
  timers_.set(op.retry_timer, now + pause_after(tries));
}

void SendQueues::recover(Instant now, TxOp& op, bool at_once) {
  Lane& lane = lane_of(op);
  op.state = OpState::kFailed;
  auto at = lane.failed.end();
  while (at != lane.failed.begin() && std::prev(at)->sequence > op.sequence) --at;
  lane.failed.insert(at, op);
  if (lane.state == Lane::State::kOpen) {
    lane.state = Lane::State::kDraining;
    lane.only_generation = true;
  }
  lane.only_generation = lane.only_generation && at_once;
  go_on(now, *op.flow, lane);
}

void SendQueues::put_off(Instant now, TxOp& op) {
  op.state = OpState::kDeferred;
  op.waits_since = now;
  if (core_.config.restart_limit > base::Duration{})
    timers_.set(op.retry_timer, now + core_.config.restart_limit);
}

void SendQueues::await_read(Instant now, TxOp& op) {
  op.waits_since = now;
  timers_.set(op.retry_timer, now + core_.config.message_idle);
}

void SendQueues::take_out(TxOp& op) {
  Lane& lane = lane_of(op);
  if (op.state == OpState::kPending) lane.pending.erase(lane.pending.iterator_to(op));
  if (op.state == OpState::kFailed) lane.failed.erase(lane.failed.iterator_to(op));
  timers_.cancel(op.retry_timer);
  if (op.fence) {
    --op.flow->waiting_fences;
    op.fence = false;
    mark_ready(*op.flow);  // what waited behind it goes on
  }
}

void SendQueues::leave(TxOp& op) {
  timers_.cancel(op.retry_timer);
  op.flow->operations.erase(op.flow->operations.iterator_to(op));
}

void SendQueues::go_on(Instant now, Flow& flow, Lane& lane) {
  if (lane.state != Lane::State::kDraining || lane.carried > 0) return;
  if (lane.failed.empty() || lane.only_generation) {
    resume(now, flow, lane);
    return;
  }
  lane.state = Lane::State::kBackoff;
  timers_.set(lane.resume_timer, now + pause_after(++lane.retries));
}

void SendQueues::resume(Instant now, Flow& flow, Lane& lane) {
  lane.state = Lane::State::kOpen;
  if (lane.is_way_refused) note_stream_refused(lane);
  for (TxOp& op : lane.failed) op.state = OpState::kPending;
  lane.pending.splice(lane.pending.begin(), lane.failed);
  pump(now, flow);
}

/// 1..2 times the minimum, doubled with each try.
base::Duration SendQueues::pause_after(std::uint32_t tries) {
  const std::int64_t min = std::max<std::int64_t>(core_.config.retry_backoff_min.ns(), 1);
  const auto spread = static_cast<std::uint32_t>(std::min<std::int64_t>(min, 0xffff'ffff));
  const std::int64_t first = min + core_.rng.below(spread);
  const unsigned doublings = std::min<std::uint32_t>(tries - 1, 20);
  return std::min(base::Duration::from_ns(first << doublings), core_.config.retry_backoff_max);
}

void SendQueues::pump(Instant now, Flow& flow) {
  if (flow.wait == FlowWait::kRoom) return;
  if (core_.upcall_depth > 0) {
    mark_ready(flow);
    return;
  }
  hand_over(now, flow);
}

bool SendQueues::hand_over(Instant now, Flow& flow) {
  if (flow.wait == FlowWait::kTurn) {  // its turn has come another way
    ready_.erase(ready_.iterator_to(flow));
    flow.wait = FlowWait::kNone;
  }
  std::uint8_t next_first = flow.first_lane;
  bool is_blocked = false, did = false;
  std::uint32_t fences;
  do {
    // A fence that starts frees what waits behind it, perhaps in a lane that was looked at before.
    fences = flow.waiting_fences;
    for (std::uint8_t n = 0; n < kLanes; ++n) {
      const std::uint8_t at = (flow.first_lane + n) % kLanes;
      const Served served = serve(now, flow, flow.lanes[at]);
      is_blocked = is_blocked || served.lacks_room;
      if (!served.did) continue;
      did = true;
      next_first = (at + 1) % kLanes;
    }
  } while (!is_blocked && flow.waiting_fences != fences);
  if (flow.waiting_fences > 0) hurry(now, flow);
  if (is_blocked) {
    flow.first_lane = next_first;  // lanes take turns where room is short
    block(flow);
  }
  return did;
}

/// What may start in `lane` goes to packet delivery.
SendQueues::Served SendQueues::serve(Instant now, Flow& flow, Lane& lane) {
  Served served;
  while (lane.state == Lane::State::kOpen && !lane.pending.empty() &&
         may_start(flow, lane.pending.front())) {
    TxOp& op = lane.pending.front();
    if (must_drain(lane, op)) {
      lane.state = Lane::State::kDraining;
      lane.only_generation = true;
      hurry(now, flow);
      break;
    }
    if (waits_for_number(op) || has_asked_enough(op)) break;
    served.lacks_room = !submit(now, op);
    if (served.lacks_room) break;
    lane.pending.erase(lane.pending.iterator_to(op));
    served.did = true;
  }
  return served;
}

void SendQueues::block(Flow& flow) {
  if (flow.wait == FlowWait::kTurn) ready_.erase(ready_.iterator_to(flow));
  flow.wait = FlowWait::kRoom;
  blocked_.push_back(flow);
}

/// [SES 2.5] The target's generation changed while older messages are out: those will be refused, and this one would be
/// taken before them. So it would where it goes another way than they did, and behind a rendezvous that the target does not know.
/// Gates hold up no RMA, so where that is in order with sends it waits for each of them. [SES 17]
bool SendQueues::must_drain(const Lane& lane, const TxOp& op) {
  if (!is_ordered_lane(op.lane) || lane.carried == 0) return false;
  if (op.is_rma()) return lane.carried_sends > 0 && op.follows_sends();
  if (lane.is_sprayed != op.wants_spray() || lane.must_empty) return true;
  const auto space = static_cast<std::size_t>(op.space());
  return lane.generation[space] != op.peer->generation[space];
}

/// A target has a record for each packet that it was asked for, and sends a part of them at a time: what is asked for long before
/// only pushes those records, and ours, out of the caches. READs of one packet leave no more than the others do.
bool SendQueues::has_asked_enough(const TxOp& op) const {
  const Flow& flow = *op.flow;
  return op.lane == kReadLane &&
         flow.asked > std::uint64_t{core_.config.asked_packets} * flow.asked_piece;
}

void SendQueues::end_asking(TxOp& op, std::uint64_t bytes) {
  if (op.asked == 0) return;
  Flow& flow = *op.flow;
  const std::uint64_t ended = std::min(op.asked, bytes);
  op.asked -= ended;
  flow.asked -= ended;
  const auto& waiting = flow.lanes[kReadLane].pending;
  if (!waiting.empty() && !has_asked_enough(waiting.front())) mark_ready(flow);
}

/// [SES 17] A fence holds its operation until everything before it is complete, and everything
/// behind it back.
bool SendQueues::may_start(const Flow& flow, const TxOp& op) const {
  if (flow.waiting_fences == 0) return true;
  if (op.fence && &flow.operations.front() != &op) return false;
  for (const TxOp& earlier : flow.operations) {
    if (earlier.sequence >= op.sequence) break;
    if (earlier.fence && earlier.state == OpState::kPending) return false;
  }
  return true;
}

/// Until one of them meets a receive: what would be refused for its length is not sent in vain. Behind messages that were sent as
/// they are it is: these may be refused, and a gate that was closed for one of them opens for a rendezvous that looks like it.
void SendQueues::prefer_rendezvous(TxOp& op) {
  const Lane& lane = lane_of(op);
  const bool may_pass = !is_ordered_lane(op.lane) || lane.carried == 0 || !lane.carries_plain;
  if (op.length > kSmallestPayload && !op.is_rendezvous && !op.awaits_delivery && may_pass)
    (void)sources_.begin(op, 0);
}

/// What may be acknowledged later frees nothing that others wait for.
bool SendQueues::is_patient(const Flow& flow, const TxOp& op) const {
  const bool is_plain = !op.is_rendezvous && !op.is_deferrable && !op.delivery_complete &&
                        !op.returns_data && op.retries == 0;
  return op.completion_may_wait && is_plain && flow.waiting_fences == 0 &&
         operations_.in_use() < operations_.max() / 2;
}

void SendQueues::hurry(Instant now, Flow& flow) {
  if (!flow.has_patient) return;
  flow.has_patient = false;
  for (const TxOp& op : flow.operations)
    if (op.completion_may_wait && op.state == OpState::kCarried)
      core_.carrier->hurry(now, op.token());
}

/// Begins a new attempt. False when the carrier has no room: the operation may be a rendezvous then, and its lane is as it was.
bool SendQueues::submit(Instant now, TxOp& op) {
  Lane& lane = lane_of(op);
  if (op.peer->lacks_room) [[unlikely]]
    prefer_rendezvous(op);
  const bool is_numbered = (op.may_spray || op.fills_gap) && op.wants_spray();
  if (op.may_spray) op.mode = is_numbered ? pds::Mode::kRud : pds::Mode::kRod;
  pds::TxMessage message;
  message.token = make_token(TokenKind::kOperation, op.pool_index, op.attempt + 1);
  message.destination = op.peer->address.fabric_address;
  message.mode = op.mode;
  message.rod_context = op.mode == pds::Mode::kRod ? op.flow->rod_context : 0;
  message.lock = op.holds_lock();
  op.error_segment = 0;
  plan_segments(core_, now, op, is_numbered, message);
  message.ack_may_wait = is_patient(*op.flow, op);
  if (core_.carrier->submit(now, message) == pds::SubmitResult::kAgain) return false;

  if (op.fence && op.retries == 0) {
    --op.flow->waiting_fences;
    op.fence = false;
  }
  op.flow->has_patient = op.flow->has_patient || message.ack_may_wait;
  begin_attempt(lane, op, is_numbered);
  core_.trace.emit(
      now, base::EventId::kMessageSubmitted, 0, {},
      static_cast<std::uint64_t>(op.is_rendezvous ? op.rendezvous_opcode() : op.wire_opcode()),
      op.length);
  return true;
}

void SendQueues::begin_attempt(Lane& lane, TxOp& op, bool is_numbered) {
  if (op.is_rendezvous)
    note_rendezvous(lane, op);
  else
    note_plain(lane);
  ++lane.carried;
  if (!op.is_rma()) ++lane.carried_sends;
  ++op.attempt;
  // That of a question names the message that is asked about; to a datagram nothing ever refers. [SES 6.5]
  if (!op.awaits_delivery && !op.is_datagram()) operations_.name(op);
  // A READ for a rendezvous is stamped as its source said. [WIRE 5.11]
  const bool has_generation = !op.is_datagram() && (!op.is_rma() || op.fetch != nullptr);
  op.ri_generation = has_generation ? op.peer->generation_of(op.space()) : 0;
  if (lane.carried == 1) {
    lane.generation = op.peer->generation;
    lane.is_sprayed = is_numbered;
  }
  if (is_numbered)
    op.stream().join(op, stream_names_);
  else if (op.is_sequenced)
    leave_stream(op, false);
  op.asked = op.lane == kReadLane ? op.length : 0;
  op.flow->asked += op.asked;
  if (op.lane == kReadLane) op.flow->asked_piece = std::min(op.piece, kLargestPayload);
  op.state = OpState::kCarried;
  op.emitted = op.answered = 0;
  op.semantic = Semantic::kNone;
  op.code = ReturnCode::kOk;
  op.bad_response = false;
  op.refused = 0;
  op.pdc = {};
  op.truncate_wanted = op.captured = op.is_delivered = false;
  op.was_deferred = op.is_restart_due = false;
}

void SendQueues::leave_stream(TxOp& op, bool is_taken) {
  SendStream& stream = op.stream();
  if (is_taken ? stream.take(op) : stream.leave(op)) mark_all_ready(*op.peer);
}

void SendQueues::mark_ready(Flow& flow) {
  if (flow.wait != FlowWait::kNone) return;
  flow.wait = FlowWait::kTurn;
  ready_.push_back(flow);
}

void SendQueues::mark_all_ready(const Peer& peer) {
  for (Flow* f = peer.flows; f != nullptr; f = f->next_of_peer) mark_ready(*f);
}

void SendQueues::pump_ready(Instant now) {
  while (!ready_.empty()) {
    Flow& flow = ready_.front();
    ready_.pop_front();
    flow.wait = FlowWait::kNone;
    pump(now, flow);
  }
}

/// Blocked flows are retried in turns until kRefusals are refused; packet delivery then calls again. Those that got something wait
/// behind all others, or two flows would never share what comes one by one.
void SendQueues::on_resume(Instant now) {
  constexpr int kRefusals = 4;
  // It says so when it may be asked again, so this is not held back as other upcalls are.
  const int depth = core_.upcall_depth;
  core_.upcall_depth = 0;
  int refusals = 0;
  const Flow* first_refused = nullptr;
  FlowList served;
  while (!blocked_.empty() && refusals < kRefusals && &blocked_.front() != first_refused) {
    Flow& flow = blocked_.front();
    blocked_.pop_front();
    flow.wait = FlowWait::kNone;
    const bool is_served = hand_over(now, flow);
    if (flow.wait != FlowWait::kRoom) continue;
    ++refusals;
    if (is_served) {
      served.splice(served.end(), blocked_, blocked_.iterator_to(flow));
    } else if (first_refused == nullptr) {
      first_refused = &flow;
    }
  }
  blocked_.splice(blocked_.end(), served);
  core_.upcall_depth = depth;
}

/// Whether its target gets more time: we were stopped, and perhaps the target with us.
bool SendQueues::waits_on(Instant now, TxOp& op) {
  const base::Duration patience =
      op.state == OpState::kDeferred ? core_.config.restart_limit : core_.config.message_idle;
  const Instant end = standstills_.end_of(op.waits_since, patience, now);
  if (end <= now) return false;
  timers_.set(op.retry_timer, end);
  return true;
}

TxOp* SendQueues::pop_expired(Instant now) {
  standstills_.note_turn(timers_.next(), now);
  while (TimerNode* node = timers_.pop(now)) {
    if (node->kind == TimerNode::Kind::kOpRetry) {
      TxOp& op = *static_cast<TxOp*>(node->owner);
      if (op.state == OpState::kDeferred || op.state == OpState::kCarried) {
        if (!waits_on(now, op)) return &op;
        continue;
      }
      try_again(now, op);
      continue;
    }
    Flow& flow = *static_cast<Flow*>(node->owner);
    for (Lane& lane : flow.lanes)
      if (&lane.resume_timer == node) resume(now, flow, lane);
  }
  return nullptr;
}

}  // namespace uet::ses
