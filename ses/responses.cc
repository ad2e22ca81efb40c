#include "ses/responses.h"

namespace uet::ses {

namespace {

/// Writes a plain response where it will be read. Not through a local one: a copy of bytes that were written one field at a
/// time waits until those are in the cache, which took a target of small packets a tenth of its time.
void write_response(const ResponseFields& f, pds::SesResponse& out) {
  wire::SesResponse h;
  h.list = f.list;
  h.opcode = f.opcode;
  h.return_code = static_cast<wire::ReturnCode>(f.code);
  h.message_id = f.message_id;
  h.ri_generation = f.ri_generation;
  h.job_id = f.job_id;
  h.modified_length = f.modified_length;
  out.next_hdr = static_cast<std::uint8_t>(wire::NextHdr::kResponse);
  out.header_bytes = wire::SesResponse::kSize;
  wire::emit(h, out.header.data());
}

pds::Answer answer_of(const ResponseFields& fields, bool guaranteed) {
  pds::Answer answer;
  answer.guaranteed = guaranteed;
  write_response(fields, answer.response);
  return answer;
}

}  // namespace

pds::SesResponse make_response(const ResponseFields& f) {
  pds::SesResponse out;
  write_response(f, out);
  return out;
}

pds::Answer answer_refuse() {
  pds::Answer answer;
  answer.kind = pds::Answer::Kind::kRefuse;
  return answer;
}

pds::Answer answer_nothing() {
  pds::Answer answer;
  answer.kind = pds::Answer::Kind::kNone;
  return answer;
}

pds::Answer answer_default(const RequestView& r) {
  return answer_of({.message_id = r.message_id,
                    .ri_generation = r.ri_generation,
                    .job_id = r.job_id,
                    .modified_length = r.request_length},
                   false);
}

pds::Answer answer_pending(const RequestView& r) {
  return answer_of({.opcode = ResponseOpcode::kNoResponse,
                    .message_id = r.message_id,
                    .ri_generation = r.ri_generation,
                    .job_id = r.job_id,
                    .modified_length = r.request_length},
                   false);
}

pds::Answer answer_ok(const RequestView& r, ResponseList list, std::uint32_t modified_length) {
  return answer_of({.opcode = ResponseOpcode::kResponse,
                    .list = list,
                    .message_id = r.message_id,
                    .ri_generation = r.ri_generation,
                    .job_id = r.job_id,
                    .modified_length = modified_length},
                   true);
}

pds::Answer answer_unwanted(const RequestView& r) {
  return answer_ok(r, is_deferrable(r.opcode) ? ResponseList::kExpected : ResponseList::kOverflow,
                   0);
}

pds::Answer answer_await(const RequestView& r, bool waits, std::uint32_t process) {
  return answer_of({.opcode = ResponseOpcode::kResponse,
                    .code = waits ? ReturnCode::kOk : ReturnCode::kNoMatch,
                    .list = waits ? ResponseList::kOverflow : ResponseList::kExpected,
                    .message_id = r.message_id,
                    .ri_generation = r.ri_generation,
                    .job_id = r.job_id,
                    .modified_length = process},
                   true);
}

pds::Answer answer_error(const RequestView& r, ReturnCode code, std::uint8_t ri_generation,
                         bool guaranteed) {
  return answer_of({.opcode = ResponseOpcode::kResponse,
                    .code = code,
                    .message_id = r.message_id,
                    .ri_generation = ri_generation,
                    .job_id = r.job_id},
                   guaranteed);
}

bool parse_response(std::uint8_t next_hdr, std::span<const std::uint8_t> bytes, ResponseView& out) {
  std::size_t header = 0;
  std::size_t payload = 0;
  std::uint8_t version = 0;
  switch (static_cast<wire::NextHdr>(next_hdr)) {
    case wire::NextHdr::kResponse: {
      header = wire::SesResponse::kSize;
      if (bytes.size() < header) return false;
      const auto h = wire::decode<wire::SesResponse>(bytes.data());
      version = h.version;
      out.opcode = h.opcode;
      out.list = h.list;
      out.code = static_cast<ReturnCode>(h.return_code);
      out.message_id = h.message_id;
      out.ri_generation = h.ri_generation;
      out.job_id = h.job_id;
      out.modified_length = h.modified_length;
      break;
    }
    case wire::NextHdr::kResponseData: {
      header = wire::SesResponseData::kSize;
      if (bytes.size() < header) return false;
      const auto h = wire::decode<wire::SesResponseData>(bytes.data());
      version = h.version;
      out.has_data = true;
      out.opcode = h.opcode;
      out.list = h.list;
      out.code = static_cast<ReturnCode>(h.return_code);
      out.message_id = h.read_request_message_id;
      out.job_id = h.job_id;
      out.modified_length = h.modified_length;
      out.message_offset = h.message_offset;
      payload = h.payload_length;
      break;
    }
    case wire::NextHdr::kResponseDataSmall: {
      header = wire::SesResponseDataSmall::kSize;
      if (bytes.size() < header) return false;
      const auto h = wire::decode<wire::SesResponseDataSmall>(bytes.data());
      version = h.version;
      out.has_data = true;
      out.is_small_data = true;
      out.opcode = h.opcode;
      out.list = h.list;
      out.code = static_cast<ReturnCode>(h.return_code);
      out.job_id = h.job_id;
      out.modified_length = h.payload_length;
      out.request_psn = h.original_request_psn;
      payload = h.payload_length;
      break;
    }
    default:
      return false;
  }
  if (version != 0 || bytes.size() - header < payload) return false;
  out.data = bytes.subspan(header, payload);
  return true;
}

}  // namespace uet::ses
