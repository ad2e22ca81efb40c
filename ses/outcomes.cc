#include "ses/outcomes.h"

#include <algorithm>

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
  if (op.awaits_delivery || op.is_notice()) return true;
  if (op.opcode == wire::SesOpcode::kDeferrableRtr) return true;  // the second one changes nothing
  const bool is_new = op.answered == 0 && pds::was_not_delivered(error);
  return is_new || op.is_idempotent();
}

/// Each packet of an atomic is a request of its own, so behind the first there is no message to end.
bool can_be_truncated(const TxOp& op) {
  return op.atomic == nullptr || op.emitted == 0;
}

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

/// To what every peer takes, when the peer takes no numbered messages or no rendezvous, or has no place for one more stream.
bool may_fall_back(const TxOp& op) {
  const bool has_memory = op.endpoint != nullptr || op.inject_block != nullptr || op.length == 0;
  return has_memory && !op.cancelled && !op.memory_gone;
}

/// Ends without having been taken, as far as is known, and the target may wait for it.
bool leaves_gap(const TxOp& op, ReturnCode code) {
  const bool may_be_missed =
      !op.fills_gap && code != ReturnCode::kOk && code != ReturnCode::kPeerSilent;
  return may_be_missed && op.stream().leaves_gap(op);
}

/// Every packet is answered. What else the target has to say comes on the same PDC.
bool is_owed_something(const TxOp& op) {
  if (op.is_connectionless()) return false;
  // Everything is delivered and nothing said. The verdict may still come, unless it was among what could not be read.
  if (op.semantic == Semantic::kNone) return !op.bad_response;
  if (op.semantic == Semantic::kError) return false;
  if (op.awaits_delivery) return !op.is_delivered && !op.was_read && op.endpoint != nullptr;
  return op.returns_data && !op.returned.is_complete() && op.endpoint != nullptr;
}

/// Of one that did not go well.
ReturnCode code_of(const TxOp& op) {
  return op.cancelled ? ReturnCode::kCancelled : op.code;
}

Completion completion_of(const TxOp& op, ReturnCode code) {
  const bool has_data = op.has_header_data && !op.is_read();  // that of a wide READ is ours
  return {.kind = op.kind(),
          .code = code,
          .context = op.context,
          .length = code == ReturnCode::kOk ? op.length : 0,
          .tag = op.is_tagged() ? op.mkey_match : 0,
          .data = op.header_data,
          .has_data = has_data,
          .user_flags = op.user_flags};
}

}  // namespace

void Outcomes::advance(Instant now, TxOp& op) {
  if ((op.semantic == Semantic::kError || op.was_deferred) && op.emitted < op.segments)
    want_truncation(now, op);
  if (op.answered < op.segments) return;
  if (is_owed_something(op)) {
    if (op.waits_for_target) return;
    op.waits_for_target = true;
    ++waiting_.of(op.pdc);
    if (op.awaits_delivery) ++questions_.of(op.pdc);
    if (op.reads_tell && op.read_bytes > 0) queues_.await_read(now, op);
    return;
  }
  if (op.semantic == Semantic::kNone) op.fail(ReturnCode::kUncor);
  if (op.semantic == Semantic::kOk && op.returns_data && !op.returned.is_complete())
    op.fail(ReturnCode::kOpViolation);  // the data had to be in that answer [SES 6.3]
  conclude(now, op);
}

bool Outcomes::finish_plain(Instant now, TxOp& op) {
  const bool may_end = op.is_plain && op.answered == 0 && op.semantic == Semantic::kNone &&
                       !op.is_sequenced && !op.truncate_wanted && op.asked == 0;
  if (!may_end) return false;
  Lane& lane = lane_of(op);
  --lane.carried;
  --lane.carried_sends;
  lane.retries = 0;
  op.owed = 0;
  finish(now, op, ReturnCode::kOk);
  return true;
}

