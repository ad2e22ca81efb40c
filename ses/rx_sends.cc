// SEND and TAGGED_SEND at the target. [SES 7]
#include <algorithm>

#include "ses/receiver.h"

namespace uet::ses {
namespace {

/// Bytes of a message of `length` that fit behind `start` in `r`.
std::uint64_t fitting(const Receive& r, std::uint64_t start, std::uint64_t length) {
  return start >= r.iov.size() ? 0 : std::min<std::uint64_t>(length, r.iov.size() - start);
}

/// Of a message whole in `receive`, at `start`, as far as `limit` bytes of it fit; `c` is its last packet.
inline Completion completion_of(const RequestContext& c, const Receive& receive,
                                std::uint64_t start, std::uint64_t limit) {
  const RequestView& r = c.request;
  Completion completion;
  completion.code = limit < r.request_length ? ReturnCode::kTruncated : ReturnCode::kOk;
  completion.length = limit;
  completion.overflow_length = r.request_length - limit;
  completion.tag = r.mkey_match;
  completion.source = c.source();
  if (receive.multi_recv)
    completion.buffer = static_cast<std::uint8_t*>(receive.iov.base()) + (start - r.buffer_offset);
  return completion;
}

inline pds::Answer answer_placed(const RequestView& r, std::uint64_t limit) {
  return limit < r.request_length
             ? answer_ok(r, ResponseList::kExpected, static_cast<std::uint32_t>(limit))
             : answer_default(r);
}

}  // namespace

pds::Answer Receiver::begin_send(Context& c) {
  const RequestView& r = c.request;
  RiSpace& space = c.endpoint->space(is_tagged(r.opcode));
  Sender* sender = senders_.find(c.endpoint->id, c.packet.source);
  const Gate* gate = sender == nullptr ? nullptr : &sender->gates[is_tagged(r.opcode) ? 1 : 0];
  // [SES 2.5 rules 1, 2] Without generations the only one there is is 0, which it then stays.
  if (r.ri_generation != (gate == nullptr ? 0 : gate->generation))
    return reject(c, ReturnCode::kBadGeneration);
  if (gate != nullptr && !gate->is_enabled && !reopens(c, space, *sender))
    return refuse_closed(c, *sender);
  if (!r.rel && !c.endpoint->config.accept_any_job && r.job_id != c.endpoint->config.job_id)
    return reject(c, ReturnCode::kPermViolation);
  if (!r.is_single()) {
    if (!shares_.has_place(c)) return answer_refuse();
    // That may have taken the place of one at rest.
    sender = senders_.find(c.endpoint->id, c.packet.source);
  }
  if (r.target_token != 0) [[unlikely]]
    return begin_restarted(c);
  return r.is_sequenced ? begin_sequenced(c, sender) : take_in(c, space, sender);
}

/// The turn of the message has come: a receive takes it, or it waits for one.
pds::Answer Receiver::take_in(Context& c, RiSpace& space, Sender* sender) {
  Unexpected* header = sender == nullptr ? nullptr : headers_.find(c, *sender);
  if (header != nullptr && header->claimed) return deliver_claimed(c, space, *header);
  if (Receive* receive = match(c.now, space, c.incoming(), c.need())) {
    if (header != nullptr) headers_.forget(*header);
    return deliver(c, space, *receive);
  }
  pds::Answer answer = capture(c, space, header);
  if (core_.config.flow_control) answer.resource = c.endpoint->id;
  return answer;
}

/// Of the room for unexpected messages of an endpoint.
std::uint32_t Receiver::fill_of(EndpointId endpoint) const {
  const Endpoint* const e = core_.endpoints.find(endpoint);
  return e == nullptr ? 0 : store_.fill(e->overflow);
}

/// The receive that takes this message. Multi-receive buffers whose rest is too small are given
/// back on the way; one that is smaller than the message as a whole takes what fits.
Receive* Receiver::match(Instant now, RiSpace& space, const Incoming& incoming,
                         std::uint64_t need) {
  for (;;) {
    Receive* r = space.posted->find(incoming);
    if (r == nullptr || !r->multi_recv || need <= r->room() || need > r->iov.size()) return r;
    retire_multi_recv(now, space, *r);
  }
}

/// No further message goes into the buffer.
void Receiver::retire_multi_recv(Instant now, RiSpace& space, Receive& r) {
  space.posted->remove(r);
  if (r.in_flight > 0) return;  // the last message in it says so
  ++r.in_flight;
  Completion completion;
  complete_receive(now, *r.endpoint, r, completion);
}

pds::Answer Receiver::deliver(Context& c, RiSpace& space, Receive& receive) {
  const RequestView& r = c.request;
  if (r.kind == OpcodeClass::kRendezvous) return deliver_rendezvous(c, space, receive);
  const std::uint64_t start = receive.cursor + r.buffer_offset;
  const std::uint64_t limit =
      start < r.buffer_offset ? 0 : fitting(receive, start, r.request_length);
  if (core_.config.reject_long && limit < r.request_length) return reject(c, ReturnCode::kTooLong);
  core_.trace.emit(c.now, base::EventId::kMessageMatched, 0, {},
                   static_cast<std::uint64_t>(r.opcode), r.request_length);
  c.is_taken = true;
  take(space, receive, start + limit);
  if (r.is_single()) {
    const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(limit, r.payload.size()));
    if (n > 0) receive.iov.scatter(start, r.payload.data(), n);
    Completion completion = completion_of(c, receive, start, limit);
    completion.data = r.header_data;
    completion.has_data = r.hd;
    complete_receive(c.now, *c.endpoint, receive, completion);
    return answer_placed(r, limit);
  }
  RxMessage& m = shares_.begin(c, RxTarget::kReceive);
  m.receive = &receive;
  m.start = start;
  m.limit = limit;
  messages_.count(m, r);
  return proceed_receive(c, m);
}

