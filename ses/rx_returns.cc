// Read data on its way back to the initiator, in the return direction of the PDC that asked.
// [SES 6.3]
#include "ses/rx_returns.h"

#include <algorithm>
#include <utility>

#include "lib/base/check.h"
#include "ses/responses.h"

namespace uet::ses {

ReadReturns::ReadReturns(Core& core, SenderTable& senders, MessageShares& shares)
    : core_(core),
      senders_(senders),
      shares_(shares),
      pool_(core.config.max_read_returns),
      reads_(core.config.max_read_returns + core.config.max_messages),
      copies_(core.config.read_copy_bytes, core.largest_payload(), core.largest_payload()) {}

ReadReturns::~ReadReturns() {
  turns_.clear();
}

ReadProgress* ReadReturns::begin_read(const RequestContext& c) {
  ReadProgress* progress = reads_.acquire();
  if (progress == nullptr) return nullptr;
  progress->endpoint = c.endpoint->id;
  progress->source = c.source();
  progress->length = c.request.request_length;
  progress->piece = piece_of(c);
  progress->returns_open = 0;
  progress->all_requested = false;
  progress->failed = false;
  progress->was_counted = false;
  progress->operation = {};
  return progress;
}

/// The READ is over when nothing of it is on its way any more.
void ReadReturns::settle(Instant now, ReadProgress& progress) {
  if (progress.returns_open > 0 || !(progress.all_requested || progress.failed)) return;
  const ReadProgress done = progress;
  reads_.release(&progress);
  if (done.failed || done.was_counted) return;
  if (done.operation)
    core_.region_reads->on_region_read(now, done.operation, done.length);
  else
    complete(now, done.endpoint, done.source, done.key, done.length);
}

void ReadReturns::complete(Instant now, EndpointId endpoint, const Source& source,
                           std::uint64_t key, std::size_t length) {
  Endpoint* e = core_.endpoints.find(endpoint);
  if (e == nullptr) return;
  Completion completion;
  completion.kind = OpKind::kRemoteRead;
  completion.length = length;
  completion.source = source;
  completion.mr_key = key;
  core_.trace.emit(now, base::EventId::kMessageDelivered, 0, {},
                   static_cast<std::uint64_t>(ReturnCode::kOk), length);
  e->complete(completion);
}

void ReadReturns::end_requests(Instant now, ReadProgress& progress) {
  progress.all_requested = true;
  settle(now, progress);
}

void ReadReturns::fail(Instant now, PoolRef read) {
  ReadProgress* progress = reads_.find(read);
  if (progress == nullptr) return;
  progress->failed = true;
  settle(now, *progress);
}

/// Queues the data that this packet asks for and accepts the packet; or refuses it when there is no
/// room.
pds::Answer ReadReturns::return_data(RequestContext& c, const MemoryRegion& region,
                                     std::uint64_t at, ReadProgress& progress) {
  ReadReturn* r = make(c, ref_of(region), region.iov, at, progress);
  if (r == nullptr) {
    if (c.request.is_single()) progress.failed = true;  // the caller settles it
    return answer_refuse();
  }
  if (begin(c, *r, progress) == pds::SubmitResult::kNever)
    return answer_error(c.request, ReturnCode::kUndeliverable, 0, true);
  return answer_default(c.request);
}

/// With the carrier, or among those that wait. kNever: it is gone, and the caller settles the progress.
pds::SubmitResult ReadReturns::begin(RequestContext& c, ReadReturn& r, ReadProgress& progress) {
  Sender& sender = *r.sender;
  const auto result =
      sender.waiting.empty() && may_carry(sender) ? submit(c.now, r) : pds::SubmitResult::kAgain;
  if (result == pds::SubmitResult::kAgain) wait_for_turn(r);
  if (result == pds::SubmitResult::kNever) {
    drop(r);
    progress.failed = true;
  }
  return result;
}

bool ReadReturns::has_place(const Sender& owner, pds::PdcRef pdc) {
  const std::size_t free = pool_.available();
  const bool has_place =
      has_share(owner.returns, free) && use_.has_share(pdc, free - owner.returns);
  if (!has_place) ++refused_;
  return has_place;
}

/// What a packet of data carries. The initiator expects all but the last of a READ to be alike: so what one packet asks for is cut
/// without a rest, and none otherwise when the way changes. Every way between endpoints that know them carries 1,280 bytes.
std::uint32_t ReadReturns::piece_of(const RequestContext& c) const {
  const RequestView& r = c.request;
  // The small form cannot say what part of the data it carries.
  if (r.form != wire::NextHdr::kRequestStd) return core_.largest_payload();
  if (r.is_wide_read() && r.wide.payload <= kEthernetPayload) return r.wide.payload;
  const std::uint32_t whole = r.opcode == SesOpcode::kRead ? r.request_length : r.covered;
  std::uint32_t carried = core_.payload_towards(c.now, c.packet.source, whole);
  if (r.is_wide_read()) carried = std::min(carried, r.wide.payload);
  return carried == kEthernetPayload && whole > carried ? kSmallestPayload : carried;
}

/// `memory` from `at` on is what goes back: of the region, or of nothing that will still be there. [SES 15]
ReadReturn* ReadReturns::make(RequestContext& c, PoolRef region, const IovList& memory,
                              std::uint64_t at, ReadProgress& progress) {
  Sender* owner = shares_.owner_of(c);
  if (owner == nullptr || !has_place(*owner, c.packet.handle.pdc)) return nullptr;
  ReadReturn* r = pool_.acquire();
  if (r == nullptr) return nullptr;
  r->sender = owner;
  r->is_carried = false;
  r->copy = nullptr;
  r->copy_cost = 0;
  r->is_lost = false;
  // [SES 17] A later write of the same context must not show in the data, so the memory is read
  // now. What an atomic replaces is nowhere else.
  const bool reads_now = c.is_ordered() || is_fetching(c.request.opcode);
  if (reads_now && c.request.covered > 0 && !copy(*r, memory, at, c.request.covered)) {
    pool_.release(r);
    return nullptr;
  }
  ++owner->returns;
  ++use_.of(c.packet.handle.pdc);
  senders_.hold(*owner);
  r->request = c.packet.handle;
  r->region = region;
  r->start = at;
  r->length = c.request.covered;
  r->small = c.request.form != wire::NextHdr::kRequestStd;
  r->piece = progress.piece;
  r->segments = segments_for(r->length, r->piece);
  r->answered = 0;
  r->failed = false;
  r->message_offset = c.request.message_offset;
  r->request_length = c.request.request_length;
  r->request_message_id = c.request.message_id;
  r->job_id = c.request.job_id;
  r->progress = ref_of(progress);
  ++progress.returns_open;
  return r;
}

bool ReadReturns::copy(ReadReturn& r, const IovList& memory, std::uint64_t at,
                       std::uint32_t length) {
  const std::size_t cost = copies_.cost_of(length);
  if (!has_share(r.sender->copy_bytes, copies_.max_bytes() - copies_.reserved()) ||
      !copies_.reserve(cost))
    return false;
  Block* copy = copies_.take(length);
  if (copy == nullptr) {
    copies_.unreserve(cost);
    return false;
  }
  r.is_lost = !memory.gather(static_cast<std::size_t>(at), copy->bytes(), length);
  r.copy = copy;
  r.copy_cost = static_cast<std::uint32_t>(cost);
  r.sender->copy_bytes += cost;
  return true;
}

pds::SubmitResult ReadReturns::submit(Instant now, ReadReturn& r) {
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
    ++carried_;
  }
  return result;
}