void Outcomes::conclude(Instant now, TxOp& op) {
  leave_carrier(now, op, Lock::kRelease);
  if (op.semantic == Semantic::kOk && op.was_deferred) return wait_for_restart(now, op);
  if (op.semantic == Semantic::kOk) {
    if (op.is_sequenced) queues_.leave_stream(op, true);
    if (op.is_rendezvous) op.peer->takes_rendezvous = true;
    lane_of(op).retries = 0;
    const bool is_owed = op.is_rendezvous ? !op.was_read : op.captured && op.delivery_complete;
    if (is_owed && !op.awaits_delivery && op.endpoint != nullptr) return await_delivery(now, op);
    finish(now, op, ReturnCode::kOk);
  } else if (wants_retry(op)) {
    retry(now, op);
  } else {
    take_back(now, op, code_of(op));
  }
}

/// [SES 14.1, decision 105] The target has the message and no receive for it. The operation stays, asks, and waits for the report.
/// It leaves its lane, and an ordered context: what is refused there, or waits for a successor of the PDC, must not wait for
/// this receive.
void Outcomes::await_delivery(Instant now, TxOp& op) {
  Flow& flow = *op.flow;
  Lane& lane = lane_of(op);
  op.awaits_delivery = true;
  op.may_spray = false;
  op.retries = 0;
  op.lane = kUnorderedLane;
  op.mode = pds::Mode::kRud;
  queues_.put_first(op);
  queues_.go_on(now, flow, lane);
  queues_.pump(now, flow);
}

bool Outcomes::wants_retry(const TxOp& op) const {
  if (op.is_notice()) return is_retryable_code(op.code, false);
  if (op.is_rendezvous && op.code == ReturnCode::kUnsupportedOp) return may_fall_back(op);
  if (op.is_sequenced && op.code == ReturnCode::kUnsupportedOp) return may_fall_back(op);
  if (op.cancelled || op.endpoint == nullptr || op.memory_gone) return false;
  if (!is_retryable_code(op.code, op.is_rma())) return false;
  if (op.atomic != nullptr && op.segments > 1) return false;  // other packets of it were executed
  return core_.config.retry_limit == 0 || op.retries < core_.config.retry_limit;
}

void Outcomes::retry(Instant now, TxOp& op) {
  ++op.retries;
  const bool refuses_rendezvous = op.is_rendezvous && op.code == ReturnCode::kUnsupportedOp &&
                                  (!op.is_sequenced || op.stream().is_known());
  if (refuses_rendezvous) {
    op.peer->refuses_rendezvous = true;
    sources_.withdraw(op);
    op.is_rendezvous = false;
  }
  // What is sent in another way need not wait.
  const bool is_other = refuses_rendezvous || sources_.shrink(op);
  const bool at_once =
      is_other || (op.code == ReturnCode::kBadGeneration && op.retries <= kImmediateRetries);
  core_.trace.emit(now, base::EventId::kMessageRetried, 0, {}, static_cast<std::uint64_t>(op.code),
                   op.retries);
  if (is_ordered_lane(op.lane)) {
    if (op.code == ReturnCode::kUnsupportedOp && !refuses_rendezvous) queues_.note_way_refused(op);
    queues_.recover(now, op, at_once);
  } else if (at_once) {
    queues_.try_again(now, op);
  } else {
    queues_.try_later(now, op, op.retries);
  }
}

/// Everything that was sent has its answer. The operation holds no PDC, so nothing but `restart_limit` notices that its target died.
void Outcomes::wait_for_restart(Instant now, TxOp& op) {
  if (op.is_restart_due && !op.cancelled) return restart(now, op, op.next_token);
  if (op.endpoint == nullptr || op.cancelled) return take_back(now, op);
  queues_.put_off(now, op);
}

/// The whole message, from its first byte, under another message id.
void Outcomes::restart(Instant now, TxOp& op, std::uint32_t target_token) {
  op.target_token = target_token;
  queues_.try_again(now, op);
}