/// A message that ends at `end` goes into the receive.
void Receiver::take(RiSpace& space, Receive& receive, std::uint64_t end) {
  ++receive.in_flight;
  if (receive.multi_recv) {
    receive.cursor =
        next_message_at(static_cast<std::size_t>(std::min<std::uint64_t>(end, receive.iov.size())));
    if (receive.cursor > receive.iov.size()) receive.cursor = receive.iov.size();
    if (receive.room() < receive.endpoint->config.min_multi_recv) space.posted->remove(receive);
  } else if (receive.is_posted) {  // else it was the claim's
    space.posted->remove(receive);
  }
}

pds::Answer Receiver::proceed_receive(Context& c, RxMessage& m) {
  const RequestView& r = c.request;
  place(m, r);
  if (!m.is_complete()) return answer_pending(r);
  if (m.end < m.carried_length)  // a deferred message was given up by its sender
    return fail(c, m, ReturnCode::kInitiatorErr);
  if (m.unexpected != nullptr) return end_eager_part(c, m);
  Receive& receive = *m.receive;
  Endpoint& endpoint = *m.endpoint;
  const std::uint64_t limit = m.limit;
  Completion completion = completion_of(c, receive, m.start, limit);
  completion.data = m.header_data;
  completion.has_data = m.hd;
  shares_.release(m);
  complete_receive(c.now, endpoint, receive, completion);
  return answer_placed(r, limit);
}

void Receiver::place(RxMessage& m, const RequestView& r) {
  if (r.message_offset >= m.limit) return;
  const auto n = static_cast<std::size_t>(
      std::min<std::uint64_t>(r.payload.size(), m.limit - r.message_offset));
  if (n > 0) m.receive->iov.scatter(m.start + r.message_offset, r.payload.data(), n);
  m.placed += n;
}

/// [SES 7.2] No posted receive matches this message: keep it, if there is room for all of it.
/// `header`: what was kept of an earlier attempt, whose place in the list it takes.
pds::Answer Receiver::capture(Context& c, RiSpace& space, Unexpected* header) {
  const RequestView& r = c.request;
  Endpoint& endpoint = *c.endpoint;
  Sender* sender = senders_.find_or_make(endpoint.id, c.packet.source, clock_.ns());
  if (sender == nullptr)  // an ordered message must not be overtaken, so it is not consumed
    return c.is_ordered() ? answer_refuse() : reject(c, ReturnCode::kNoMatch);
  const bool is_kept = r.carried_length <= core_.config.overflow_max || !may_defer(c, *sender);
  Unexpected* u = is_kept ? store_.admit(endpoint.overflow, *sender, r.carried_length) : nullptr;
  if (u == nullptr)
    return may_defer(c, *sender) ? defer(c, space, *sender, header)
                                 : refuse_for_lack(c, space, *sender, header);
  if (!store_.capture(*u, r.message_offset, r.payload)) {
    store_.drop_payload(*u, endpoint.overflow);
    store_.release(*u, endpoint.overflow);
    store_.recycle(*u);
    return reject(c, ReturnCode::kUncorTrnsnt);
  }
  senders_.hold(*sender);
  core_.trace.emit(c.now, base::EventId::kMessageUnexpected, 0, {},
                   static_cast<std::uint64_t>(r.opcode), r.request_length);
  enlist(c, space, *u, header);
  note_rest(c, *u);
  if (header != nullptr) headers_.forget(*header);
  c.is_taken = true;
  return keep(c, *u);
}