/// What the carrier has of one reader who acknowledges nothing stays there until that reader is given up, so one reader gets
/// half of its places at most.
bool ReadReturns::may_carry(const Sender& sender) const {
  const std::size_t places = core_.config.max_returns_carried;
  return carried_ < places && has_share(sender.returns_carried, places - carried_ - 1);
}

void ReadReturns::wait_for_turn(ReadReturn& r) {
  if (r.sender->waiting.empty()) turns_.push_back(*r.sender);
  r.sender->waiting.push_back(r);
}

void ReadReturns::end_wait(ReadReturn& r) {
  r.sender->waiting.erase(r.sender->waiting.iterator_to(r));
  if (r.sender->waiting.empty()) turns_.erase(turns_.iterator_to(*r.sender));
}

/// There may be places with the carrier: readers take turns, what one request asked for each. One whose PDC is gone does not stop those behind
/// it, and neither does a reader that has its share. At each call only a few of those are looked at; the next call goes on
/// behind them, and there is one as long as the carrier has anything.
void ReadReturns::serve(Instant now) {
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
    const pds::SubmitResult result = submit(now, r);
    if (result == pds::SubmitResult::kAgain) return;  // the carrier calls again
    end_wait(r);
    if (result == pds::SubmitResult::kNever) release(now, r, false);
  }
}

void ReadReturns::on_pdc_gone(Instant now, pds::PdcRef pdc, Sender& reader) {
  const std::uint32_t& left = use_.of(pdc);
  for (auto it = reader.waiting.end(); left > 0 && it != reader.waiting.begin();) {
    ReadReturn& r = *--it;
    if (r.request.pdc != pdc) {
      ++passed_;
      continue;
    }
    ++it;
    end_wait(r);
    release(now, r, false);
  }
}

