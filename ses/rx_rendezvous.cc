// Rendezvous at the target: the header and the eager part are those of any send, the rest is read from the source once a receive
// has taken the message. [SES 9, decision 142]
#include <algorithm>

#include "ses/receiver.h"

namespace uet::ses {

/// READs go to none but known peers: a source address may be false, and who is there need not have heard of us. Others send the
/// message as it is. [SES 8.1 has it so for restarts]
pds::Answer Receiver::begin_rendezvous(Context& c) {
  const RequestView& r = c.request;
  if (!core_.config.rendezvous || core_.peers.find_source(c.packet.source, r.initiator) == kAnyPeer)
    return reject(c, ReturnCode::kUnsupportedOp);
  if (r.form != wire::NextHdr::kRequestStd || r.carried_length > r.request_length)
    return reject(c, ReturnCode::kOpViolation);
  return begin_send(c);
}

/// The message came as a rendezvous: where its rest is.
void Receiver::note_rest(const Context& c, Unexpected& u) {
  if (c.request.kind != OpcodeClass::kRendezvous) return;
  const wire::ExtRendezvous ext = rendezvous_of(c.request);
  u.is_rendezvous = true;
  u.message_id = c.request.message_id;
  u.rest = {.eager = ext.eager_length,
            .relative = c.request.rel,
            .ri_generation = ext.read_ri_generation,
            .pid_on_fep = ext.read_pid_on_fep,
            .resource_index = ext.read_resource_index,
            .offset = ext.read_offset,
            .key = ext.read_memory_key};
}

/// A receive takes it. Refused, and to come again, when there is no descriptor for it.
pds::Answer Receiver::deliver_rendezvous(Context& c, RiSpace& space, Receive& receive) {
  const RequestView& r = c.request;
  const std::uint64_t start = receive.cursor + r.buffer_offset;
  const bool inside = start >= r.buffer_offset && start < receive.iov.size();
  const std::uint64_t limit =
      inside ? std::min<std::uint64_t>(r.request_length, receive.iov.size() - start) : 0;
  if (core_.config.reject_long && limit < r.request_length) return reject(c, ReturnCode::kTooLong);
  clock_.advance(c.now);
  Sender* sender = senders_.find_or_make(c.endpoint->id, c.packet.source, clock_.ns());
  Unexpected* descriptor =
      sender == nullptr ? nullptr : store_.note_header(*sender, r.request_length);
  if (descriptor == nullptr) return answer_refuse();
  Unexpected& u = *descriptor;
  u.is_header_only = false;
  senders_.hold(*sender);
  c.describe(u);
  note_rest(c, u);
  core_.trace.emit(c.now, base::EventId::kMessageMatched, 0, {},
                   static_cast<std::uint64_t>(r.opcode), r.request_length);
  c.is_taken = true;
  take(space, receive, start + limit);
  bind_rendezvous(u, receive, start, limit);
  if (!r.is_single()) {
    RxMessage& m = shares_.begin(c, RxTarget::kReceive);
    m.receive = &receive;
    m.unexpected = &u;
    m.start = start;
    m.limit = limit;
    u.message = &m;
    messages_.count(m, r);
    return proceed_receive(c, m);
  }
  const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(limit, r.payload.size()));
  if (n > 0) receive.iov.scatter(static_cast<std::size_t>(start), r.payload.data(), n);
  reports_.remember(c, u);
  fetch_rest(c.now, u);
  return answer_ok(r, ResponseList::kExpected, static_cast<std::uint32_t>(limit));
}

/// Everything that comes with the message is in the receive.
pds::Answer Receiver::end_eager_part(Context& c, RxMessage& m) {
  Unexpected& u = *m.unexpected;
  u.has_header_data = m.hd;
  u.header_data = m.header_data;
  u.message = nullptr;
  shares_.release(m);
  if (u.is_deferred) return end_restarted(c, u);
  reports_.remember(c, u);
  const auto limit = static_cast<std::uint32_t>(u.rest.limit);
  fetch_rest(c.now, u);
  return answer_ok(c.request, ResponseList::kExpected, limit);
}

