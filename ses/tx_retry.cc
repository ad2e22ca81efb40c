// Messages that the target refused for now. [SES 2.5, 12]
#include <algorithm>

#include "ses/transmitter.h"

namespace uet::ses {
namespace {

/// A generation that is wrong this often in a row changes faster than we hear of it: then we slow
/// down too.
constexpr std::uint32_t kImmediateRetries = 3;

bool is_retryable_code(ReturnCode code, bool rma) {
  switch (code) {
    case ReturnCode::kBadGeneration:
    case ReturnCode::kDisabled:
    case ReturnCode::kDisabledGen:
    case ReturnCode::kNoMatch:
      return !rma;
    case ReturnCode::kUncorTrnsnt:
    case ReturnCode::kDropped:
      return true;
    default:
      return false;
  }
}

}  // namespace

/// The attempt is over: every packet answered, and all data here or the message failed.
void Transmitter::conclude(Instant now, TxOp& op) {
  leave_carrier(now, op, false);
  if (op.semantic == Semantic::kOk && op.was_deferred) return wait_for_restart(now, op);
  if (op.semantic == Semantic::kOk) {
    if (op.is_sequenced) note_taken(op);
    if (op.is_rendezvous) op.peer->takes_rendezvous = true;
    lane_of(op).retries = 0;
    const bool is_owed = op.is_rendezvous ? !op.was_read : op.captured && op.delivery_complete;
    if (is_owed && !op.awaits_delivery && op.endpoint != nullptr) return await_delivery(now, op);
    finish(now, op, ReturnCode::kOk);
  } else if (wants_retry(op)) {
    retry(now, op);
  } else {
    finish(now, op, op.cancelled ? ReturnCode::kCancelled : op.code);
  }
}

/// [SES 14.1, decision 105] The target has the message and no receive for it. The operation stays, asks, and waits for the report.
/// It leaves its lane, and an ordered context: what is refused there, or waits for a successor of the PDC, must not wait for
/// this receive.
void Transmitter::await_delivery(Instant now, TxOp& op) {
  Flow& flow = *op.flow;
  Lane& lane = lane_of(op);
  op.awaits_delivery = true;
  op.may_spray = false;
  op.retries = 0;
  op.lane = kUnorderedLane;
  op.mode = pds::Mode::kRud;
  op.state = OpState::kPending;
  lane_of(op).pending.push_front(op);
  recover_lane(now, flow, lane);
  pump(now, flow);
}

bool Transmitter::wants_retry(const TxOp& op) const {
  if (op.fills_gap) return is_retryable_code(op.code, false);
  if (op.is_rendezvous && op.code == ReturnCode::kUnsupportedOp) return may_fall_back(op);
  if (op.is_sequenced && op.code == ReturnCode::kUnsupportedOp) return may_fall_back(op);
  if (op.cancelled || op.endpoint == nullptr || op.memory_gone) return false;
  if (!is_retryable_code(op.code, op.is_rma())) return false;
  if (op.atomic != nullptr && op.segments > 1) return false;  // other packets of it were executed
  return core_.config.retry_limit == 0 || op.retries < core_.config.retry_limit;
}

void Transmitter::retry(Instant now, TxOp& op) {
  Flow& flow = *op.flow;
  Lane& lane = lane_of(op);
  ++op.retries;
  const bool refuses_rendezvous = op.is_rendezvous && op.code == ReturnCode::kUnsupportedOp &&
                                  (!op.is_sequenced || is_stream_known(op));
  if (refuses_rendezvous) {
    op.peer->refuses_rendezvous = true;
    withdraw_source(op);
    op.is_rendezvous = false;
  }
  // What is sent in another way need not wait.
  const bool is_other = refuses_rendezvous || becomes_rendezvous(op);
  const bool only_generation =
      is_other || (op.code == ReturnCode::kBadGeneration && op.retries <= kImmediateRetries);
  core_.trace.emit(now, base::EventId::kMessageRetried, 0, {}, static_cast<std::uint64_t>(op.code),
                   op.retries);
  if (op.lane == kUnorderedLane) {
    if (only_generation) {
      op.state = OpState::kPending;
      lane.pending.push_front(op);
      pump(now, flow);
    } else {
      op.state = OpState::kBackoff;
      timers_.set(op.retry_timer, now + back_off(op.retries));
    }
    return;
  }
  // [SES 2.5 recover] Nothing more goes out on this lane until all that is out has its answer; then
  // what failed is sent again in its old order.
  op.state = OpState::kFailed;
  auto at = lane.failed.end();
  while (at != lane.failed.begin() && std::prev(at)->sequence > op.sequence) --at;
  lane.failed.insert(at, op);
  if (lane.state == Lane::State::kOpen) {
    lane.state = Lane::State::kDraining;
    lane.only_generation = true;
  }
  lane.only_generation = lane.only_generation && only_generation;
  if (op.code == ReturnCode::kUnsupportedOp && !refuses_rendezvous) lane.is_way_refused = true;
  recover_lane(now, flow, lane);
}

void Transmitter::recover_lane(Instant now, Flow& flow, Lane& lane) {
  if (lane.state != Lane::State::kDraining || lane.carried > 0) return;
  if (lane.failed.empty() || lane.only_generation) {
    resume_lane(now, flow, lane);
    return;
  }
  lane.state = Lane::State::kBackoff;
  timers_.set(lane.resume_timer, now + back_off(++lane.retries));
}

void Transmitter::resume_lane(Instant now, Flow& flow, Lane& lane) {
  lane.state = Lane::State::kOpen;
  if (lane.is_way_refused) fall_back(lane);
  for (TxOp& op : lane.failed) op.state = OpState::kPending;
  lane.pending.splice(lane.pending.begin(), lane.failed);
  pump(now, flow);
}

/// 1..2 times the minimum, doubled with each try.
base::Duration Transmitter::back_off(std::uint32_t retries) {
  const std::int64_t min = std::max<std::int64_t>(core_.config.retry_backoff_min.ns(), 1);
  const auto spread = static_cast<std::uint32_t>(std::min<std::int64_t>(min, 0xffff'ffff));
  const std::int64_t first = min + core_.rng.below(spread);
  const unsigned doublings = std::min<std::uint32_t>(retries - 1, 20);
  return std::min(base::Duration::from_ns(first << doublings), core_.config.retry_backoff_max);
}

void Transmitter::on_deadline(Instant now) {
  work_deferred_ = false;
  while (!to_truncate_.empty()) {
    TxOp& op = to_truncate_.front();
    to_truncate_.pop_front();
    op.truncate_wanted = false;
    truncate_now(now, op);
  }
  while (TimerNode* node = timers_.pop(now)) {
    if (node->kind == TimerNode::Kind::kOpRetry) {
      TxOp& op = *static_cast<TxOp*>(node->owner);
      if (op.state == OpState::kDeferred) {
        finish(now, op, ReturnCode::kMessageTimeout);
        continue;
      }
      op.state = OpState::kPending;
      lane_of(op).pending.push_front(op);
      pump(now, *op.flow);
    } else {
      Flow& flow = *static_cast<Flow*>(node->owner);
      for (Lane& lane : flow.lanes)
        if (&lane.resume_timer == node) resume_lane(now, flow, lane);
    }
  }
  pump_deferred(now);
}

Instant Transmitter::next_deadline() const {
  return work_deferred_ ? Instant() : timers_.next();
}

}  // namespace uet::ses