/// The carrier is done with this attempt.
void Outcomes::leave_carrier(Instant now, TxOp& op, Lock lock) {
  const bool lets_go = op.holds_lock() && lock == Lock::kRelease;
  op.owed = lets_go ? ResponseReader::owed_to(op) : 0;
  if (lets_go && op.pdc) core_.carrier->unlock(now, op.pdc);
  operations_.small_reads().remove(op);
  responses_.forget(op);
  if (op.truncate_wanted) {
    to_truncate_.erase(to_truncate_.iterator_to(op));
    op.truncate_wanted = false;
  }
  if (op.waits_for_target) {
    --waiting_.of(op.pdc);
    if (op.awaits_delivery) --questions_.of(op.pdc);
  }
  op.waits_for_target = false;
  queues_.end_asking(op, op.asked);
  Lane& lane = lane_of(op);
  --lane.carried;
  if (!op.is_rma()) --lane.carried_sends;
}

/// The one completion of the operation. It must be in no queue but those of its flow and of all
/// operations.
void Outcomes::finish(Instant now, TxOp& op, ReturnCode code) {
  Endpoint* endpoint = op.endpoint;
  const Completion completion = completion_of(op, code);
  Fetch* const fetch = op.fetch;
  const bool tell = endpoint != nullptr && fetch == nullptr;
  core_.trace.emit(now, base::EventId::kMessageCompleted, 0, {}, static_cast<std::uint64_t>(code),
                   op.length);
  Flow& flow = *op.flow;
  Lane& lane = lane_of(op);
  if (endpoint != nullptr) --endpoint->sends;
  const bool leaves_one = op.is_sequenced && leaves_gap(op, code);
  if (op.is_sequenced && !leaves_one) queues_.leave_stream(op, false);
  if (leaves_one) {
    op.fills_gap = true;
    leave_notice(op);
    op.length = 0;
  } else {
    queues_.leave(op);
    if (op.owed > 0 && op.state == OpState::kCarried) [[unlikely]]
      operations_.end(op);
    else
      operations_.release(op);
  }
  queues_.go_on(now, flow, lane);
  if (flow.operations.empty()) {
    queues_.release_if_idle(flow);
  } else if (flow.waiting_fences > 0) {
    queues_.pump(now, flow);
  }
  if (tell) return endpoint->complete(completion);
  if (fetch != nullptr) core_.fetch_sink->on_fetched(now, *fetch, code);
}

/// The operation ends with this code. A target that was told that the message comes hears that it does not: without a word it would
/// keep its receive for it. [SES 8.2, decision 143]
void Outcomes::take_back(Instant now, TxOp& op, ReturnCode code) {
  if (!op.is_awaited()) return finish(now, op, code);
  Endpoint* const endpoint = op.endpoint;
  const Completion completion = completion_of(op, code);
  core_.trace.emit(now, base::EventId::kMessageCompleted, 0, {}, static_cast<std::uint64_t>(code),
                   op.length);
  if (op.is_restart_due) op.target_token = op.next_token;
  op.is_withdrawn = true;
  leave_notice(op);
  if (endpoint == nullptr) return;
  --endpoint->sends;
  endpoint->complete(completion);
}

/// [SES 10] The rest of the message is not wanted: end it with MSG_ERROR. Not from within an
/// upcall, where the carrier may be walking over this very message.
void Outcomes::want_truncation(Instant now, TxOp& op) {
  if (op.truncate_wanted || op.error_segment != 0 || !can_be_truncated(op)) return;
  if (core_.upcall_depth == 0) {
    truncate_now(now, op);
    return;
  }
  op.truncate_wanted = true;
  to_truncate_.push_back(op);
}

void Outcomes::truncate_now(Instant now, TxOp& op) {
  if (op.emitted >= op.segments || !can_be_truncated(op)) return;
  const pds::MessageToken token = op.token();
  if (op.emitted == 0) {
    // No peer has heard of this attempt: forget it.
    core_.carrier->abort(now, token);
    leave_carrier(now, op, Lock::kRelease);
    take_back(now, op, code_of(op));
    return;
  }
  op.segments = op.error_segment = core_.carrier->truncate(now, token, 1) + 1;
}

/// The operation is over for its user. Its descriptor says so to the target, so that this cannot fail for lack of room.
void Outcomes::leave_notice(TxOp& op) {
  const std::uint32_t own_token = op.own_token;
  operations_.release_memory(op);
  if (op.is_withdrawn) op.own_token = own_token;
  op.is_rendezvous = false;
  op.endpoint = nullptr;
  op.header_data = 0;
  op.retries = 0;
  op.has_header_data = op.delivery_complete = op.cancelled = op.memory_gone = false;
  op.awaits_delivery = false;
  queues_.put_first(op);
  queues_.mark_ready(*op.flow);
}

