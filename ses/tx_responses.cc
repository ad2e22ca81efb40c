#include "ses/tx_responses.h"

#include <algorithm>

#include "ses/rendezvous_sources.h"

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

/// The ids that our answer to read data repeats.
RequestView echo_of(const ResponseView& response) {
  RequestView echo;
  echo.message_id = response.message_id;
  echo.job_id = response.job_id;
  echo.request_length = static_cast<std::uint32_t>(response.data.size());
  return echo;
}

/// The target has the message, or only its header. It may not put off what it asked for by a token of its own. [SES 8.2]
void note_captured(TxOp& op, const ResponseView& response) {
  if (!op.is_deferrable || response.modified_length >= op.length)
    op.captured = true;
  else if (op.target_token != 0)
    op.fail(ReturnCode::kOpViolation);
  else
    op.was_deferred = true;
}

/// The answer to the question, not yet the report. [decision 105]
void read_await(TxOp& op, const ResponseView& response) {
  if (op.was_read) {  // by the target, to its end
    op.succeed();
    return;
  }
  const bool is_same = op.keeper != 0 ? response.modified_length == op.keeper : !op.peer_was_lost;
  const bool is_gone = response.code == ReturnCode::kNoMatch && is_same;
  const bool is_unknown = response.code == ReturnCode::kUnsupportedOp;
  if (!is_success(response.code) && !is_gone && !is_unknown) {
    op.fail(response.code == ReturnCode::kNoMatch ? ReturnCode::kUndeliverable
                                                  : known_code(response.code));
    return;
  }
  if (is_success(response.code) && op.keeper == 0) op.keeper = response.modified_length;
  op.succeed();
  // A receive took it before the question came; or a target that tells nothing later has said all that it will say.
  // What it has read is known all the same.
  if (op.is_rendezvous && is_unknown) {
    op.reads_tell = true;
    return;
  }
  if (response.opcode != ResponseOpcode::kResponse || response.list != ResponseList::kOverflow)
    op.is_delivered = true;
}

}  // namespace

/// [SES 4.4]
bool ResponseReader::read(Instant now, TxOp& op, std::uint8_t next_hdr,
                          std::span<const std::uint8_t> bytes) {
  if (is_default_response(next_hdr, bytes)) {
    op.succeed();
    op.is_delivered = true;
    return true;
  }
  ResponseView response;
  if (!parse_response(next_hdr, bytes, response)) {
    op.bad_response = true;
    trace_.drop(now, base::DropReason::kSesMalformed, bytes.size());
    return true;
  }
  switch (response.opcode) {
    case ResponseOpcode::kNoResponse:
      return true;
    case ResponseOpcode::kDefaultResponse:
      // The receiving PDS makes these too, with ids copied or zero, so they are not compared.
      op.is_delivered = true;
      if (!is_success(response.code)) {
        op.fail(known_code(response.code));
        return false;
      }
      op.succeed();
      return true;
    case ResponseOpcode::kResponse:
    case ResponseOpcode::kResponseWData:
      break;
    default:
      op.fail(ReturnCode::kUncor);
      return true;
  }
  const bool id_fits =
      op.medium || op.small || response.is_small_data || response.message_id == op.message_id;
  if (!id_fits || response.job_id != op.job_id) {
    op.bad_response = true;
    trace_.drop(now, base::DropReason::kSesUnknownResponse, bytes.size());
    return true;
  }
  if (response.code == ReturnCode::kBadGeneration && !op.is_rma())
    op.peer->generation_of(op.space()) = response.ri_generation;
  if (op.awaits_delivery) {
    read_await(op, response);
    return true;
  }
  if (!is_success(response.code)) {
    op.fail(known_code(response.code));
    return false;
  }
  op.succeed();
  if (response.opcode == ResponseOpcode::kResponse && response.list == ResponseList::kOverflow)
    note_captured(op, response);
  if (op.is_rendezvous) RendezvousSources::note_wanted(op, response);
  if (response.opcode == ResponseOpcode::kResponseWData && !place(op, response)) {
    op.fail(ReturnCode::kOpViolation);
    return false;
  }
  return true;
}

/// False when the data does not belong to what was asked for. On the ACK of a small READ either form will do. [WIRE 10 row 39]
bool ResponseReader::place(TxOp& op, const ResponseView& response) {
  if (!op.returns_data || (response.is_small_data && !op.small)) return false;
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

/// Read data in the return direction of the read's PDC. [SES 6.3]
bool ResponseReader::is_too_far(const TxOp& op, const ResponseView& response) {
  if (!op.returns_data) return false;
  const auto bytes = static_cast<std::uint32_t>(response.data.size());
  if (std::uint64_t{response.message_offset} + bytes > op.length) return false;
  return op.returned.look(response.message_offset, bytes, op.length, windows_) ==
         Coverage::Look::kTooFar;
}

pds::Answer ResponseReader::take_data(TxOp& op, const ResponseView& response) {
  RequestView echo = echo_of(response);
  if (op.returns_data) echo.request_length = static_cast<std::uint32_t>(op.length);
  if (op.awaits_delivery) {
    op.is_delivered = true;
    if (!is_success(response.code)) op.fail(known_code(response.code));
  } else if (op.memory_gone) {
    op.fail(ReturnCode::kCancelled);
    op.refused += worth(op, response);
    return answer_error(echo, ReturnCode::kCancelled, 0, true);
  } else if (!is_success(response.code)) {
    op.fail(known_code(response.code));
    op.refused += worth(op, response);
  } else if (!place(op, response)) {
    op.fail(ReturnCode::kOpViolation);
    op.refused += worth(op, response);
    return answer_error(echo, ReturnCode::kOpViolation, 0, true);
  }
  return answer_default(echo);
}

/// An error brings no data, and is one packet of the target, whose size it does not say: no more than the smallest is counted.
std::uint64_t ResponseReader::worth(const TxOp& op, const ResponseView& response) {
  if (op.awaits_delivery) return 1;
  if (!response.data.empty()) return response.data.size();
  const std::uint64_t behind =
      op.length - std::min<std::uint64_t>(op.length, response.message_offset);
  return std::min<std::uint64_t>({op.piece, kSmallestPayload, behind});
}

pds::Answer ResponseReader::refuse_late(const TxOp& op, const ResponseView& response) {
  RequestView echo = echo_of(response);
  if (op.awaits_delivery) return answer_default(echo);
  echo.request_length = static_cast<std::uint32_t>(op.length);
  return answer_error(echo, ReturnCode::kCancelled, 0, true);
}

/// A small or a medium request has no message id.
std::uint64_t ResponseReader::owed_to(const TxOp& op) {
  if (!op.pdc) return 0;
  if (op.awaits_delivery) {
    const bool has_word = op.is_delivered || op.reads_tell || op.semantic == Semantic::kError;
    return has_word ? 0 : 1;
  }
  if (op.form() != wire::NextHdr::kRequestStd) return 0;
  const std::uint32_t requests = op.error_segment != 0 ? op.error_segment - 1 : op.segments;
  const std::uint64_t asked = std::min(op.length, std::uint64_t{requests} * op.piece);
  const std::uint64_t ended = op.returned.bytes(op.length) + op.refused;
  return asked > ended ? asked - ended : 0;
}

pds::Answer ResponseReader::refuse(const ResponseView& response) {
  return answer_error(echo_of(response), ReturnCode::kOpViolation, 0, true);
}

}  // namespace uet::ses
