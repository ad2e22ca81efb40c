#include "ses/rx_sends.h"

#include <algorithm>

namespace uet::ses {
namespace {

/// A message that is in a receive from `start` on as far as `limit` bytes of it fit; `c` is its last packet.
inline PlacedMessage placed_by(const RequestContext& c, std::uint64_t start, std::uint64_t limit) {
  const RequestView& r = c.request;
  return PlacedMessage{.length = r.request_length,
                       .placed = limit,
                       .begin = start - r.buffer_offset,
                       .tag = r.mkey_match,
                       .source = c.source(),
                       .data = r.header_data,
                       .has_data = r.hd};
}

inline pds::Answer answer_placed(const RequestView& r, std::uint64_t limit) {
  return limit < r.request_length
             ? answer_ok(r, ResponseList::kExpected, static_cast<std::uint32_t>(limit))
             : answer_default(r);
}

/// The packet's bytes, as far as they fit.
void place(RxMessage& m, const RequestView& r) {
  if (r.message_offset >= m.limit) return;
  const auto n = static_cast<std::size_t>(
      std::min<std::uint64_t>(r.payload.size(), m.limit - r.message_offset));
  if (n > 0) m.receive->iov.scatter(m.start + r.message_offset, r.payload.data(), n);
  m.placed += n;
}

}  // namespace

pds::Answer SendTarget::take_in(RequestContext& c, RiSpace& space, Sender* sender) {
  UnexpectedMessage* header = sender == nullptr ? nullptr : shared_.headers.find(c, *sender);
  if (header != nullptr && header->claimed) return deliver_claimed(c, space, *header);
  if (Receive* receive = shared_.receives.match(c.now, space, c.incoming(), c.need())) {
    if (header != nullptr) shared_.headers.forget(*header);
    return deliver(c, space, *receive);
  }
  pds::Answer answer = capture(c, space, header);
  if (shared_.core.config.flow_control) answer.resource = c.endpoint->id;
  return answer;
}

pds::Answer SendTarget::deliver(RequestContext& c, RiSpace& space, Receive& receive) {
  const RequestView& r = c.request;
  if (r.kind == OpcodeClass::kRendezvous) return deliver_rendezvous(c, space, receive);
  const Place at = place_in(receive, r.buffer_offset, r.request_length);
  const std::uint64_t start = at.start, limit = at.limit;
  if (shared_.core.config.reject_long && limit < r.request_length)
    return failures_.reject(c, ReturnCode::kTooLong);
  shared_.core.trace.emit(c.now, base::EventId::kMessageMatched, 0, {},
                          static_cast<std::uint64_t>(r.opcode), r.request_length);
  c.is_taken = true;
  shared_.receives.take(space, receive, at);
  if (r.is_single()) {
    const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(limit, r.payload.size()));
    if (n > 0) receive.iov.scatter(start, r.payload.data(), n);
    Completion completion = completion_in(receive, placed_by(c, start, limit));
    shared_.receives.complete(c.now, *c.endpoint, receive, completion);
    return answer_placed(r, limit);
  }
  RxMessage& m = shared_.shares.begin(c, RxTarget::kReceive);
  m.receive = &receive;
  m.start = start;
  m.limit = limit;
  shared_.messages.count(m, r);
  return proceed_receive(c, m);
}

/// A receive takes it. Refused, and to come again, when there is no descriptor for it.
pds::Answer SendTarget::deliver_rendezvous(RequestContext& c, RiSpace& space, Receive& receive) {
  const RequestView& r = c.request;
  const Place at = place_in(receive, r.buffer_offset, r.request_length);
  const std::uint64_t start = at.start, limit = at.limit;
  if (shared_.core.config.reject_long && limit < r.request_length)
    return failures_.reject(c, ReturnCode::kTooLong);
  UnexpectedMessage* const u = rendezvous_.describe(c);
  if (u == nullptr) return answer_refuse();
  shared_.core.trace.emit(c.now, base::EventId::kMessageMatched, 0, {},
                          static_cast<std::uint64_t>(r.opcode), r.request_length);
  c.is_taken = true;
  shared_.receives.take(space, receive, at);
  rendezvous_.bind(*u, receive, start, limit);
  if (!r.is_single()) {
    RxMessage& m = shared_.shares.begin(c, RxTarget::kReceive);
    m.receive = &receive;
    m.unexpected = u;
    m.start = start;
    m.limit = limit;
    u->message = &m;
    shared_.messages.count(m, r);
    return proceed_receive(c, m);
  }
  const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(limit, r.payload.size()));
  if (n > 0) receive.iov.scatter(static_cast<std::size_t>(start), r.payload.data(), n);
  shared_.reports.remember(c, *u);
  rendezvous_.fetch_rest(c.now, *u);
  return answer_ok(r, ResponseList::kExpected, static_cast<std::uint32_t>(limit));
}