bool Outcomes::cancel(Instant now, TxOp& op) {
  // The target has all of it. One of which nothing but READs is heard finds no more to read.
  if (op.awaits_delivery && !op.reads_tell) return false;
  if (op.waits_for_target && op.reads_tell) {
    leave_carrier(now, op, Lock::kRelease);
    finish(now, op, ReturnCode::kCancelled);
    return true;
  }
  if (op.state != OpState::kCarried) {
    queues_.take_out(op);
    take_back(now, op);
    return true;
  }
  // All is said, or executed in part: nothing to take back.
  if (op.emitted >= op.segments || !can_be_truncated(op)) return false;
  op.cancelled = true;
  want_truncation(now, op);
  return true;
}

void Outcomes::detach(Instant now, TxOp& op) {
  const bool own_memory =
      !op.returns_data && !op.is_rendezvous && (op.inject_block != nullptr || op.length == 0);
  --op.endpoint->sends;
  op.endpoint = nullptr;
  if (op.is_rendezvous) sources_.withdraw(op);
  const bool only_waits = op.holds_lock() || op.fetch != nullptr;
  if (only_waits && op.state == OpState::kCarried && op.answered == op.segments) {
    leave_carrier(now, op, Lock::kRelease);
    finish(now, op, ReturnCode::kCancelled);
    return;
  }
  if (own_memory && (op.state == OpState::kCarried || op.state == OpState::kPending)) return;
  if (op.state != OpState::kCarried) {
    queues_.take_out(op);
    take_back(now, op);
    return;
  }
  op.memory_gone = true;
  op.cancelled = true;
  op.iov.clear(core_.iov_pool);
  if (op.emitted < op.segments) want_truncation(now, op);
}

void Outcomes::expire(Instant now, TxOp& op) {
  if (op.state == OpState::kCarried) leave_carrier(now, op, Lock::kRelease);
  finish(now, op, ReturnCode::kMessageTimeout);
}

void Outcomes::on_error(Instant now, TxOp& op, pds::PdsError error) {
  const bool was_out = !op.waits_for_target;  // else the caller goes through the list of all
  // A target counts the READs of a rendezvous whose data was acknowledged: what has come is not asked for again.
  const bool has_all = op.returns_data && op.returned.is_complete() &&
                       op.semantic != Semantic::kError && op.endpoint != nullptr && !op.cancelled;
  leave_carrier(now, op, Lock::kGoesOtherwise);
  if (has_all) return finish(now, op, ReturnCode::kOk);
  if (error == pds::PdsError::kPeerLost) op.peer_was_lost = true;
  // The target has said that it did not take the message: what was still unanswered of it changes nothing.
  // Not from one that is silent: asking again would take as long again.
  const bool was_refused = op.semantic == Semantic::kError && error != pds::PdsError::kPeerSilent;
  if (was_refused && wants_retry(op)) return retry(now, op);
  // A refusal that would have passed is no reason: the peer is.
  const bool is_passing =
      op.semantic == Semantic::kError && is_retryable_code(op.code, op.is_rma());
  if (error == pds::PdsError::kPeerSilent && is_passing) op.code = code_for(error);
  op.fail(code_for(error));
  const bool is_wanted = op.is_notice() || (op.endpoint != nullptr && !op.cancelled);
  const bool repeat = may_repeat(op, error) && is_wanted &&
                      (core_.config.retry_limit == 0 || op.retries < core_.config.retry_limit);
  if (repeat) return retry(now, op);
  if (error == pds::PdsError::kPeerSilent && was_out && lane_of(op).must_empty) end_behind(now, op);
  if (error == pds::PdsError::kPeerSilent) return finish(now, op, code_of(op));
  take_back(now, op, code_of(op));
}

