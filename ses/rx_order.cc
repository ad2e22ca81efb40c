#include "ses/rx_order.h"

#include "lib/base/planted.h"

namespace uet::ses {

pds::Answer OrderedStreams::begin(RequestContext& c, Sender* sender) {
  shared_.clock.advance(c.now);
  const SequenceField& s = c.request.sequence;
  const bool tagged = is_tagged(c.request.opcode);
  Stream* stream =
      sender == nullptr ? nullptr : shared_.senders.find_stream(*sender, s.stream, tagged);
  if (stream == nullptr) stream = open_stream(c, sender);
  // Without a place for it its initiator sends by ROD, where packet delivery keeps the order.
  if (stream == nullptr) return failures_.reject(c, ReturnCode::kUnsupportedOp);
  stream->active_at_ns = shared_.clock.ns();  // so its sender is not forgotten meanwhile
  return take_turn(c, c.endpoint->space(tagged), *stream);
}

/// Unknown streams begin where everything before has its answer, so one may be forgotten once nothing of it can be on its way.
/// Null when there is no place.
Stream* OrderedStreams::open_stream(const RequestContext& c, Sender* sender) {
  const SequenceField& s = c.request.sequence;
  if (sender == nullptr)
    sender = shared_.senders.find_or_make(c.endpoint->id, c.packet.source, shared_.clock.ns(),
                                          c.packet.is_proven);
  if (sender == nullptr) return nullptr;
  shared_.senders.hold(*sender);
  Stream* stream = shared_.senders.open_stream(*sender, s.stream, is_tagged(c.request.opcode),
                                               s.base(), shared_.clock.ns());
  shared_.senders.unhold(*sender);
  return stream;
}

pds::Answer OrderedStreams::take_turn(RequestContext& c, RiSpace& space, Stream& stream) {
  const RequestView& r = c.request;
  const bool fills_gap = r.kind == OpcodeClass::kFillGap;
  const std::uint32_t number = r.sequence.number;
  if (number_distance(r.sequence.base(), stream.expected) > 0) {
    // In its name, a stream would be made to leave out what its source has still to send. The source comes again, and will have proved
    // itself: it is answered.
    if (!c.packet.is_proven) return failures_.reject(c, ReturnCode::kNoMatch);
    pass_to(c.now, stream, r.sequence.base());
  }
  const std::int32_t ahead = number_distance(number, stream.expected);
  if (base::planted(base::PlantedBug::kNumbersIgnored)) {
    stream.expected = ahead < 0 ? stream.expected : number_after(number);
    return fills_gap ? answer_default(r) : sends_.take_in(c, space, stream.sender);
  }
  if (ahead < 0 && fills_gap) return answer_default(r);
  // Of a number that is over, or further away than any initiator goes.
  if (ahead < 0 || ahead >= kSequenceWindow) return failures_.reject(c, ReturnCode::kOpViolation);
  if (ahead > 0) return hold(c, stream);
  const pds::Answer answer =
      fills_gap ? answer_default(r) : sends_.take_in(c, space, stream.sender);
  if (!fills_gap && !c.is_taken) return answer;  // it comes again, or word that it does not
  stream.expected = number_after(number);
  deliver_in_turn(c.now, stream);
  return answer;
}

/// Kept as an unexpected message is, and answered as one, where receives do not see it.
pds::Answer OrderedStreams::hold(RequestContext& c, Stream& stream) {
  const RequestView& r = c.request;
  const bool fills_gap = r.kind == OpcodeClass::kFillGap;
  HeldMessages::insert_commit_data place;
  if (!stream.held.insert_check(r.sequence.number, BeforeByNumber(), place).second)
    return fills_gap ? answer_default(r) : failures_.reject(c, ReturnCode::kOpViolation);
  UnexpectedMessage* u = shared_.store.admit_held(c.endpoint->overflow, c.endpoint->held,
                                                  *stream.sender, r.carried_length);
  if (u == nullptr) return failures_.reject(c, ReturnCode::kNoMatch);  // it comes again
  shared_.senders.hold(*stream.sender);
  c.describe(*u);
  note_rest(shared_.core.peers, c, *u);
  u->number = r.sequence.number;
  u->is_gap = fills_gap;
  if (stream.held.empty()) holding_.push_back(stream);
  stream.held.insert_commit(*u, place);
  ++held_;
  if (fills_gap) return answer_default(r);
  shared_.core.trace.emit(c.now, base::EventId::kMessageHeld, 0, {}, u->number, stream.expected);
  if (!shared_.store.capture(*u, r.message_offset, r.payload)) {
    stream.held.erase(stream.held.iterator_to(*u));
    if (stream.held.empty()) holding_.erase(holding_.iterator_to(stream));
    drop_held(*u);
    shared_.store.recycle(*u);
    return failures_.reject(c, ReturnCode::kUncorTrnsnt);
  }
  pds::Answer answer = sends_.keep(c, *u);
  if (shared_.core.config.flow_control) answer.resource = c.endpoint->id;
  return answer;
}

/// Everything before `number` has come, or will not.
void OrderedStreams::pass_to(Instant now, Stream& stream, std::uint32_t number) {
  while (!stream.held.empty() && number_distance(number, stream.held.begin()->number) > 0)
    deliver_first(now, stream);
  stream.expected = number;
  deliver_in_turn(now, stream);
}

/// Held messages whose number is the expected one.
void OrderedStreams::deliver_in_turn(Instant now, Stream& stream) {
  while (!stream.held.empty() && stream.held.begin()->number == stream.expected) {
    stream.expected = number_after(stream.expected);
    deliver_first(now, stream);
  }
}

/// The first one held leaves its stream: from now on it is unexpected, or a receive takes it.
void OrderedStreams::deliver_first(Instant now, Stream& stream) {
  UnexpectedMessage& u = *stream.held.begin();
  stream.held.erase(stream.held.begin());
  if (stream.held.empty()) holding_.erase(holding_.iterator_to(stream));
  if (u.is_gap) {
    drop_held(u);
    shared_.store.recycle(u);
    return;
  }
  --held_;
  Endpoint& endpoint = *u.endpoint;
  shared_.store.end_hold(u, endpoint.held, endpoint.overflow);
  RiSpace& space = endpoint.space(u.tagged);
  // Buffers that are given back on the way may bring forth receives, so the message is in no list yet.
  Receive* r = shared_.receives.match(now, space, u.header, u.length);
  space.unexpected.push_back(u);
  if (r != nullptr) give_to_receive(now, space, u, *r);
}

/// A receive that was posted takes a message that was held.
void OrderedStreams::give_to_receive(Instant now, RiSpace& space, UnexpectedMessage& u,
                                     Receive& r) {
  const std::size_t end =
      next_message_at(std::min<std::uint64_t>(std::uint64_t{r.cursor} + u.length, r.iov.size()));
  const std::size_t rest = end < r.iov.size() ? r.iov.size() - end : 0;
  // The last message in a buffer says that it is used up.
  if (!r.multi_recv || rest < r.endpoint->config.min_multi_recv) space.posted->remove(r);
  posting_.adopt(now, u, r);
}

/// In no list any more; recycle() or a report must follow.
void OrderedStreams::drop_held(UnexpectedMessage& u) {
  --held_;
  shared_.store.drop_payload(u, u.endpoint->held);
  shared_.store.release(u, u.endpoint->held);
  shared_.senders.unhold(*u.sender);
}

void OrderedStreams::close(Instant now, const Endpoint& endpoint) {
  for (auto it = holding_.begin(); it != holding_.end();) {
    Stream& stream = *it++;
    if (stream.sender->endpoint != endpoint.id) continue;
    holding_.erase(holding_.iterator_to(stream));
    while (!stream.held.empty()) {
      UnexpectedMessage& u = *stream.held.begin();
      stream.held.erase(stream.held.begin());
      drop_held(u);
      shared_.reports.report(now, u, ReturnCode::kCancelled);
    }
  }
}

void OrderedStreams::pass_idle_gaps(Instant now) {
  for (auto it = holding_.begin(); it != holding_.end();) {
    Stream& stream = *it++;
    if (!shared_.clock.is_past(stream.active_at_ns, shared_.core.config.message_idle)) continue;
    const std::uint32_t number = stream.held.begin()->number;
    shared_.core.trace.emit(now, base::EventId::kOrderGapPassed, 0, {}, number, stream.expected);
    pass_to(now, stream, number);
  }
}

}  // namespace uet::ses
