/// Builds and reads SES responses. [SES 11]
#pragma once

#include "pds/pds.h"
#include "ses/request_view.h"
#include "ses/ses.h"

namespace uet::ses {

using wire::ResponseList;
using wire::ResponseOpcode;

/// What a plain response says about the request it answers.
struct ResponseFields {
  ResponseOpcode opcode = ResponseOpcode::kDefaultResponse;
  ReturnCode code = ReturnCode::kOk;
  ResponseList list = ResponseList::kExpected;
  std::uint16_t message_id = 0;
  std::uint8_t ri_generation = 0;
  std::uint32_t job_id = 0;
  std::uint32_t modified_length = 0;
};

pds::SesResponse make_response(const ResponseFields& fields);

/// No room now; packet delivery tells the source to send it again later.
pds::Answer answer_refuse();
pds::Answer answer_nothing();
/// DEFAULT_RESPONSE: success, nothing to say. [SES 11.2 rows 7, 10]
pds::Answer answer_default(const RequestView& request);
/// NO_RESPONSE: the packet arrived, the message is not decided. [row 11]
pds::Answer answer_pending(const RequestView& request);
/// RESPONSE with OK and what the initiator does not know of the length or the list. [rows 5, 8]
pds::Answer answer_ok(const RequestView& request, ResponseList list, std::uint32_t modified_length);
/// [SES 7.3] RESPONSE with OK, for a message that no receive will have. OVERFLOW without bytes would put a deferrable one off.
pds::Answer answer_unwanted(const RequestView& request);
/// RESPONSE, guaranteed: does a message still wait for its receive, and in which process. [decision 105]
pds::Answer answer_await(const RequestView& request, bool waits, std::uint32_t process);
/// RESPONSE with an error. [row 4]
pds::Answer answer_error(const RequestView& request, ReturnCode code, std::uint8_t ri_generation,
                         bool guaranteed);

/// Any response header, as the initiator sees it.
struct ResponseView {
  bool has_data = false;
  bool is_small_data = false;
  ResponseOpcode opcode = ResponseOpcode::kDefaultResponse;
  ResponseList list = ResponseList::kExpected;
  ReturnCode code = ReturnCode::kOk;
  std::uint16_t message_id = 0;  ///< of the request answered
  std::uint8_t ri_generation = 0;
  std::uint32_t job_id = 0;
  std::uint32_t modified_length = 0;
  std::uint32_t message_offset = 0;
  base::Psn request_psn;  ///< small form
  std::span<const std::uint8_t> data;
};
bool parse_response(std::uint8_t next_hdr, std::span<const std::uint8_t> bytes, ResponseView& out);

/// An ACK without a response stands for the default one: all is well, and there is nothing to parse. [SES 4.4]
inline bool is_default_response(std::uint8_t next_hdr, std::span<const std::uint8_t> bytes) {
  return next_hdr == static_cast<std::uint8_t>(wire::NextHdr::kNone) || bytes.empty();
}

}  // namespace uet::ses
