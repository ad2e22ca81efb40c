#include "ses/rx_rma.h"

#include <algorithm>
#include <atomic>

namespace uet::ses {
namespace {

/// The part that called carries it out. `message`: one that was begun, else it is rejected.
pds::Answer failed(RequestContext& c, ReturnCode code, RxMessage* message = nullptr) {
  c.failure = code;
  c.failed = message;
  return {};
}

}  // namespace

/// Steps 12 to 14: the region, the rights, the bounds of the whole message.
MemoryRegion* RmaTarget::find_region(RequestContext& c, bool write, std::uint64_t& start,
                                     ReturnCode& code) {
  const RequestView& r = c.request;
  MemoryRegion* region = r.is_small() ? core_.memory.find_optimized(r.resource_index)
                                      : core_.memory.find(r.mkey_match, c.endpoint->id,
                                                          c.endpoint->config.memory_space);
  code = ReturnCode::kBadMkey;
  if (region == nullptr) return nullptr;
  if (r.is_small()) {
    // The request named no RI: it goes through one of the process through which the region can be reached.
    Endpoint* const endpoint =
        core_.endpoints.find_in_process(r.target(), region->endpoint, region->space);
    if (endpoint == nullptr) return nullptr;
    c.endpoint = endpoint;
  }
  code = ReturnCode::kPermViolation;
  if (region->operation && region->reader != c.packet.source) return nullptr;
  code = ReturnCode::kOpViolation;
  if (c.packet.mode == pds::Mode::kRudi && !region->is_idempotent_safe()) return nullptr;
  code = MemoryTable::check(*region, {r.job_id, write, r.buffer_offset, r.request_length}, start);
  return code == ReturnCode::kOk ? region : nullptr;
}

pds::Answer RmaTarget::begin_write(RequestContext& c) {
  const RequestView& r = c.request;
  if (!r.is_single() && !shares_.has_place(c)) return answer_refuse();
  std::uint64_t start = 0;
  ReturnCode code = ReturnCode::kOk;
  MemoryRegion* region = find_region(c, true, start, code);
  if (region == nullptr) return failed(c, code);
  if (r.som && r.hd && !c.endpoint->config.accept_remote_data)
    return failed(c, ReturnCode::kOpViolation);
  if (r.is_single()) {
    if (!region->iov.scatter(start, r.payload.data(), r.payload.size()))
      return failed(c, ReturnCode::kHostUnsuccessCmpl);
    return complete_write(c, *region, r.hd, r.header_data);
  }
  RxMessage& m = shares_.begin(c, RxTarget::kRegion);
  m.region = ref_of(*region);
  m.start = start;
  messages_.count(m, r);
  return proceed_write(c, m);
}

pds::Answer RmaTarget::proceed_write(RequestContext& c, RxMessage& m) {
  const RequestView& r = c.request;
  const MemoryRegion* region = core_.memory.find(m.region);
  if (region == nullptr) return failed(c, ReturnCode::kCancelled, &m);
  if (r.som && r.hd && (m.endpoint == nullptr || !m.endpoint->config.accept_remote_data))
    return failed(c, ReturnCode::kOpViolation, &m);
  if (!region->iov.scatter(m.start + r.message_offset, r.payload.data(), r.payload.size()))
    return failed(c, ReturnCode::kHostUnsuccessCmpl, &m);
  if (!m.is_complete()) return answer_pending(r);
  const bool has_data = m.hd;
  const std::uint64_t header_data = m.header_data;
  shares_.release(m);
  return complete_write(c, *region, has_data, header_data);
}

/// [SES 4.5] One per message; the user counts or ignores those without header data.
pds::Answer RmaTarget::complete_write(RequestContext& c, const MemoryRegion& region, bool has_data,
                                      std::uint64_t header_data) {
  const RequestView& r = c.request;
  const auto code = region.iov.settle() ? ReturnCode::kOk : ReturnCode::kHostUnsuccessCmpl;
  pds::Answer answer =
      code == ReturnCode::kOk ? answer_default(r) : answer_error(r, code, r.ri_generation, true);
  // [SES 14.1] What was written is visible before the user is told.
  std::atomic_thread_fence(std::memory_order_release);
  if (c.packet.mode == pds::Mode::kRudi) return answer;  // it may come again, so it is not counted
  Completion completion;
  completion.code = code;
  completion.kind = OpKind::kRemoteWrite;
  completion.length = r.request_length;
  completion.data = has_data ? header_data : 0;
  completion.has_data = has_data;
  completion.source = c.source();
  completion.mr_key = r.is_small() ? 0 : r.mkey_match;
  core_.trace.emit(c.now, base::EventId::kMessageDelivered, 0, {}, static_cast<std::uint64_t>(code),
                   r.request_length);
  c.endpoint->complete(completion);
  return answer;
}

Endpoint* RmaTarget::find_source_endpoint(const RequestView& r) const {
  if (r.opcode != SesOpcode::kRead || r.form != wire::NextHdr::kRequestStd) return nullptr;
  ReturnCode code = ReturnCode::kOk;
  Endpoint* endpoint = core_.endpoints.route(r.target(), RiKind::kAny, code);
  if (endpoint == nullptr) return nullptr;
  const MemoryRegion* region =
      core_.memory.find(r.mkey_match, endpoint->id, endpoint->config.memory_space);
  return region != nullptr && region->operation ? endpoint : nullptr;
}

/// [SES 6.3] Decided by the length of the whole message, so that all its packets go the same way. The source of a rendezvous
/// goes when it was read, and data in an ACK may be asked for again. That of a wide READ is several packets.
bool RmaTarget::data_fits_ack(const RequestContext& c, const MemoryRegion& region) const {
  if (region.operation || c.request.is_wide_read()) return false;
  return core_.data_fits_acks(c.request.request_length) || c.packet.mode == pds::Mode::kRudi;
}

/// Data that goes back in one packet, whatever the way carries: the small forms cannot say what part they carry, and a RUDI
/// response is one packet. Such a packet of a READ may not ask for more than a packet of ours holds; an ordered one not for more than
/// can be copied; a wide one not for 1,280 bytes a packet where we do not know that size.
bool RmaTarget::asks_too_much(const RequestContext& c) const {
  const bool is_one =
      c.request.form != wire::NextHdr::kRequestStd || c.packet.mode == pds::Mode::kRudi;
  return (is_one && c.request.covered > core_.payload_mtu) ||
         (c.is_ordered() && c.request.covered > core_.largest_payload()) ||
         (c.request.wide.payload <= kEthernetPayload &&
          c.request.wide.payload > std::min(core_.config.device_payload, core_.payload_mtu));
}

pds::Answer RmaTarget::begin_read(RequestContext& c) {
  const RequestView& r = c.request;
  if (asks_too_much(c)) return failed(c, ReturnCode::kOpViolation);
  if (!r.is_single() && !shares_.has_place(c)) return answer_refuse();
  std::uint64_t start = 0;
  ReturnCode code = ReturnCode::kOk;
  MemoryRegion* region = find_region(c, false, start, code);
  if (region == nullptr) return failed(c, code);
  const bool in_ack = data_fits_ack(c, *region);
  if (r.is_single()) {
    if (in_ack) {
      if (c.packet.mode != pds::Mode::kRudi)
        returns_.complete(c.now, c.endpoint->id, c.source(), region->key, r.request_length);
      return answer_with_data(c, *region, start);
    }
    ReadProgress* progress = returns_.begin_read(c);
    if (progress == nullptr) return answer_refuse();
    progress->key = region->key;
    progress->operation = region->operation;
    pds::Answer answer = returns_.return_data(c, *region, start, *progress);
    returns_.end_requests(c.now, *progress);
    return answer;
  }
  ReadProgress* progress = nullptr;
  if (!in_ack) {
    progress = returns_.begin_read(c);
    if (progress == nullptr) return answer_refuse();
    progress->key = region->key;
    progress->operation = region->operation;
  }
  RxMessage& m = shares_.begin(c, RxTarget::kRead);
  m.region = ref_of(*region);
  m.start = start;
  if (progress != nullptr) m.progress = ref_of(*progress);
  return proceed_read(c, m);
}

pds::Answer RmaTarget::proceed_read(RequestContext& c, RxMessage& m) {
  const RequestView& r = c.request;
  const MemoryRegion* region = core_.memory.find(m.region);
  if (region == nullptr) {
    messages_.count(m, r);
    return failed(c, ReturnCode::kCancelled, &m);
  }
  ReadProgress* progress = returns_.find_read(m.progress);
  if (!data_fits_ack(c, *region) && progress == nullptr) {
    // What went back before could not be delivered.
    messages_.count(m, r);
    return failed(c, ReturnCode::kCancelled, &m);
  }
  if (asks_too_much(c)) {
    messages_.count(m, r);
    return failed(c, ReturnCode::kOpViolation, &m);
  }
  return return_part(c, m, *region, progress);
}

pds::Answer RmaTarget::return_part(RequestContext& c, RxMessage& m, const MemoryRegion& region,
                                   ReadProgress* progress) {
  const RequestView& r = c.request;
  const std::uint64_t at = m.start + r.message_offset;
  pds::Answer answer = data_fits_ack(c, region) ? answer_with_data(c, region, at)
                                                : returns_.return_data(c, region, at, *progress);
  if (answer.kind == pds::Answer::Kind::kRefuse) {
    if (m.coverage.is_empty()) forget(c.now, m);
    return answer;  // it will come again
  }
  messages_.count(m, r);
  if (!m.is_complete()) return answer;
  shares_.release(m);
  if (progress != nullptr) {
    returns_.end_requests(c.now, *progress);
  } else {
    returns_.complete(c.now, c.endpoint->id, c.source(), region.key, r.request_length);
  }
  return answer;
}

/// No packet of it was taken. The first one may come again on another PDC, and then nothing would end what it had begun here.
void RmaTarget::forget(Instant now, RxMessage& m) {
  returns_.fail(now, m.progress);
  shares_.release(m);
}

/// [SES 11.2 row 6] The data rides on the ACK.
pds::Answer RmaTarget::answer_with_data(RequestContext& c, const MemoryRegion& region,
                                        std::uint64_t at) {
  const std::uint32_t n = c.request.covered;
  if (n > core_.payload_mtu)  // than a packet of ours holds
    return answer_error(c.request, ReturnCode::kOpViolation, c.request.ri_generation, true);
  if (!region.iov.gather(static_cast<std::size_t>(at), ack_data_.data(), n))
    return answer_error(c.request, ReturnCode::kHostUnsuccessCmpl, c.request.ri_generation, true);
  return answer_carrying(c);
}

pds::Answer RmaTarget::answer_carrying(const RequestContext& c) {
  const RequestView& r = c.request;
  pds::Answer answer;
  answer.guaranteed = true;
  answer.response.data = {ack_data_.data(), r.covered};
  if (r.form == wire::NextHdr::kRequestStd) {
    wire::SesResponseData h;
    h.opcode = ResponseOpcode::kResponseWData;
    h.return_code = wire::ReturnCode::kOk;
    h.job_id = r.job_id;
    h.message_id = h.read_request_message_id = r.message_id;
    h.payload_length = static_cast<std::uint16_t>(r.covered);
    h.modified_length = r.request_length;
    h.message_offset = r.message_offset;
    answer.response.next_hdr = static_cast<std::uint8_t>(wire::NextHdr::kResponseData);
    answer.response.header_bytes = wire::SesResponseData::kSize;
    wire::emit(h, answer.response.header.data());
  } else {
    wire::SesResponseDataSmall h;
    h.opcode = ResponseOpcode::kResponseWData;
    h.return_code = wire::ReturnCode::kOk;
    h.job_id = r.job_id;
    h.payload_length = static_cast<std::uint16_t>(r.covered);
    h.original_request_psn = c.packet.handle.psn;
    answer.response.next_hdr = static_cast<std::uint8_t>(wire::NextHdr::kResponseDataSmall);
    answer.response.header_bytes = wire::SesResponseDataSmall::kSize;
    wire::emit(h, answer.response.header.data());
  }
  return answer;
}

}  // namespace uet::ses