/// One that waited goes into a receive: what came with it is there, or still on its way. [SES 9 step 3]
void Receiver::adopt_rendezvous(Instant now, Unexpected& u, Receive& r, std::uint64_t start,
                                std::uint64_t limit, std::size_t copied) {
  senders_.hold(*u.sender);
  unlink_unexpected(u);  // its room may let others in, which must not find it
  u.claimed = false;
  bind_rendezvous(u, r, start, limit);
  RxMessage* m = u.message;
  if (m == nullptr) return fetch_rest(now, u);
  m->target = RxTarget::kReceive;
  m->receive = &r;
  m->start = start;
  m->limit = limit;
  m->placed = copied;
}

/// From now on it is none of the unexpected ones.
void Receiver::bind_rendezvous(Unexpected& u, Receive& r, std::uint64_t start,
                               std::uint64_t limit) {
  u.receive = &r;
  u.rest.start = start;
  u.rest.limit = limit;
  fetches_.join(u);
}

/// READs begin when there is a place for one. What does not fit into the receive is not read. [SES 9 step 5]
void Receiver::fetch_rest(Instant now, Unexpected& u) {
  if (u.rest.limit <= u.rest.eager && !u.is_deferred)
    return end_rendezvous(now, u, ReturnCode::kOk);
  clock_.advance(now);
  fetches_.ask(now, u);
}

/// All of the message is here, or the rest will not come.
void Receiver::end_rendezvous(Instant now, Unexpected& u, ReturnCode code) {
  if (u.receive == nullptr) return leave_fetching(now, u, code);  // thrown away
  Receive& receive = *u.receive;
  const bool is_whole = code == ReturnCode::kOk;
  Completion completion;
  completion.code = is_whole && u.rest.limit < u.length ? ReturnCode::kTruncated : code;
  completion.length = static_cast<std::size_t>(is_whole ? u.rest.limit : u.rest.first());
  completion.overflow_length = static_cast<std::size_t>(u.length - completion.length);
  completion.tag = u.header.tag;
  completion.data = u.header_data;
  completion.has_data = u.has_header_data;
  completion.source = {u.header.source, u.header.job_id, u.header.initiator_id};
  if (receive.multi_recv)
    completion.buffer =
        static_cast<std::uint8_t*>(receive.iov.base()) + (u.rest.start - u.buffer_offset);
  complete_receive(now, *u.endpoint, receive, completion);
  // [SES 14.1] Only now is the data in the user's buffer and the completion written.
  leave_fetching(now, u, code);
}

/// The receive is no concern of it any more. What its initiator is told, if it asks, is a code of the wire that it does not try
/// again for.
void Receiver::leave_fetching(Instant now, Unexpected& u, ReturnCode told) {
  u.receive = nullptr;
  fetches_.leave(u);
  senders_.unhold(*u.sender);
  if (told != ReturnCode::kOk && told != ReturnCode::kCancelled) told = ReturnCode::kUncor;
  reports_.report(now, u, told);
}

void Receiver::on_fetched(Instant now, Fetch& fetch, ReturnCode code) {
  const Fetches::End end = fetches_.on_fetched(now, fetch, code);
  if (!end.is_over) return;
  if (end.message != nullptr) end_rendezvous(now, *end.message, end.code);
  fetches_.serve(now);
}

/// A source that sends nothing of what it offered has its receives back: those of READs under way, and then those that wait
/// behind them. The end of one may end others, so each is looked for anew.
void Receiver::drop_idle_fetches(Instant now) {
  for (Fetches::Idle idle = fetches_.take_idle(); idle.message != nullptr;
       idle = fetches_.take_idle()) {
    end_rendezvous(now, *idle.message, ReturnCode::kMessageTimeout);
    if (idle.under_way != nullptr) core_.fetcher->give_up(now, *idle.under_way);
  }
  fetches_.serve(now);
  while (Unexpected* u = fetches_.find_idle_waiting())
    end_rendezvous(now, *u, ReturnCode::kMessageTimeout);
}

/// Receives that packets of an eager part still go to are those of the messages.
void Receiver::close_rendezvous(Instant now, Endpoint& endpoint) {
  while (!endpoint.fetching.empty()) {
    Unexpected& u = endpoint.fetching.front();
    Receive* const receive = u.receive;
    if (u.message != nullptr) {
      u.message->unexpected = nullptr;
      u.message = nullptr;
    } else if (receive != nullptr && --receive->in_flight == 0 && !receive->is_posted) {
      orphans_.push_back(*receive);
    }
    leave_fetching(now, u, ReturnCode::kCancelled);
  }
}

}  // namespace uet::ses
