// Sends that a target without a receive puts off, and wants again when it has one. [SES 8.2]
#include "ses/transmitter.h"

namespace uet::ses {

/// Those of one packet go as they are, and so do ordered ones: what is sent again would come behind what was sent later. The token
/// stays through all attempts, and its lower half finds the operation.
void Transmitter::make_deferrable(TxOp& op, std::uint32_t attempt) {
  const bool is_send = op.opcode == SesOpcode::kSend || op.opcode == SesOpcode::kTaggedSend;
  if (!is_send || op.awaits_delivery || op.fills_gap) return;
  op.is_deferrable = op.mode == pds::Mode::kRud && !op.may_spray && !op.is_rendezvous &&
                     (op.segments > 1 || op.target_token != 0);
  // Not 0 whatever the attempt, and the place in the pool.
  if (op.is_deferrable && op.own_token == 0)
    op.own_token = (attempt % 0xffff + 1) << 16 | op.pool_index;
  op.buffer_offset = op.is_deferrable ? std::uint64_t{op.own_token} << 32 | op.target_token : 0;
}

/// The target has the message, or only its header. It may not put off what it asked for by a token of its own.
void Transmitter::note_captured(TxOp& op, const ResponseView& response) {
  if (!op.is_deferrable || response.modified_length >= op.length)
    op.captured = true;
  else if (op.target_token != 0)
    fail_semantic(op, ReturnCode::kOpViolation);
  else
    op.was_deferred = true;
}

/// Everything that was sent has its answer. The operation holds no PDC, so nothing but `restart_limit` notices that its target died.
void Transmitter::wait_for_restart(Instant now, TxOp& op) {
  if (op.endpoint == nullptr || op.cancelled) return finish(now, op, ReturnCode::kCancelled);
  op.state = OpState::kDeferred;
  if (op.is_restart_due) return restart(now, op, op.next_token);
  if (core_.config.restart_limit > base::Duration{})
    timers_.set(op.retry_timer, now + core_.config.restart_limit);
}

/// The whole message, from its first byte, under another message id.
void Transmitter::restart(Instant now, TxOp& op, std::uint32_t target_token) {
  timers_.cancel(op.retry_timer);
  op.target_token = target_token;
  op.state = OpState::kPending;
  lane_of(op).pending.push_front(op);
  pump(now, *op.flow);
}

TxOp* Transmitter::find_deferrable(std::uint32_t token) {
  TxOp* op = ops_.at(token & 0xffff);
  return op != nullptr && op->is_deferrable && op->own_token == token ? op : nullptr;
}

/// It may overtake the last answers to the first attempt. A second copy changes nothing. An older draft has the tokens the other way
/// round. [SES 22.2]
ReturnCode Transmitter::on_restart(Instant now, const Endpoint& endpoint,
                                   const net::FabricAddress& source, const RequestView& request) {
  std::uint32_t target_token = request.target_token;
  TxOp* op = find_deferrable(request.initiator_token);
  if (op == nullptr) {
    op = find_deferrable(request.target_token);
    target_token = request.initiator_token;
  }
  const bool is_known = op != nullptr && op->endpoint == &endpoint && !op->cancelled &&
                        op->peer->address.fabric_address == source && op->job_id == request.job_id;
  if (!is_known) return ReturnCode::kOpViolation;
  if (op->state == OpState::kDeferred) {
    restart(now, *op, target_token);
    return ReturnCode::kOk;
  }
  const bool is_copy = target_token != 0 && op->target_token == target_token;
  if (is_copy) return ReturnCode::kOk;
  if (op->state != OpState::kCarried || op->target_token != 0) return ReturnCode::kOpViolation;
  op->is_restart_due = true;
  op->next_token = target_token;
  return ReturnCode::kOk;
}

}  // namespace uet::ses