/// The store has the first packet of a message that came.
pds::Answer Receiver::keep(Context& c, Unexpected& u) {
  const RequestView& r = c.request;
  if (!r.is_single()) {
    RxMessage& m = shares_.begin(c, RxTarget::kCapture);
    m.unexpected = &u;
    messages_.count(m, r);
    u.message = &m;
    if (m.is_complete()) return fail(c, m, ReturnCode::kInitiatorErr);  // given up at once
    return answer_pending(r);
  }
  reports_.remember(c, u);
  return answer_ok(r, ResponseList::kOverflow, r.carried_length);
}

pds::Answer Receiver::proceed_capture(Context& c, RxMessage& m) {
  const RequestView& r = c.request;
  Unexpected& u = *m.unexpected;
  if (!store_.capture(u, r.message_offset, r.payload)) return fail(c, m, ReturnCode::kUncorTrnsnt);
  if (r.som) {
    u.has_header_data = r.hd;
    u.header_data = r.header_data;
  }
  if (!m.is_complete()) return answer_pending(r);
  if (m.end < m.carried_length) return fail(c, m, ReturnCode::kInitiatorErr);
  u.message = nullptr;
  shares_.release(m);
  reports_.remember(c, u);
  return answer_ok(r, ResponseList::kOverflow, r.carried_length);
}

/// Puts `u` in the list of its endpoint, where `header` is or at the end.
void Receiver::enlist(Context& c, RiSpace& space, Unexpected& u, Unexpected* header) {
  c.describe(u);
  if (header == nullptr) {
    space.unexpected.push_back(u);
    return;
  }
  u.claimed = header->claimed;
  u.claim_context = header->claim_context;
  UnexpectedList& list = u.claimed ? c.endpoint->claimed : space.unexpected;
  list.insert(list.iterator_to(*header), u);
}

/// One message in `r` is at its end; `completion` says how, and `endpoint` where it came to.
void Receiver::complete_receive(Instant now, Endpoint& endpoint, Receive& r,
                                Completion& completion) {
  completion.kind = r.tagged ? OpKind::kTaggedReceive : OpKind::kReceive;
  completion.context = r.context;
  completion.user_flags = r.user_flags;
  if (!r.tagged) completion.tag = 0;
  --r.in_flight;
  const bool is_done = !r.is_posted && r.in_flight == 0;
  completion.multi_recv_released = r.multi_recv && is_done;
  if (is_done) release_receive(r);
  core_.trace.emit(now, base::EventId::kMessageDelivered, 0, {},
                   static_cast<std::uint64_t>(completion.code), completion.length);
  endpoint.complete(completion);
}

void Receiver::release_receive(Receive& r) {
  r.iov.clear(core_.iov_pool);
  --r.endpoint->receives;
  if (r.filter.source != nullptr) {
    core_.peers.unhold(const_cast<Peer&>(*r.filter.source));
    r.filter.source = nullptr;
  }
  receives_.release(&r);
}

/// Takes an unexpected message, whose payload must be gone, from its endpoint. The room it leaves may let its space go on.
void Receiver::unlink_unexpected(Unexpected& u) {
  Endpoint& endpoint = *u.endpoint;
  UnexpectedList& list = u.claimed ? endpoint.claimed : endpoint.space(u.tagged).unexpected;
  list.erase(list.iterator_to(u));
  if (u.is_deferred) {
    --endpoint.deferred;
    --u.sender->deferred;
  }
  store_.release(u, endpoint.overflow);
  senders_.unhold(*u.sender);
  for (RiSpace& space : endpoint.spaces) gates_.open_all(space);
}

/// Forgets one whose sender cannot be waiting for its delivery: it is not complete.
void Receiver::release_unexpected(Unexpected& u) {
  unlink_unexpected(u);
  store_.recycle(u);
}

}  // namespace uet::ses
