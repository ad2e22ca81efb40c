// Read data on its way back to the initiator, in the return direction of the PDC that asked.
// [SES 6.3]
#include <algorithm>

#include "ses/receiver.h"

namespace uet::ses {
namespace {

constexpr base::Duration kRetryReturns = base::Duration::from_us(100);

}  // namespace

ReadTally* Receiver::make_tally(Context& c) {
  ReadTally* tally = tallies_.acquire();
  if (tally == nullptr) return nullptr;
  tally->endpoint = c.endpoint->id;
  tally->source = source_of(c);
  tally->length = c.request.request_length;
  tally->returns_open = 0;
  tally->all_requested = false;
  tally->failed = false;
  return tally;
}

/// The READ is over when nothing of it is on its way any more.
void Receiver::settle(Instant now, ReadTally& tally) {
  if (tally.returns_open > 0 || !(tally.all_requested || tally.failed)) return;
  const ReadTally done = tally;
  tallies_.release(&tally);
  if (!done.failed) complete_read(now, done.endpoint, done.source, done.key, done.length);
}

/// Queues the data that this packet asks for and accepts the packet; or refuses it when there is no
/// room.
pds::Answer Receiver::return_data(Context& c, const MemoryRegion& region, std::uint64_t at,
                                  ReadTally& tally) {
  ReadReturn* r = make_return(c, region, at, tally);
  if (r == nullptr) {
    if (c.request.is_single()) tally.failed = true;  // the caller settles it
    return answer_refuse(wire::NackCode::kNoSesMsgAvail);
  }
  submit_return(c.now, *r);
  return answer_default(c.request);
}

ReadReturn* Receiver::make_return(Context& c, const MemoryRegion& region, std::uint64_t at,
                                  ReadTally& tally) {
  ReadReturn* r = returns_.acquire();
  if (r == nullptr) return nullptr;
  r->copy = nullptr;
  r->copy_cost = 0;
  if (c.is_ordered() && c.request.covered > 0) {
    // [SES 17] A later write of the same context must not show in the data, so the memory is read
    // now.
    const std::size_t cost = read_copies_.cost_of(c.request.covered);
    Block* copy = nullptr;
    if (read_copies_.reserve(cost)) {
      copy = read_copies_.take(c.request.covered);
      if (copy == nullptr) read_copies_.unreserve(cost);
    }
    if (copy == nullptr) {
      returns_.release(r);
      return nullptr;
    }
    region.iov.gather(static_cast<std::size_t>(at), copy->bytes(), c.request.covered);
    r->copy = copy;
    r->copy_cost = cost;
  }
  r->request = c.packet.handle;
  r->region = ref_of(region);
  r->start = at;
  r->length = c.request.covered;
  r->small = c.request.form != wire::NextHdr::kRequestStd;
  // The small form cannot say what part of the data it carries.
  r->piece =
      r->small ? core_.largest_payload() : core_.payload_towards(c.now, c.packet.source, r->length);
  r->segments = segments_for(r->length, r->piece);
  r->answered = 0;
  r->failed = false;
  r->message_offset = c.request.message_offset;
  r->request_length = c.request.request_length;
  r->request_message_id = c.request.message_id;
  r->job_id = c.request.job_id;
  r->tally = ref_of(tally);
  ++tally.returns_open;
  return r;
}

void Receiver::submit_return(Instant now, ReadReturn& r) {
  pds::TxMessage message;
  message.token = make_token(TokenKind::kReadReturn, r.pool_index, r.serial);
  message.segments = r.segments;
  message.ses_header_bytes =
      r.small ? wire::SesResponseDataSmall::kSize : wire::SesResponseData::kSize;
  message.payload_bytes = r.length;
  message.segment_payload = r.piece;
  if (core_.carrier->submit_return(now, r.request, message)) return;
  // No room, or the PDC is going: then on_pdc_gone() takes it out of this list.
  waiting_returns_.push_back(r);
  returns_retry_ = now + kRetryReturns;
}

void Receiver::on_resume(Instant now) {
  returns_retry_ = Instant::never();
  while (!waiting_returns_.empty()) {
    ReadReturn& r = waiting_returns_.front();
    waiting_returns_.pop_front();
    submit_return(now, r);
    if (!returns_retry_.is_never()) {
      // Refused again: back to its old place, and enough for now.
      waiting_returns_.erase(waiting_returns_.iterator_to(r));
      waiting_returns_.push_front(r);
      return;
    }
  }
}

/// A region that was closed meanwhile is not touched; the initiator is told. [SES 15]
pds::SegmentInfo Receiver::emit_return(pds::MessageToken token, std::uint32_t segment,
                                       net::Packet& packet) {
  ReadReturn* r = find_return(token);
  UET_CHECK(r != nullptr);
  const MemoryRegion* region = core_.memory.find(r->region);
  const bool can_read = r->copy != nullptr || region != nullptr;
  const std::uint32_t at = segment * r->piece;
  UET_CHECK(segment < r->segments);
  const std::uint32_t n = can_read ? std::min(r->piece, r->length - at) : 0;
  const auto code = can_read ? wire::ReturnCode::kOk : wire::ReturnCode::kCancelled;
  if (r->small) {
    wire::SesResponseDataSmall h;
    h.opcode = ResponseOpcode::kResponseWData;
    h.return_code = code;
    h.payload_length = static_cast<std::uint16_t>(n);
    h.job_id = r->job_id;
    h.original_request_psn = r->request.psn;
    wire::emit(h, packet.append(wire::SesResponseDataSmall::kSize));
  } else {
    wire::SesResponseData h;
    h.opcode = ResponseOpcode::kResponseWData;
    h.return_code = code;
    h.job_id = r->job_id;
    h.read_request_message_id = r->request_message_id;
    h.payload_length = static_cast<std::uint16_t>(n);
    h.modified_length = can_read ? r->request_length : 0;
    h.message_offset = r->message_offset + at;
    wire::emit(h, packet.append(wire::SesResponseData::kSize));
  }
  if (n > 0) {
    // Not borrowed: a region may change while it is read, and bytes that change between the CRC and the wire look like damage.
    std::uint8_t* const out = packet.append(n);
    if (r->copy != nullptr)
      std::copy_n(r->copy->bytes() + at, n, out);
    else
      region->iov.gather(static_cast<std::size_t>(r->start) + at, out, n);
  }
  return {static_cast<std::uint8_t>(r->small ? wire::NextHdr::kResponseDataSmall
                                             : wire::NextHdr::kResponseData)};
}

void Receiver::on_return_response(Instant now, pds::MessageToken token, std::uint8_t next_hdr,
                                  std::span<const std::uint8_t> response) {
  ReadReturn* r = find_return(token);
  if (r == nullptr) {
    core_.trace.drop(now, base::DropReason::kSesUnknownResponse, response.size());
    return;
  }
  ResponseView view;
  const bool is_default =
      next_hdr == static_cast<std::uint8_t>(wire::NextHdr::kNone) || response.empty();
  const bool delivered =
      is_default || (parse_response(next_hdr, response, view) &&
                     (view.code == ReturnCode::kOk || view.code == ReturnCode::kNull));
  if (!delivered) r->failed = true;
  if (++r->answered < r->segments) return;
  release_return(now, *r, !r->failed);
}

void Receiver::on_return_error(Instant now, pds::MessageToken token) {
  if (ReadReturn* r = find_return(token)) release_return(now, *r, false);
}

void Receiver::release_return(Instant now, ReadReturn& r, bool delivered) {
  if (r.copy != nullptr) {
    read_copies_.give_back(r.copy);
    read_copies_.unreserve(r.copy_cost);
  }
  ReadTally* tally = tallies_.find(r.tally);
  returns_.release(&r);
  if (tally == nullptr) return;
  --tally->returns_open;
  if (!delivered) tally->failed = true;
  settle(now, *tally);
}

ReadReturn* Receiver::find_return(pds::MessageToken token) {
  ReadReturn* r = returns_.at(index_of(token));
  if (r == nullptr) return nullptr;
  return make_token(TokenKind::kReadReturn, r->pool_index, r->serial) == token ? r : nullptr;
}

}  // namespace uet::ses
