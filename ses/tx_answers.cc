// What targets say about our messages, and the data of reads.
#include "ses/transmitter.h"

namespace uet::ses {
namespace {

/// Reserved and vendor codes mean no more to us than "uncorrectable". [SES 12]
ReturnCode known_code(ReturnCode code) {
  return static_cast<std::uint8_t>(code) <= static_cast<std::uint8_t>(ReturnCode::kDropped)
             ? code
             : ReturnCode::kUncor;
}

bool is_success(ReturnCode code) {
  return code == ReturnCode::kOk || code == ReturnCode::kNull;
}

}  // namespace

void Transmitter::on_response(Instant now, pds::MessageToken token, std::uint32_t segment,
                              std::uint8_t next_hdr, std::span<const std::uint8_t> response) {
  TxOp* op = find(token);
  if (op == nullptr || segment >= op->segments) {
    core_.trace.drop(now, base::DropReason::kSesUnknownResponse, response.size());
    return;
  }
  if (op->answered < op->segments) ++op->answered;
  interpret(now, *op, next_hdr, response);
  advance(now, *op);
}

/// The verdict on a message whose packet was answered NO_RESPONSE. [SES 11.2 row 9] Copies of earlier answers come here too, so
/// only a RESPONSE counts, and only while no answer has decided anything: a PDS makes DEFAULT_RESPONSE for each duplicate of a
/// packet. A message without id cannot be named. See docs/decisions/0109.
void Transmitter::on_further_response(Instant now, pds::PdcRef pdc, std::uint8_t next_hdr,
                                      std::span<const std::uint8_t> bytes) {
  ResponseView response;
  if (!parse_response(next_hdr, bytes, response) || response.opcode != ResponseOpcode::kResponse)
    return;
  TxOp* op = find_carried(response.message_id);
  const bool waits = op != nullptr && op->pdc == pdc && op->job_id == response.job_id &&
                     !op->medium && !op->small && op->answered > 0 &&
                     op->semantic == Semantic::kNone && !op->awaits_delivery;
  if (!waits) return;
  interpret(now, *op, next_hdr, bytes);
  advance(now, *op);
}

/// [SES 4.4] What one response does to the state of the message.
void Transmitter::interpret(Instant now, TxOp& op, std::uint8_t next_hdr,
                            std::span<const std::uint8_t> bytes) {
  const auto succeed = [&op] {
    if (op.semantic == Semantic::kNone) op.semantic = Semantic::kOk;
  };
  if (next_hdr == static_cast<std::uint8_t>(wire::NextHdr::kNone) || bytes.empty()) {
    succeed();
    op.is_delivered = true;
    return;
  }
  ResponseView response;
  if (!parse_response(next_hdr, bytes, response)) {
    op.bad_response = true;
    core_.trace.drop(now, base::DropReason::kSesMalformed, bytes.size());
    return;
  }
  switch (response.opcode) {
    case ResponseOpcode::kNoResponse:
      return;
    case ResponseOpcode::kDefaultResponse:
      // The receiving PDS makes these too, with ids copied or zero, so they are not compared.
      op.is_delivered = true;
      if (is_success(response.code))
        succeed();
      else
        fail_semantic(op, known_code(response.code));
      return;
    case ResponseOpcode::kResponse:
    case ResponseOpcode::kResponseWData:
      break;
    default:
      fail_semantic(op, ReturnCode::kUncor);
      return;
  }
  const bool id_fits =
      op.medium || op.small || response.is_small_data || response.message_id == op.message_id;
  if (!id_fits || response.job_id != op.job_id) {
    op.bad_response = true;
    core_.trace.drop(now, base::DropReason::kSesUnknownResponse, bytes.size());
    return;
  }
  if (response.code == ReturnCode::kBadGeneration && !op.is_rma())
    op.peer->generation_of(op.space()) = response.ri_generation;
  if (op.awaits_delivery) return interpret_await(op, response);
  if (!is_success(response.code)) {
    fail_semantic(op, known_code(response.code));
    return;
  }
  succeed();
  if (response.opcode == ResponseOpcode::kResponse && response.list == ResponseList::kOverflow)
    note_captured(op, response);
  if (op.is_rendezvous) note_wanted(op, response);
  if (response.opcode == ResponseOpcode::kResponseWData && !place_read_data(op, response))
    fail_semantic(op, ReturnCode::kOpViolation);
}

/// [decision 105] The answer to the question, not yet the report.
void Transmitter::interpret_await(TxOp& op, const ResponseView& response) {
  if (op.was_read) {  // by the target, to its end
    if (op.semantic == Semantic::kNone) op.semantic = Semantic::kOk;
    return;
  }
  const bool is_same = op.keeper != 0 ? response.modified_length == op.keeper : !op.peer_was_lost;
  const bool is_gone = response.code == ReturnCode::kNoMatch && is_same;
  const bool is_unknown = response.code == ReturnCode::kUnsupportedOp;
  if (!is_success(response.code) && !is_gone && !is_unknown) {
    fail_semantic(op, response.code == ReturnCode::kNoMatch ? ReturnCode::kUndeliverable
                                                            : known_code(response.code));
    return;
  }
  if (is_success(response.code) && op.keeper == 0) op.keeper = response.modified_length;
  if (op.semantic == Semantic::kNone) op.semantic = Semantic::kOk;
  // A receive took it before the question came; or a target that tells nothing later has said all that it will say.
  // What it has read is known all the same.
  if (op.is_rendezvous && is_unknown) return;
  if (response.opcode != ResponseOpcode::kResponse || response.list != ResponseList::kOverflow)
    op.is_delivered = true;
}

/// The first error wins, and wins over success: early packets may have been answered before the
/// message failed.
void Transmitter::fail_semantic(TxOp& op, ReturnCode code) {
  if (op.semantic == Semantic::kError) return;
  op.semantic = Semantic::kError;
  op.code = code;
}

/// False when the data does not belong to what was asked for.
bool Transmitter::place_read_data(TxOp& op, const ResponseView& response) {
  if (!op.returns_data || response.is_small_data != op.small) return false;
  const auto bytes = static_cast<std::uint32_t>(response.data.size());
  if (op.atomic != nullptr && bytes != op.length) return false;  // the old value comes whole
  if (std::uint64_t{response.message_offset} + bytes > op.length) return false;
  if (op.returned.look(response.message_offset, bytes, op.length, windows_) != Coverage::Look::kNew)
    return false;
  if (!op.memory_gone)
    op.iov.scatter(response.message_offset, response.data.data(), response.data.size());
  op.returned.add(response.message_offset, bytes, op.length, windows_);
  if (op.fetch != nullptr) op.fetch->placed += bytes;
  return true;
}

/// So far ahead of what is missing that it has to come again.
bool Transmitter::is_too_far(const TxOp& op, const ResponseView& response) const {
  const auto bytes = static_cast<std::uint32_t>(response.data.size());
  if (std::uint64_t{response.message_offset} + bytes > op.length) return false;
  return op.returned.look(response.message_offset, bytes, op.length, windows_) ==
         Coverage::Look::kTooFar;
}

/// Read data in the return direction of the read's PDC. [SES 6.3]
pds::Answer Transmitter::on_return_data(Instant now, const pds::RxRequest& request) {
  ResponseView response;
  RequestView echo;  // carries the ids that our answer repeats
  if (!parse_response(request.next_hdr, request.bytes, response) || !response.has_data) {
    core_.trace.drop(now, base::DropReason::kSesMalformed, request.bytes.size());
    return answer_error(echo, ReturnCode::kOpViolation, 0, true);
  }
  echo.message_id = response.message_id;
  echo.job_id = response.job_id;
  echo.request_length = static_cast<std::uint32_t>(response.data.size());
  TxOp* op = response.is_small_data ? small_reads_.find(request.handle.pdc, response.request_psn)
                                    : find_returning(response.message_id);
  if (op == nullptr || op->pdc != request.handle.pdc || op->job_id != response.job_id) {
    core_.trace.drop(now, base::DropReason::kSesUnknownResponse, request.bytes.size());
    return answer_error(echo, ReturnCode::kOpViolation, 0, true);
  }
  if (op->returns_data && is_too_far(*op, response)) return answer_refuse();
  if (op->returns_data) echo.request_length = static_cast<std::uint32_t>(op->length);
  pds::Answer answer = answer_default(echo);
  if (op->awaits_delivery) {
    op->is_delivered = true;
    if (!is_success(response.code)) fail_semantic(*op, known_code(response.code));
  } else if (op->memory_gone) {
    fail_semantic(*op, ReturnCode::kCancelled);
    answer = answer_error(echo, ReturnCode::kCancelled, 0, true);
  } else if (!is_success(response.code)) {
    fail_semantic(*op, known_code(response.code));
  } else if (!place_read_data(*op, response)) {
    fail_semantic(*op, ReturnCode::kOpViolation);
    answer = answer_error(echo, ReturnCode::kOpViolation, 0, true);
  }
  advance(now, *op);
  return answer;
}

/// Called after everything that may have brought the message nearer to its end.
void Transmitter::advance(Instant now, TxOp& op) {
  if ((op.semantic == Semantic::kError || op.was_deferred) && op.emitted < op.segments)
    want_truncation(now, op);
  if (op.answered < op.segments) return;
  if (is_owed_something(op)) {
    if (op.waits_for_target) return;
    op.waits_for_target = true;
    ++waiting_for_targets_;
    waiting_questions_ += op.awaits_delivery ? 1 : 0;
    return;
  }
  if (op.semantic == Semantic::kNone) fail_semantic(op, ReturnCode::kUncor);
  if (op.semantic == Semantic::kOk && op.returns_data && !op.returned.is_complete())
    fail_semantic(op, ReturnCode::kOpViolation);  // the data had to be in that answer [SES 6.3]
  conclude(now, op);
}

/// Every packet is answered. What else the target has to say comes on the same PDC.
bool Transmitter::is_owed_something(const TxOp& op) const {
  if (op.is_connectionless()) return false;
  // Everything is delivered and nothing said. The verdict may still come, unless it was among what could not be read.
  if (op.semantic == Semantic::kNone) return !op.bad_response;
  if (op.semantic == Semantic::kError) return false;
  if (op.awaits_delivery) return !op.is_delivered && !op.was_read && op.endpoint != nullptr;
  if (!op.returns_data || op.returned.is_complete()) return false;
  return op.fetch == nullptr || op.endpoint != nullptr;  // else it was given up
}

TxOp* Transmitter::find(pds::MessageToken token) {
  TxOp* op = ops_.at(index_of(token));
  if (op == nullptr || op->state != OpState::kCarried) return nullptr;
  return make_token(TokenKind::kOperation, op->pool_index, op->attempt) == token ? op : nullptr;
}

TxOp* Transmitter::find_carried(std::uint16_t message_id) {
  TxOp* op = ops_.at(message_id & ((1u << id_index_bits_) - 1));
  const bool fits = op != nullptr && op->state == OpState::kCarried && op->message_id == message_id;
  return fits ? op : nullptr;
}

/// The operation for which something may come in the return direction.
TxOp* Transmitter::find_returning(std::uint16_t message_id) {
  TxOp* op = find_carried(message_id);
  return op != nullptr && (op->returns_data || op->awaits_delivery) ? op : nullptr;
}

}  // namespace uet::ses
