// Ordered sends that came over all paths: each waits for its turn before it is matched. [decision 141]
#include <algorithm>

#include "lib/base/planted.h"
#include "ses/receiver.h"

namespace uet::ses {

/// A message that its initiator numbered, or word that one does not come. `sender`: if it is known.
pds::Answer Receiver::begin_sequenced(Context& c, Sender* sender) {
  clock_.advance(c.now);
  const SequenceField& s = c.request.sequence;
  const bool tagged = is_tagged(c.request.opcode);
  Stream* stream = sender == nullptr ? nullptr : senders_.find_stream(*sender, s.stream, tagged);
  if (stream == nullptr) stream = open_stream(c, sender);
  // Without a place for it its initiator sends by ROD, where packet delivery keeps the order.
  if (stream == nullptr) return reject(c, ReturnCode::kUnsupportedOp);
  stream->active_at_ns = clock_.ns();  // so its sender is not forgotten meanwhile
  return take_turn(c, c.endpoint->space(tagged), *stream);
}

/// Unknown streams begin where everything before has its answer, so one may be forgotten once nothing of it can be on its way.
/// Null when there is no place.
Stream* Receiver::open_stream(const Context& c, Sender* sender) {
  const SequenceField& s = c.request.sequence;
  if (sender == nullptr)
    sender = senders_.find_or_make(c.endpoint->id, c.packet.source, clock_.ns());
  if (sender == nullptr) return nullptr;
  senders_.hold(*sender);
  Stream* stream =
      senders_.open_stream(*sender, s.stream, is_tagged(c.request.opcode), s.base(), clock_.ns());
  senders_.unhold(*sender);
  return stream;
}

pds::Answer Receiver::take_turn(Context& c, RiSpace& space, Stream& stream) {
  const RequestView& r = c.request;
  const bool fills_gap = r.kind == OpcodeClass::kFillGap;
  const std::uint32_t number = r.sequence.number;
  if (number_distance(r.sequence.base(), stream.expected) > 0)
    pass_to(c.now, stream, r.sequence.base());
  const std::int32_t ahead = number_distance(number, stream.expected);
  if (base::planted(base::PlantedBug::kNumbersIgnored)) {
    stream.expected = ahead < 0 ? stream.expected : number_after(number);
    return fills_gap ? answer_default(r) : take_in(c, space, stream.sender);
  }
  if (ahead < 0 && fills_gap) return answer_default(r);
  // Of a number that is over, or further away than any initiator goes.
  if (ahead < 0 || ahead >= kSequenceWindow) return reject(c, ReturnCode::kOpViolation);
  if (ahead > 0) return hold(c, stream);
  const pds::Answer answer = fills_gap ? answer_default(r) : take_in(c, space, stream.sender);
  if (!fills_gap && !c.is_taken) return answer;  // it comes again, or word that it does not
  stream.expected = number_after(number);
  surface_all(c.now, stream);
  return answer;
}

/// Kept as an unexpected message is, and answered as one, where receives do not see it.
pds::Answer Receiver::hold(Context& c, Stream& stream) {
  const RequestView& r = c.request;
  const bool fills_gap = r.kind == OpcodeClass::kFillGap;
  auto at = stream.held.end();
  while (at != stream.held.begin() && number_distance(std::prev(at)->number, r.sequence.number) > 0)
    --at;
  if (at != stream.held.begin() && std::prev(at)->number == r.sequence.number)
    return fills_gap ? answer_default(r) : reject(c, ReturnCode::kOpViolation);
  Unexpected* u =
      store_.admit_held(c.endpoint->overflow, c.endpoint->held, *stream.sender, r.carried_length);
  if (u == nullptr) return reject(c, ReturnCode::kNoMatch);  // it comes again
  senders_.hold(*stream.sender);
  c.describe(*u);
  note_rest(c, *u);
  u->number = r.sequence.number;
  u->is_gap = fills_gap;
  if (stream.held.empty()) holding_.push_back(stream);
  stream.held.insert(at, *u);
  ++held_;
  if (fills_gap) return answer_default(r);
  core_.trace.emit(c.now, base::EventId::kMessageHeld, 0, {}, u->number, stream.expected);
  if (!store_.capture(*u, r.message_offset, r.payload)) {
    stream.held.erase(stream.held.iterator_to(*u));
    if (stream.held.empty()) holding_.erase(holding_.iterator_to(stream));
    drop_held(*u);
    store_.recycle(*u);
    return reject(c, ReturnCode::kUncorTrnsnt);
  }
  pds::Answer answer = keep(c, *u);
  if (core_.config.flow_control) answer.resource = c.endpoint->id;
  return answer;
}

/// Everything before `number` has come, or will not.
void Receiver::pass_to(Instant now, Stream& stream, std::uint32_t number) {
  while (!stream.held.empty() && number_distance(number, stream.held.front().number) > 0)
    surface(now, stream);
  stream.expected = number;
  surface_all(now, stream);
}

/// Held messages whose number is the expected one.
void Receiver::surface_all(Instant now, Stream& stream) {
  while (!stream.held.empty() && stream.held.front().number == stream.expected) {
    stream.expected = number_after(stream.expected);
    surface(now, stream);
  }
}

/// The first held message leaves its stream: from now on it is unexpected, or a receive takes it.
void Receiver::surface(Instant now, Stream& stream) {
  Unexpected& u = stream.held.front();
  stream.held.pop_front();
  if (stream.held.empty()) holding_.erase(holding_.iterator_to(stream));
  if (u.is_gap) {
    drop_held(u);
    store_.recycle(u);
    return;
  }
  --held_;
  Endpoint& endpoint = *u.endpoint;
  store_.surface(u, endpoint.held, endpoint.overflow);
  RiSpace& space = endpoint.space(u.tagged);
  // Buffers that are given back on the way may bring forth receives, so the message is in no list yet.
  Receive* r = match(now, space, u.header, u.length);
  space.unexpected.push_back(u);
  if (r != nullptr) give_to_receive(now, space, u, *r);
}

/// A receive that was posted takes a message that was held.
void Receiver::give_to_receive(Instant now, RiSpace& space, Unexpected& u, Receive& r) {
  const std::size_t end =
      next_message_at(std::min<std::uint64_t>(std::uint64_t{r.cursor} + u.length, r.iov.size()));
  const std::size_t rest = end < r.iov.size() ? r.iov.size() - end : 0;
  // The last message in a buffer says that it is used up.
  if (!r.multi_recv || rest < r.endpoint->config.min_multi_recv) space.posted->remove(r);
  adopt(now, u, r);
}

/// In no list any more; recycle() or a report must follow.
void Receiver::drop_held(Unexpected& u) {
  --held_;
  store_.drop_payload(u, u.endpoint->held);
  store_.release(u, u.endpoint->held);
  senders_.unhold(*u.sender);
}

void Receiver::close_streams(Instant now, const Endpoint& endpoint) {
  for (auto it = holding_.begin(); it != holding_.end();) {
    Stream& stream = *it++;
    if (stream.sender->endpoint != endpoint.id) continue;
    holding_.erase(holding_.iterator_to(stream));
    while (!stream.held.empty()) {
      Unexpected& u = stream.held.front();
      stream.held.pop_front();
      drop_held(u);
      reports_.report(now, u, ReturnCode::kCancelled);
    }
  }
}

/// The initiator has gone, or has forgotten what it owed: what came is not kept from the receives for ever.
void Receiver::pass_idle_gaps(Instant now) {
  for (auto it = holding_.begin(); it != holding_.end();) {
    Stream& stream = *it++;
    if (!clock_.is_past(stream.active_at_ns, core_.config.message_idle)) continue;
    const std::uint32_t number = stream.held.front().number;
    core_.trace.emit(now, base::EventId::kOrderGapPassed, 0, {}, number, stream.expected);
    pass_to(now, stream, number);
  }
}

}  // namespace uet::ses
