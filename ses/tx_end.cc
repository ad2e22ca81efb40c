// How operations end: complete, failed, cancelled, orphaned.
#include <algorithm>

#include "ses/transmitter.h"

namespace uet::ses {
namespace {

ReturnCode code_for(pds::PdsError error) {
  return error == pds::PdsError::kPeerSilent ? ReturnCode::kPeerSilent : ReturnCode::kUndeliverable;
}

/// May the whole message be sent again, although the carrier cannot say what of it was delivered? Reads and plain writes put
/// the same bytes in the same place. A send, or a write that makes a completion, would be seen twice, and an atomic be executed
/// twice, so they are repeated only when no packet can have been delivered. [decision 0051]
bool may_repeat(const TxOp& op, pds::PdsError error) {
  // Who offered a message is alive, and short of room for a moment: its reads, or the request to send it again, come again until the
  // receive has waited for too long.
  if (op.fetch != nullptr && error == pds::PdsError::kNackExhausted) return true;
  if (!pds::is_retryable(error)) return false;
  if (op.awaits_delivery || op.fills_gap) return true;
  if (op.opcode == wire::SesOpcode::kDeferrableRtr) return true;  // the second one changes nothing
  const bool is_new = op.answered == 0 && pds::was_not_delivered(error);
  return is_new || op.is_idempotent();
}

/// Each packet of an atomic is a request of its own, so behind the first there is no message to end.
bool can_be_truncated(const TxOp& op) {
  return op.atomic == nullptr || op.emitted == 0;
}

}  // namespace

/// The carrier is done with this attempt.
void Transmitter::leave_carrier(Instant now, TxOp& op, bool pdc_is_gone) {
  if (op.holds_lock() && op.pdc && !pdc_is_gone) core_.carrier->unlock(now, op.pdc);
  small_reads_.remove(op);
  if (op.truncate_wanted) {
    to_truncate_.erase(to_truncate_.iterator_to(op));
    op.truncate_wanted = false;
  }
  if (op.waits_for_target) {
    --waiting_for_targets_;
    waiting_questions_ -= op.awaits_delivery ? 1 : 0;
  }
  op.waits_for_target = false;
  --lane_of(op).carried;
}

/// The one completion of the operation. It must be in no queue but those of its flow and of all
/// operations.
void Transmitter::finish(Instant now, TxOp& op, ReturnCode code) {
  Endpoint* endpoint = op.endpoint;
  const Completion completion{.kind = op.kind(),
                              .code = code,
                              .context = op.context,
                              .length = code == ReturnCode::kOk ? op.length : 0,
                              .tag = op.is_tagged() ? op.mkey_match : 0,
                              .data = op.header_data,
                              .has_data = op.has_header_data,
                              .user_flags = op.user_flags};
  Fetch* const fetch = op.fetch;  // such an operation is silent
  const bool tell =
      endpoint != nullptr && !(op.silent && (code == ReturnCode::kOk || fetch != nullptr));
  core_.trace.emit(now, base::EventId::kMessageCompleted, 0, {}, static_cast<std::uint64_t>(code),
                   op.length);
  Flow& flow = *op.flow;
  Lane& lane = lane_of(op);
  if (endpoint != nullptr) --endpoint->sends;
  const bool leaves_one = op.is_sequenced && leaves_gap(op, code);
  if (op.is_sequenced && !leaves_one) leave_stream(op);
  if (leaves_one)
    fill_gap(op);
  else
    release(op);
  recover_lane(now, flow, lane);
  if (flow.operations.empty()) {
    release_flow_if_idle(flow);
  } else if (flow.waiting_fences > 0) {
    pump(now, flow);
  }
  if (tell) return endpoint->complete(completion);
  if (fetch == nullptr) return;
  ++kept_for_fetches_;
  core_.fetch_sink->on_fetched(now, *fetch, code);
}

void Transmitter::release(TxOp& op) {
  all_.erase(all_.iterator_to(op));
  op.flow->operations.erase(op.flow->operations.iterator_to(op));
  release_memory(op);
  Peer* peer = op.peer;
  ops_.release(&op);
  core_.peers.unhold(*peer);
}

void Transmitter::release_memory(TxOp& op) {
  timers_.cancel(op.retry_timer);
  op.iov.clear(core_.iov_pool);
  if (op.inject_block != nullptr) {
    inject_slab_.give_back(op.inject_block);
    inject_slab_.unreserve(op.inject_cost);
    op.inject_block = nullptr;
  }
  if (op.atomic != nullptr) {
    atomics_.release(op.atomic);
    op.atomic = nullptr;
  }
  op.returned.clear(windows_);
  op.own_token = 0;
  if (op.is_rendezvous) withdraw_source(op);
}

/// [SES 10] The rest of the message is not wanted: end it with MSG_ERROR. Not from within an
/// upcall, where the carrier may be walking over this very message.
void Transmitter::want_truncation(Instant now, TxOp& op) {
  if (op.truncate_wanted || op.error_segment != 0 || !can_be_truncated(op)) return;
  if (core_.upcall_depth == 0) {
    truncate_now(now, op);
    return;
  }
  op.truncate_wanted = true;
  to_truncate_.push_back(op);
  work_deferred_ = true;
}

void Transmitter::truncate_now(Instant now, TxOp& op) {
  if (op.emitted >= op.segments || !can_be_truncated(op)) return;
  const pds::MessageToken token = make_token(TokenKind::kOperation, op.pool_index, op.attempt);
  if (op.emitted == 0) {
    // No peer has heard of this message: forget it.
    core_.carrier->abort(now, token);
    leave_carrier(now, op, false);
    finish(now, op, op.cancelled ? ReturnCode::kCancelled : op.code);
    return;
  }
  op.error_segment = core_.carrier->truncate(now, token, 1);
  op.segments = op.error_segment + 1;
}

bool Transmitter::cancel(Instant now, Endpoint& endpoint, std::uint64_t context) {
  for (TxOp& op : all_) {
    if (op.endpoint != &endpoint || op.context != context || op.cancelled || op.fetch != nullptr)
      continue;
    if (op.awaits_delivery) return false;  // the target has all of it
    if (op.state == OpState::kCarried) {
      // All is said, or executed in part: nothing to take back.
      if (op.emitted >= op.segments || !can_be_truncated(op)) return false;
      op.cancelled = true;
      want_truncation(now, op);
    } else {
      unlink_waiting(op);
      finish(now, op, ReturnCode::kCancelled);
    }
    return true;
  }
  return false;
}

/// Takes an operation that the carrier does not have out of its queue.
void Transmitter::unlink_waiting(TxOp& op) {
  Lane& lane = lane_of(op);
  if (op.state == OpState::kPending) lane.pending.erase(lane.pending.iterator_to(op));
  if (op.state == OpState::kFailed) lane.failed.erase(lane.failed.iterator_to(op));
  timers_.cancel(op.retry_timer);
  if (op.fence) {
    --op.flow->waiting_fences;
    op.fence = false;
  }
}

/// This endpoint's operations complete without an event from now on. What was injected still goes out, as it was
/// promised to.
void Transmitter::close_endpoint(Instant now, Endpoint& endpoint) {
  for (auto it = all_.begin(); it != all_.end();) {
    TxOp& op = *it++;
    if (op.endpoint == &endpoint) detach(now, op);
  }
  for (auto it = all_.begin(); it != all_.end(); ++it)
    if (it->flow->endpoint == &endpoint) it->flow->endpoint = nullptr;
}

void Transmitter::detach(Instant now, TxOp& op) {
  const bool own_memory =
      !op.returns_data && !op.is_rendezvous && (op.inject_block != nullptr || op.length == 0);
  --op.endpoint->sends;
  op.endpoint = nullptr;
  if (op.is_rendezvous) withdraw_source(op);
  const bool only_waits = op.awaits_delivery || op.fetch != nullptr;
  if (only_waits && op.state == OpState::kCarried && op.answered == op.segments) {
    leave_carrier(now, op, false);
    finish(now, op, ReturnCode::kCancelled);
    return;
  }
  if (own_memory && (op.state == OpState::kCarried || op.state == OpState::kPending)) return;
  if (op.state != OpState::kCarried) {
    unlink_waiting(op);
    finish(now, op, ReturnCode::kCancelled);
    return;
  }
  op.memory_gone = true;
  op.cancelled = true;
  op.iov.clear(core_.iov_pool);
  if (op.emitted < op.segments) want_truncation(now, op);
}

void Transmitter::on_message_error(Instant now, pds::MessageToken token, pds::PdsError error) {
  TxOp* op = find(token);
  if (op == nullptr) return;
  const bool was_out = !op->waits_for_target;  // else the caller goes through the list of all
  leave_carrier(now, *op, true);
  if (error == pds::PdsError::kPeerLost) op->peer_was_lost = true;
  fail_semantic(*op, code_for(error));
  const bool is_wanted = op->fills_gap || (op->endpoint != nullptr && !op->cancelled);
  const bool repeat = may_repeat(*op, error) && is_wanted &&
                      (core_.config.retry_limit == 0 || op->retries < core_.config.retry_limit);
  if (repeat) return retry(now, *op);
  if (error == pds::PdsError::kPeerSilent && was_out && lane_of(*op).must_empty)
    end_behind(now, *op);
  finish(now, *op, op->cancelled ? ReturnCode::kCancelled : op->code);
}

/// A rendezvous goes alone until the peer has taken one, and the peer says nothing: what waits for it would wait for as long again, one
/// after the other.
void Transmitter::end_behind(Instant now, TxOp& first) {
  auto& pending = lane_of(first).pending;
  while (!pending.empty()) {
    TxOp& op = pending.front();
    unlink_waiting(op);
    fail_semantic(op, first.code);
    finish(now, op, op.cancelled ? ReturnCode::kCancelled : op.code);
  }
}

/// Operations that have nothing outstanding but what the target owes them on this PDC; `visit` may end its operation.
template <typename Visit>
void Transmitter::for_each_waiting(pds::PdcRef pdc, Visit&& visit) {
  for (auto it = all_.begin(); it != all_.end() && waiting_for_targets_ > 0;) {
    TxOp& op = *it++;
    if (op.waits_for_target && op.pdc == pdc) visit(op);
  }
}

/// Reads whose requests were all answered have nothing outstanding that the carrier could report,
/// but their data will not come any more.
void Transmitter::on_pdc_gone(Instant now, pds::PdcRef pdc, pds::PdsError error) {
  for_each_waiting(pdc, [&](TxOp& op) {
    on_message_error(now, make_token(TokenKind::kOperation, op.pool_index, op.attempt), error);
  });
}

/// Questions wait for a receive, perhaps for long. Each is asked again later, and holds no place until then: else those that wait for
/// places here and there would wait for each other. [decision 142]
std::uint32_t Transmitter::yield_locks(Instant now, pds::PdcRef pdc) {
  if (waiting_questions_ == 0) return 0;
  std::uint32_t released = 0;
  for_each_waiting(pdc, [&](TxOp& op) {
    if (!op.awaits_delivery) return;
    leave_carrier(now, op, true);  // the lock goes with the answer to this call
    op.state = OpState::kBackoff;
    timers_.set(op.retry_timer, now + back_off(++op.times_asked));
    ++released;
  });
  return released;
}

/// A target answers what it owes before it acknowledges the end of the PDC. What it has not said by then it will never say:
/// everything was delivered, and nothing is known of what became of it. [SES 4.4]
void Transmitter::on_pdc_closed(Instant now, pds::PdcRef pdc) {
  for_each_waiting(pdc, [&](TxOp& op) {
    fail_semantic(op, ReturnCode::kUncor);
    conclude(now, op);
  });
}

}  // namespace uet::ses
