// Messages for which there is no room: their senders are refused and come again, each for itself. [SES 2.5, decisions 106, 107]
#include <algorithm>

#include "ses/receiver.h"

namespace uet::ses {
namespace {

/// Headers that are kept of one sender.
constexpr std::size_t kHeadersPerSender = 16;

}  // namespace

/// [SES 2.5 rules 3 to 6] A refused ordered message closes the gate of its source, so that later messages of that source cannot
/// overtake it. Other sources go on: order is promised within one source only.
pds::Answer Receiver::refuse_for_lack(Context& c, RiSpace& space, Sender& sender,
                                      Unexpected* header) {
  clock_.advance(c.now);
  if (header == nullptr) header = note_header(c, space, sender);
  if (header != nullptr) touch_header(c, *header);
  if (!c.is_ordered()) return reject(c, ReturnCode::kNoMatch);
  return close_gate(c, space, sender);
}

pds::Answer Receiver::close_gate(Context& c, RiSpace& space, Sender& sender) {
  Gate& gate = sender.gates[&space == &c.endpoint->space(true) ? 1 : 0];
  gate.is_enabled = false;
  gate.closer = c.incoming();
  gate.closer_length = c.request.request_length;
  space.closed.push_back(gate);
  senders_.hold(sender);
  sender.refused_at_ns = clock_.ns();
  return reject(c, core_.config.use_generations ? ReturnCode::kDisabledGen : ReturnCode::kDisabled);
}

pds::Answer Receiver::refuse_closed(Context& c, Sender& sender) {
  clock_.advance(c.now);
  if (Unexpected* header = find_header(c, sender)) touch_header(c, *header);
  return reject(c, core_.config.use_generations ? ReturnCode::kDisabledGen : ReturnCode::kDisabled);
}

/// Unknown senders are at generation 0. Those of closed endpoints are told `otherwise`.
std::uint8_t Receiver::generation_for(const Endpoint* endpoint, const net::FabricAddress& source,
                                      bool tagged, std::uint8_t otherwise) {
  if (endpoint == nullptr) return otherwise;
  const Sender* sender = senders_.find(endpoint->id, source);
  return sender == nullptr ? 0 : sender->gates[tagged ? 1 : 0].generation;
}

/// There are resources again: each sender that was refused may try.
void Receiver::open_gates(RiSpace& space) {
  while (!space.closed.empty()) {
    Gate& gate = space.closed.front();
    space.closed.pop_front();
    open_gate(gate);
  }
}

void Receiver::open_gate(Gate& gate) {
  gate.is_enabled = true;
  if (core_.config.use_generations) ++gate.generation;
  senders_.unhold(*gate.sender);
}

/// The message that closed the gate has come again as a rendezvous, for which there is room. Its initiator sends it only when
/// everything behind it was refused; what else is on its way has an older generation from now on.
bool Receiver::reopens(Context& c, RiSpace& space, Sender& sender) {
  const RequestView& r = c.request;
  if (r.kind != OpcodeClass::kRendezvous) return false;
  Gate& gate = sender.gates[is_tagged(r.opcode) ? 1 : 0];
  const bool is_closer = gate.closer == c.incoming() && gate.closer_length == r.request_length &&
                         store_.has_room_for(c.endpoint->overflow, sender, r.carried_length);
  if (!is_closer) return false;
  space.closed.erase(space.closed.iterator_to(gate));
  open_gate(gate);
  return true;
}

/// An earlier attempt of this message, as far as the wire tells messages of one sender apart.
Unexpected* Receiver::find_header(Context& c, Sender& sender) {
  const RequestView& r = c.request;
  for (Unexpected& u : sender.headers)
    if (u.tagged == is_tagged(r.opcode) && u.length == r.request_length &&
        u.header.tag == c.incoming().tag && u.header.initiator_id == r.initiator &&
        u.header.job_id == r.job_id)
      return &u;
  return nullptr;
}

/// [SES 7.2] Only the header is kept: a peek sees the message, and its place among the others. Null when there are too many.
Unexpected* Receiver::note_header(Context& c, RiSpace& space, Sender& sender) {
  Endpoint& endpoint = *c.endpoint;
  if (endpoint.headers >= core_.config.overflow_headers ||
      sender.headers.size() >= kHeadersPerSender)
    return nullptr;
  Unexpected* u = store_.note_header(sender, c.request.request_length);
  if (u == nullptr) return nullptr;
  enlist(c, space, *u, nullptr);
  u->active_at_ns = clock_.ns();
  sender.headers.push_back(*u);
  headers_.push_back(*u);
  ++endpoint.headers;
  senders_.hold(sender);
  return u;
}

void Receiver::touch_header(Context& c, Unexpected& header) {
  if (c.request.som) {
    header.has_header_data = c.request.hd;
    header.header_data = c.request.header_data;
  }
  header.active_at_ns = clock_.ns();
  headers_.splice(headers_.end(), headers_, headers_.iterator_to(header));
}

void Receiver::unlist_header(Unexpected& u) {
  u.sender->headers.erase(u.sender->headers.iterator_to(u));
  headers_.erase(headers_.iterator_to(u));
  --u.endpoint->headers;
  u.is_header_only = false;
}

void Receiver::forget_header(Unexpected& u) {
  unlist_header(u);
  Endpoint& endpoint = *u.endpoint;
  UnexpectedList& list = u.claimed ? endpoint.claimed : endpoint.space(u.tagged).unexpected;
  list.erase(list.iterator_to(u));
  senders_.unhold(*u.sender);
  store_.recycle(u);
}

/// [SES 7.3] Swallowed when it comes again, which it may now.
void Receiver::throw_away(Unexpected& u) {
  Endpoint& endpoint = *u.endpoint;
  if (!u.claimed) {
    UnexpectedList& list = endpoint.space(u.tagged).unexpected;
    list.erase(list.iterator_to(u));
    endpoint.claimed.push_back(u);
    u.claimed = true;
  }
  u.is_unwanted = true;
  open_gates(endpoint.space(u.tagged));
}

/// The message whose header was claimed has come again.
pds::Answer Receiver::deliver_claimed(Context& c, RiSpace& space, Unexpected& header) {
  const RequestView& r = c.request;
  if (header.is_unwanted) {
    forget_header(header);
    c.is_taken = true;
    if (r.is_single()) return answer_thrown_away(r);
    RxMessage& m = shares_.begin(c, RxTarget::kDiscard);
    m.seen = r.covered;
    return answer_discarded(c, m);
  }
  if (header.receive == nullptr) return capture(c, space, &header);
  Receive& receive = *header.receive;
  if (core_.config.reject_long && r.request_length > receive.iov.size())
    return reject(c, ReturnCode::kTooLong);
  if (r.kind == OpcodeClass::kRendezvous) {
    header.receive = nullptr;
    header.is_unwanted = true;  // for those who look meanwhile
    const pds::Answer answer = deliver_rendezvous(c, space, receive);
    if (c.is_taken) {
      forget_header(header);
    } else {
      header.receive = &receive;
      header.is_unwanted = false;
    }
    return answer;
  }
  forget_header(header);
  return deliver(c, space, receive);
}

bool Receiver::cancel_claimed(Instant now, Endpoint& endpoint, std::uint64_t context) {
  for (Unexpected& u : endpoint.claimed) {
    if (u.receive == nullptr || u.receive->context != context) continue;
    Receive& receive = *u.receive;
    u.receive = nullptr;
    endpoint.claimed.erase(endpoint.claimed.iterator_to(u));
    u.claimed = false;
    endpoint.space(u.tagged).unexpected.push_back(u);  // any receive may take it again
    ++receive.in_flight;
    Completion completion;
    completion.code = ReturnCode::kCancelled;
    complete_receive(now, endpoint, receive, completion);
    return true;
  }
  return false;
}

/// Their senders have given up, or are gone.
void Receiver::drop_idle_headers(Instant now) {
  while (!headers_.empty()) {
    Unexpected& u = headers_.front();
    if (!clock_.is_past(u.active_at_ns, core_.config.message_idle)) return;
    if (u.claimed && u.receive == nullptr && !u.is_unwanted) {
      unlist_header(u);
      store_.count_header(u, u.endpoint->overflow);
      u.failure = ReturnCode::kMessageTimeout;  // claim_receive() will find out
      continue;
    }
    Receive* receive = u.receive;
    Endpoint& endpoint = *u.endpoint;
    Completion completion;
    completion.code = ReturnCode::kMessageTimeout;
    completion.overflow_length = u.length;
    completion.tag = u.header.tag;
    completion.source = {u.header.source, u.header.job_id, u.header.initiator_id};
    forget_header(u);
    if (receive == nullptr) continue;
    ++receive->in_flight;
    complete_receive(now, endpoint, *receive, completion);
  }
}

}  // namespace uet::ses