/// A rendezvous goes alone until the peer has taken one, and the peer says nothing: what waits for it would wait for as long again, one
/// after the other.
void Outcomes::end_behind(Instant now, TxOp& first) {
  auto& pending = lane_of(first).pending;
  while (!pending.empty()) {
    TxOp& op = pending.front();
    queues_.take_out(op);
    op.fail(first.code);
    finish(now, op, code_of(op));
  }
}

/// Operations that have nothing outstanding but what the target owes them on this PDC; `visit` may end its operation. As long as some
/// are `left`: peers end PDCs and have them asked for locks, and other operations must not make that dear.
template <typename Visit>
void Outcomes::for_each_waiting(pds::PdcRef pdc, const std::uint32_t& left, Visit&& visit) {
  auto& all = operations_.by_age();
  for (auto it = all.begin(); left > 0 && it != all.end();) {
    TxOp& op = *it++;
    if (op.waits_for_target && op.pdc == pdc)
      visit(op);
    else
      ++passed_;
  }
}

/// Reads whose requests were all answered have nothing outstanding that the carrier could report,
/// but their data will not come any more.
void Outcomes::on_pdc_gone(Instant now, pds::PdcRef pdc, pds::PdsError error) {
  operations_.forget_ended(pdc);
  for_each_waiting(pdc, waiting_.of(pdc), [&](TxOp& op) { on_error(now, op, error); });
}

/// Questions wait for a receive, perhaps for long. Each is asked again later, and holds no place until then: else those that wait for
/// places here and there would wait for each other. [decision 142]
std::uint32_t Outcomes::yield_locks(Instant now, pds::PdcRef pdc) {
  std::uint32_t released = 0;
  for_each_waiting(pdc, questions_.of(pdc), [&](TxOp& op) {
    if (!op.awaits_delivery) return;
    leave_carrier(now, op, Lock::kGoesOtherwise);  // with the answer to this call
    queues_.try_later(now, op, ++op.times_asked);
    ++released;
  });
  return released;
}

/// A target answers what it owes before it acknowledges the end of the PDC. What it has not said by then it will never say:
/// everything was delivered, and nothing is known of what became of it. [SES 4.4]
void Outcomes::on_pdc_closed(Instant now, pds::PdcRef pdc) {
  for_each_waiting(pdc, waiting_.of(pdc), [&](TxOp& op) {
    op.fail(ReturnCode::kUncor);
    conclude(now, op);
  });
  operations_.forget_ended(pdc);
}

void Outcomes::on_read(Instant now, TxOp& op) {
  if (!op.awaits_delivery) return;
  if (!op.was_read) {
    // [SES 9 step 4] It was read in part, and nothing else would tell that its target has given up.
    if (op.reads_tell && op.waits_for_target) queues_.await_read(now, op);
    return;
  }
  if (op.state == OpState::kCarried) return advance(now, op);
  queues_.take_out(op);  // no need to ask again
  finish(now, op, ReturnCode::kOk);
}

/// It may overtake the last answers to the first attempt. A second copy changes nothing.
ReturnCode Outcomes::on_restart(Instant now, TxOp& op, std::uint32_t target_token) {
  if (op.state == OpState::kDeferred) {
    restart(now, op, target_token);
    return ReturnCode::kOk;
  }
  const bool is_copy = target_token != 0 && op.target_token == target_token;
  if (is_copy) return ReturnCode::kOk;
  if (op.state != OpState::kCarried || op.target_token != 0) return ReturnCode::kOpViolation;
  op.is_restart_due = true;
  op.next_token = target_token;
  return ReturnCode::kOk;
}

/// Like the request itself it may overtake the last answers to the first attempt.
void Outcomes::on_refused_restart(Instant now, TxOp& op, ReturnCode code) {
  if (op.state == OpState::kDeferred) {
    queues_.take_out(op);
    finish(now, op, code);
  } else if (op.state == OpState::kCarried && op.target_token == 0 && !op.is_restart_due) {
    op.fail(code);
    advance(now, op);
  }
}

void Outcomes::truncate_wanted(Instant now) {
  while (!to_truncate_.empty()) {
    TxOp& op = to_truncate_.front();
    to_truncate_.pop_front();
    op.truncate_wanted = false;
    truncate_now(now, op);
  }
}

}  // namespace uet::ses