/// A region that was closed meanwhile is not touched; the initiator is told. [SES 15] Not borrowed: a region may change while it is
/// read, and bytes that change between the CRC and the wire look like damage.
wire::ReturnCode ReadReturns::fetch(const ReadReturn& r, std::uint32_t at, std::uint8_t* out,
                                    std::uint32_t n) const {
  if (r.is_lost) return wire::ReturnCode::kHostUnsuccessCmpl;
  if (r.copy != nullptr) {
    std::copy_n(r.copy->bytes() + at, n, out);
    return wire::ReturnCode::kOk;
  }
  const MemoryRegion* region = core_.memory.find(r.region);
  if (region == nullptr) return wire::ReturnCode::kCancelled;
  const std::size_t from = static_cast<std::size_t>(r.start) + at;
  const bool is_read = region->iov.gather(from, out, n);
  region->iov.fetch_ahead(from + n, n);
  return is_read ? wire::ReturnCode::kOk : wire::ReturnCode::kHostUnsuccessCmpl;
}

pds::SegmentInfo ReadReturns::emit(pds::MessageToken token, std::uint32_t segment,
                                   net::Packet& packet) {
  ReadReturn* r = find(token);
  UET_CHECK(r != nullptr);
  const std::uint32_t at = segment * r->piece;
  UET_CHECK(segment < r->segments);
  std::uint32_t n = std::min(r->piece, r->length - at);
  std::uint8_t* const header =
      packet.append(r->small ? wire::SesResponseDataSmall::kSize : wire::SesResponseData::kSize);
  const wire::ReturnCode code = fetch(*r, at, packet.append(n), n);
  if (code != wire::ReturnCode::kOk) packet.trim_back(std::exchange(n, 0));
  if (r->small) {
    wire::SesResponseDataSmall h;
    h.opcode = ResponseOpcode::kResponseWData;
    h.return_code = code;
    h.payload_length = static_cast<std::uint16_t>(n);
    h.job_id = r->job_id;
    h.original_request_psn = r->request.psn;
    wire::emit(h, header);
  } else {
    wire::SesResponseData h;
    h.opcode = ResponseOpcode::kResponseWData;
    h.return_code = code;
    h.job_id = r->job_id;
    // A peer may look for either of the two. [docs/interop.md]
    h.message_id = h.read_request_message_id = r->request_message_id;
    h.payload_length = static_cast<std::uint16_t>(n);
    h.modified_length = code == wire::ReturnCode::kOk ? r->request_length : 0;
    h.message_offset = r->message_offset + at;
    wire::emit(h, header);
  }
  return {static_cast<std::uint8_t>(r->small ? wire::NextHdr::kResponseDataSmall
                                             : wire::NextHdr::kResponseData)};
}

void ReadReturns::on_response(Instant now, pds::MessageToken token, std::uint8_t next_hdr,
                              std::span<const std::uint8_t> response) {
  ReadReturn* r = find(token);
  if (r == nullptr) {
    core_.trace.drop(now, base::DropReason::kSesUnknownResponse, response.size());
    return;
  }
  ResponseView view;
  const bool delivered = is_default_response(next_hdr, response) ||
                         (parse_response(next_hdr, response, view) &&
                          (view.code == ReturnCode::kOk || view.code == ReturnCode::kNull));
  if (!delivered) r->failed = true;
  if (++r->answered < r->segments) return;
  release(now, *r, !r->failed);
  serve(now);
}

void ReadReturns::on_error(Instant now, pds::MessageToken token) {
  if (ReadReturn* r = find(token)) release(now, *r, false);
  serve(now);
}

void ReadReturns::release(Instant now, ReadReturn& r, bool delivered) {
  ReadProgress* progress = reads_.find(r.progress);
  drop(r);
  if (progress == nullptr) return;
  if (!delivered) progress->failed = true;
  settle(now, *progress);
}

/// Gives back what the packet holds, and leaves its progress to the caller.
void ReadReturns::drop(ReadReturn& r) {
  if (r.copy != nullptr) {
    copies_.give_back(r.copy);
    copies_.unreserve(r.copy_cost);
    r.sender->copy_bytes -= r.copy_cost;
  }
  if (r.is_carried) {
    --r.sender->returns_carried;
    --carried_;
  }
  --r.sender->returns;
  --use_.of(r.request.pdc);
  senders_.unhold(*r.sender);
  if (ReadProgress* progress = reads_.find(r.progress)) --progress->returns_open;
  pool_.release(&r);
}

ReadReturn* ReadReturns::find(pds::MessageToken token) {
  ReadReturn* r = pool_.at(index_of(token));
  if (r == nullptr) return nullptr;
  return make_token(TokenKind::kReadReturn, r->pool_index, r->serial) == token ? r : nullptr;
}

}  // namespace uet::ses