/// The message whose header was claimed has come again.
pds::Answer SendTarget::deliver_claimed(RequestContext& c, RiSpace& space,
                                        UnexpectedMessage& header) {
  const RequestView& r = c.request;
  if (header.is_unwanted) {
    shared_.headers.forget(header);
    c.is_taken = true;
    if (r.is_single()) return answer_unwanted(r);
    RxMessage& m = shared_.shares.begin(c, RxTarget::kDiscard);
    m.seen = r.covered;
    return failures_.answer_discarded(c, m);
  }
  if (header.receive == nullptr) return capture(c, space, &header);
  Receive& receive = *header.receive;
  if (shared_.core.config.reject_long && r.request_length > receive.iov.size())
    return failures_.reject(c, ReturnCode::kTooLong);
  if (r.kind == OpcodeClass::kRendezvous) {
    header.receive = nullptr;
    header.is_unwanted = true;  // for those who look meanwhile
    const pds::Answer answer = deliver_rendezvous(c, space, receive);
    if (c.is_taken) {
      shared_.headers.forget(header);
    } else {
      header.receive = &receive;
      header.is_unwanted = false;
    }
    return answer;
  }
  shared_.headers.forget(header);
  return deliver(c, space, receive);
}

pds::Answer SendTarget::proceed_receive(RequestContext& c, RxMessage& m) {
  const RequestView& r = c.request;
  place(m, r);
  if (!m.is_complete()) return answer_pending(r);
  if (m.end < m.carried_length) return failures_.give_up(c, m);
  if (m.unexpected != nullptr) return end_eager_part(c, m);
  Receive& receive = *m.receive;
  Endpoint& endpoint = *m.endpoint;
  const std::uint64_t limit = m.limit;
  Completion completion = completion_in(receive, placed_by(c, m.start, limit));
  completion.data = m.header_data;
  completion.has_data = m.hd;
  shared_.shares.release(m);
  shared_.receives.complete(c.now, endpoint, receive, completion);
  return answer_placed(r, limit);
}

/// Everything that comes with the message is in the receive.
pds::Answer SendTarget::end_eager_part(RequestContext& c, RxMessage& m) {
  UnexpectedMessage& u = *m.unexpected;
  u.has_header_data = m.hd;
  u.header_data = m.header_data;
  u.message = nullptr;
  shared_.shares.release(m);
  if (u.is_deferred) return deferrals_.end_restarted(c, u);
  shared_.reports.remember(c, u);
  const auto limit = static_cast<std::uint32_t>(u.rest.limit);
  rendezvous_.fetch_rest(c.now, u);
  return answer_ok(c.request, ResponseList::kExpected, limit);
}

pds::Answer SendTarget::begin_restarted(RequestContext& c) {
  const RequestView& r = c.request;
  UnexpectedMessage* const asked = deferrals_.find_restarted(c);
  if (asked == nullptr)
    return failures_.reject(c, r.ie ? ReturnCode::kInitiatorErr : ReturnCode::kOpViolation);
  UnexpectedMessage& u = *asked;
  c.is_taken = true;
  if (r.ie) {
    rendezvous_.end_restart(c.now, u, ReturnCode::kInitiatorErr);
    return failures_.reject(c, ReturnCode::kInitiatorErr);
  }
  u.has_header_data = r.som && r.hd;
  u.header_data = r.header_data;
  if (r.is_single()) {
    const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(u.rest.limit, r.covered));
    if (n > 0) u.receive->iov.scatter(static_cast<std::size_t>(u.rest.start), r.payload.data(), n);
    return deferrals_.end_restarted(c, u);
  }
  RxMessage& m = shared_.shares.begin(c, RxTarget::kDiscard);
  if (u.receive == nullptr) {  // discarded by the user
    shared_.messages.count(m, r);
    (void)deferrals_.end_restarted(c, u);
    return failures_.answer_discarded(c, m);
  }
  shared_.messages.set_target(m, RxTarget::kReceive);
  m.receive = u.receive;
  m.unexpected = &u;
  m.start = u.rest.start;
  m.limit = u.rest.limit;
  u.message = &m;
  shared_.messages.count(m, r);
  return proceed_receive(c, m);
}

