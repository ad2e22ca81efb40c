// Messages for which there is no room: their senders are refused and come again, each for itself. [SES 2.5, decisions 106, 107]
#include <algorithm>

#include "ses/receiver.h"

namespace uet::ses {
/// [SES 2.5 rules 3 to 6] A refused ordered message closes the gate of its source, so that later messages of that source cannot
/// overtake it. Other sources go on: order is promised within one source only.
pds::Answer Receiver::refuse_for_lack(Context& c, RiSpace& space, Sender& sender,
                                      Unexpected* header) {
  clock_.advance(c.now);
  if (header == nullptr) header = headers_.note(c, space, sender);
  if (header != nullptr) headers_.touch(c, *header);
  return reject(c, c.is_ordered() ? gates_.close(c, space, sender) : ReturnCode::kNoMatch);
}

pds::Answer Receiver::refuse_closed(Context& c, Sender& sender) {
  clock_.advance(c.now);
  if (Unexpected* header = headers_.find(c, sender)) headers_.touch(c, *header);
  return reject(c, gates_.code_of_closed());
}

/// The message that closed the gate has come again as a rendezvous, for which there is room. Its initiator sends it only when
/// everything behind it was refused; what else is on its way has an older generation from now on.
bool Receiver::reopens(Context& c, RiSpace& space, Sender& sender) {
  const RequestView& r = c.request;
  const bool may_reopen = r.kind == OpcodeClass::kRendezvous && gates_.was_closed_for(c, sender) &&
                          store_.has_room_for(c.endpoint->overflow, sender, r.carried_length);
  if (may_reopen) gates_.open(space, sender.gates[is_tagged(r.opcode) ? 1 : 0]);
  return may_reopen;
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
  gates_.open_all(endpoint.space(u.tagged));
}

/// The message whose header was claimed has come again.
pds::Answer Receiver::deliver_claimed(Context& c, RiSpace& space, Unexpected& header) {
  const RequestView& r = c.request;
  if (header.is_unwanted) {
    headers_.forget(header);
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
      headers_.forget(header);
    } else {
      header.receive = &receive;
      header.is_unwanted = false;
    }
    return answer;
  }
  headers_.forget(header);
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
  while (Unexpected* idle = headers_.find_idle()) {
    Unexpected& u = *idle;
    if (u.claimed && u.receive == nullptr && !u.is_unwanted) {
      headers_.unlist(u);
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
    headers_.forget(u);
    if (receive == nullptr) continue;
    ++receive->in_flight;
    complete_receive(now, endpoint, *receive, completion);
  }
}

}  // namespace uet::ses
