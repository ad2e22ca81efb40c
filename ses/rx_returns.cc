// Read data on its way back to the initiator, in the return direction of the PDC that asked.
// [SES 6.3]
#include <algorithm>

#include "ses/receiver.h"

namespace uet::ses {
ReadTally* Receiver::make_tally(Context& c) {
  ReadTally* tally = tallies_.acquire();
  if (tally == nullptr) return nullptr;
  tally->endpoint = c.endpoint->id;
  tally->source = c.source();
  tally->length = c.request.request_length;
  tally->returns_open = 0;
  tally->all_requested = false;
  tally->failed = false;
  tally->was_counted = false;
  tally->operation = {};
  return tally;
}

/// The READ is over when nothing of it is on its way any more.
void Receiver::settle(Instant now, ReadTally& tally) {
  if (tally.returns_open > 0 || !(tally.all_requested || tally.failed)) return;
  const ReadTally done = tally;
  tallies_.release(&tally);
  if (done.failed || done.was_counted) return;
  if (done.operation)
    core_.region_reads->on_region_read(now, done.operation, done.length);
  else
    complete_read(now, done.endpoint, done.source, done.key, done.length);
}

/// Queues the data that this packet asks for and accepts the packet; or refuses it when there is no
/// room.
pds::Answer Receiver::return_data(Context& c, const MemoryRegion& region, std::uint64_t at,
                                  ReadTally& tally) {
  ReadReturn* r = make_return(c, ref_of(region), region.iov, at, tally);
  if (r == nullptr) {
    if (c.request.is_single()) tally.failed = true;  // the caller settles it
    return answer_refuse();
  }
  if (begin_return(c, *r, tally) == pds::SubmitResult::kNever)
    return answer_error(c.request, ReturnCode::kUndeliverable, 0, true);
  return answer_default(c.request);
}

/// With the carrier, or among those that wait. kNever: it is gone, and the caller settles the tally.
pds::SubmitResult Receiver::begin_return(Context& c, ReadReturn& r, ReadTally& tally) {
  Sender& sender = *r.sender;
  const auto result = sender.waiting.empty() && may_carry(sender) ? submit_return(c.now, r)
                                                                  : pds::SubmitResult::kAgain;
  if (result == pds::SubmitResult::kAgain) wait_for_turn(r);
  if (result == pds::SubmitResult::kNever) {
    drop_return(r);
    tally.failed = true;
  }
  return result;
}

bool Receiver::has_place_for_return(const Sender& owner, pds::PdcRef pdc) {
  const std::size_t free = returns_.available();
  const bool has_place =
      has_share(owner.returns, free) && returns_use_.has_share(pdc, free - owner.returns);
  if (!has_place) ++refused_returns_;
  return has_place;
}

/// `memory` from `at` on is what goes back: of the region, or of nothing that will still be there. [SES 15]
ReadReturn* Receiver::make_return(Context& c, PoolRef region, const IovList& memory,
                                  std::uint64_t at, ReadTally& tally) {
  Sender* owner = shares_.owner_of(c);
  if (owner == nullptr || !has_place_for_return(*owner, c.packet.handle.pdc)) return nullptr;
  ReadReturn* r = returns_.acquire();
  if (r == nullptr) return nullptr;
  r->sender = owner;
  r->is_carried = false;
  r->copy = nullptr;
  r->copy_cost = 0;
  // [SES 17] A later write of the same context must not show in the data, so the memory is read
  // now. What an atomic replaces is nowhere else.
  const bool reads_now = c.is_ordered() || is_fetching(c.request.opcode);
  if (reads_now && c.request.covered > 0 && !copy_for_return(*r, memory, at, c.request.covered)) {
    returns_.release(r);
    return nullptr;
  }
  ++owner->returns;
  ++returns_use_.of(c.packet.handle.pdc);
  senders_.hold(*owner);
  r->request = c.packet.handle;
  r->region = region;
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

bool Receiver::copy_for_return(ReadReturn& r, const IovList& memory, std::uint64_t at,
                               std::uint32_t length) {
  const std::size_t cost = read_copies_.cost_of(length);
  if (!has_share(r.sender->copy_bytes, read_copies_.max_bytes() - read_copies_.reserved()) ||
      !read_copies_.reserve(cost))
    return false;
  Block* copy = read_copies_.take(length);
  if (copy == nullptr) {
    read_copies_.unreserve(cost);
    return false;
  }
  memory.gather(static_cast<std::size_t>(at), copy->bytes(), length);
  r.copy = copy;
  r.copy_cost = cost;
  r.sender->copy_bytes += cost;
  return true;
}

pds::SubmitResult Receiver::submit_return(Instant now, ReadReturn& r) {
  pds::TxMessage message;
  message.token = make_token(TokenKind::kReadReturn, r.pool_index, r.serial);
  message.segments = r.segments;
  message.ses_header_bytes =
      r.small ? wire::SesResponseDataSmall::kSize : wire::SesResponseData::kSize;
  message.payload_bytes = r.length;
  message.segment_payload = r.piece;
  const pds::SubmitResult result = core_.carrier->submit_return(now, r.request, message);
  if (result == pds::SubmitResult::kQueued) {
    r.is_carried = true;
    ++r.sender->returns_carried;
    ++returns_carried_;
  }
  return result;
}

/// What the carrier has of one reader who acknowledges nothing stays there until that reader is given up, so one reader gets
/// half of its places at most.
bool Receiver::may_carry(const Sender& sender) const {
  const std::size_t places = core_.config.max_returns_carried;
  return returns_carried_ < places &&
         has_share(sender.returns_carried, places - returns_carried_ - 1);
}

void Receiver::wait_for_turn(ReadReturn& r) {
  if (r.sender->waiting.empty()) turns_.push_back(*r.sender);
  r.sender->waiting.push_back(r);
}

void Receiver::end_wait(ReadReturn& r) {
  r.sender->waiting.erase(r.sender->waiting.iterator_to(r));
  if (r.sender->waiting.empty()) turns_.erase(turns_.iterator_to(*r.sender));
}

/// There may be places with the carrier: readers take turns, one packet each. One whose PDC is gone does not stop those behind
/// it, and neither does a reader that has its share. At each call only a few of those are looked at; the next call goes on
/// behind them, and there is one as long as the carrier has anything.
void Receiver::serve_returns(Instant now) {
  constexpr int kLookAt = 8;
  int looked = 0;
  while (!turns_.empty() && looked < kLookAt) {
    Sender& sender = turns_.front();
    turns_.splice(turns_.end(), turns_, turns_.begin());
    if (!may_carry(sender)) {
      ++looked;
      continue;
    }
    ReadReturn& r = sender.waiting.front();
    const pds::SubmitResult result = submit_return(now, r);
    if (result == pds::SubmitResult::kAgain) return;  // the carrier calls again
    end_wait(r);
    if (result == pds::SubmitResult::kNever) release_return(now, r, false);
  }
}

void Receiver::on_resume(Instant now) {
  submit_reports(now);
  if (reports_.empty()) serve_returns(now);
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
    // A peer may look for either of the two. [docs/interop.md]
    h.message_id = h.read_request_message_id = r->request_message_id;
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
  serve_returns(now);
}

void Receiver::on_return_error(Instant now, pds::MessageToken token) {
  if (ReadReturn* r = find_return(token)) release_return(now, *r, false);
  serve_returns(now);
}

void Receiver::release_return(Instant now, ReadReturn& r, bool delivered) {
  ReadTally* tally = tallies_.find(r.tally);
  drop_return(r);
  if (tally == nullptr) return;
  if (!delivered) tally->failed = true;
  settle(now, *tally);
}

/// Gives back what the packet holds, and leaves its tally to the caller.
void Receiver::drop_return(ReadReturn& r) {
  if (r.copy != nullptr) {
    read_copies_.give_back(r.copy);
    read_copies_.unreserve(r.copy_cost);
    r.sender->copy_bytes -= r.copy_cost;
  }
  if (r.is_carried) {
    --r.sender->returns_carried;
    --returns_carried_;
  }
  --r.sender->returns;
  --returns_use_.of(r.request.pdc);
  senders_.unhold(*r.sender);
  if (ReadTally* tally = tallies_.find(r.tally)) --tally->returns_open;
  returns_.release(&r);
}

ReadReturn* Receiver::find_return(pds::MessageToken token) {
  ReadReturn* r = returns_.at(index_of(token));
  if (r == nullptr) return nullptr;
  return make_token(TokenKind::kReadReturn, r->pool_index, r->serial) == token ? r : nullptr;
}

}  // namespace uet::ses