/// [SES 7.2] No posted receive matches this message: keep it, if there is room for all of it.
/// `header`: what was kept of an earlier attempt, whose place in the list it takes.
pds::Answer SendTarget::capture(RequestContext& c, RiSpace& space, UnexpectedMessage* header) {
  const RequestView& r = c.request;
  Endpoint& endpoint = *c.endpoint;
  Sender* sender = shared_.senders.find_or_make(endpoint.id, c.packet.source, shared_.clock.ns(),
                                                c.packet.is_proven);
  if (sender == nullptr)  // an ordered message must not be overtaken, so it is not consumed
    return c.is_ordered() ? answer_refuse() : failures_.reject(c, ReturnCode::kNoMatch);
  const bool may_defer = deferrals_.may_defer(c, *sender);
  const bool is_kept = r.carried_length <= shared_.core.config.overflow_max || !may_defer;
  UnexpectedMessage* u =
      is_kept ? shared_.store.admit(endpoint.overflow, *sender, r.carried_length) : nullptr;
  // Nothing but the first packet brings the header data, for which peeks of a message that was put off would wait: one that begins
  // with another packet is refused, and comes again by itself.
  if (u == nullptr)
    return may_defer && r.som ? put_off(c, space, *sender, header)
                              : refuse_for_lack(c, space, *sender, header);
  if (!shared_.store.capture(*u, r.message_offset, r.payload)) {
    shared_.store.drop_payload(*u, endpoint.overflow);
    shared_.store.release(*u, endpoint.overflow);
    shared_.store.recycle(*u);
    return failures_.reject(c, ReturnCode::kUncorTrnsnt);
  }
  shared_.senders.hold(*sender);
  shared_.core.trace.emit(c.now, base::EventId::kMessageUnexpected, 0, {},
                          static_cast<std::uint64_t>(r.opcode), r.request_length);
  shared_.unexpected.enlist(c, space, *u, header);
  note_rest(shared_.core.peers, c, *u);
  if (header != nullptr) shared_.headers.forget(*header);
  c.is_taken = true;
  return keep(c, *u);
}

pds::Answer SendTarget::keep(RequestContext& c, UnexpectedMessage& u) {
  const RequestView& r = c.request;
  if (!r.is_single()) {
    RxMessage& m = shared_.shares.begin(c, RxTarget::kCapture);
    m.unexpected = &u;
    shared_.messages.count(m, r);
    u.message = &m;
    if (m.is_complete()) return failures_.give_up(c, m);  // at once
    return answer_pending(r);
  }
  shared_.reports.remember(c, u);
  return answer_ok(r, ResponseList::kOverflow, r.carried_length);
}

pds::Answer SendTarget::proceed_capture(RequestContext& c, RxMessage& m) {
  const RequestView& r = c.request;
  UnexpectedMessage& u = *m.unexpected;
  if (!shared_.store.capture(u, r.message_offset, r.payload))
    return failures_.fail(c, m, ReturnCode::kUncorTrnsnt);
  c.take_header_data(u);
  if (!m.is_complete()) return answer_pending(r);
  if (m.end < m.carried_length) return failures_.give_up(c, m);
  u.message = nullptr;
  shared_.shares.release(m);
  shared_.reports.remember(c, u);
  return answer_ok(r, ResponseList::kOverflow, r.carried_length);
}

/// Its initiator sends it again when it is asked to.
pds::Answer SendTarget::put_off(RequestContext& c, RiSpace& space, Sender& sender,
                                UnexpectedMessage* header) {
  if (!deferrals_.defer(c, space, sender, header)) return refuse_for_lack(c, space, sender, header);
  return answer_ok(c.request, ResponseList::kOverflow, 0);
}

/// [SES 2.5 rules 3 to 6] A refused ordered message closes the gate of its source, so that later messages of that source cannot
/// overtake it. Other sources go on: order is promised within one source only.
pds::Answer SendTarget::refuse_for_lack(RequestContext& c, RiSpace& space, Sender& sender,
                                        UnexpectedMessage* header) {
  shared_.clock.advance(c.now);
  if (header == nullptr) header = shared_.headers.note(c, space, sender);
  if (header != nullptr) {
    c.take_header_data(*header);
    shared_.headers.touch(*header);
  }
  return failures_.reject(
      c, c.is_ordered() ? shared_.gates.close(c, space, sender) : ReturnCode::kNoMatch);
}

pds::Answer SendTarget::refuse_closed(RequestContext& c, Sender& sender) {
  shared_.clock.advance(c.now);
  if (UnexpectedMessage* header = shared_.headers.find(c, sender)) {
    // A later message may look the same but for its data.
    if (!header->som_seen) c.take_header_data(*header);
    shared_.headers.touch(*header);
  }
  return failures_.reject(c, shared_.gates.code_of_closed());
}

void SendTarget::take_late_header(const RequestContext& c, const RxMessage& m) {
  if (m.endpoint == nullptr || m.code != ReturnCode::kNoMatch) return;
  Sender* const sender = shared_.senders.find(m.endpoint->id, c.packet.source);
  UnexpectedMessage* const header = sender == nullptr ? nullptr : shared_.headers.find(c, *sender);
  if (header != nullptr && !header->som_seen) c.take_header_data(*header);
}

bool SendTarget::reopens(RequestContext& c, RiSpace& space, Sender& sender) {
  const RequestView& r = c.request;
  const bool may_reopen =
      r.kind == OpcodeClass::kRendezvous && shared_.gates.was_closed_for(c, sender) &&
      shared_.store.has_room_for(c.endpoint->overflow, sender, r.carried_length);
  if (may_reopen) shared_.gates.open(space, sender.gates[is_tagged(r.opcode) ? 1 : 0]);
  return may_reopen;
}

}  // namespace uet::ses
