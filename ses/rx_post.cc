#include "ses/rx_post.h"

#include <algorithm>

namespace uet::ses {

PostResult<Posted> ReceivePosting::receive(Instant now, Endpoint& endpoint,
                                           const ReceiveRequest& request) {
  if (endpoint.context != nullptr) return PostError::kBadArgument;
  auto source = shared_.receives.source_filter(request.source);
  if (!source) return source.error();
  PostError error{};
  Receive* r = shared_.receives.make(endpoint, request, *source, error);
  if (r == nullptr) return error;
  post(now, *r);
  return Posted{};
}

/// [SES 7.1] What waits is older than what will come. No order is promised among the endpoints of a shared context; the one whose
/// message was taken is looked at last the next time, so none starves.
void ReceivePosting::post(Instant now, Receive& r) {
  Endpoint& owner = *r.endpoint;
  RiSpace& space = owner.space(r.tagged);
  if (take_unexpected(now, space, r)) return;
  const std::size_t first = owner.next_member;
  const std::size_t count = owner.members.size();
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t at = (first + i) % count;
    if (!take_unexpected(now, owner.members[at]->space(r.tagged), r)) continue;
    owner.next_member = at + 1;
    return;
  }
  space.own.post(r);
  shared_.gates.open_all(space);
  for (Endpoint* member : owner.members) shared_.gates.open_all(member->space(r.tagged));
}

/// Gives waiting messages to a receive that is about to be posted. True when it needs no posting
/// any more.
bool ReceivePosting::take_unexpected(Instant now, RiSpace& space, Receive& r) {
  while (UnexpectedMessage* u = space.unexpected.find(r.filter)) {
    if (!r.multi_recv) {
      adopt(now, *u, r);
      return true;
    }
    const std::uint64_t need = bytes_reached(u->buffer_offset, u->length);
    const bool fits = need <= r.room() || need > r.iov.size();
    // The last message that goes in says that the buffer is used up, so look ahead: `is_posted`
    // stands for "may take more".
    if (!fits) {
      if (r.in_flight == 0) shared_.receives.end(now, r);  // else the last message in it says so
      return true;
    }
    const std::size_t rest = r.iov.size() - place_in(r, u->buffer_offset, u->length).next;
    const bool is_last = rest < r.endpoint->config.min_multi_recv;
    r.is_posted = !is_last;
    adopt(now, *u, r);
    if (is_last) return true;
    r.is_posted = false;
  }
  return false;
}

void ReceivePosting::adopt(Instant now, UnexpectedMessage& u, Receive& r) {
  const Place at = place_in(r, u.buffer_offset, u.length);
  const std::uint64_t start = at.start, limit = at.limit;
  ++r.in_flight;
  if (r.multi_recv) r.cursor = at.next;
  const std::size_t copied =
      shared_.store.move_to(u, u.endpoint->overflow, r.iov, static_cast<std::size_t>(start),
                            static_cast<std::size_t>(limit));
  shared_.core.trace.emit(now, base::EventId::kMessageMatched, 0, {}, u.tagged ? 1 : 0, u.length);
  if (u.is_rendezvous) return rendezvous_.adopt(now, u, r, start, limit, copied);
  if (RxMessage* m = u.message) {
    m->target = RxTarget::kReceive;
    m->receive = &r;
    m->unexpected = nullptr;
    m->start = start;
    m->limit = limit;
    m->placed = copied;
    shared_.unexpected.release(u);
    return;
  }
  const std::uint64_t placed = u.failure == ReturnCode::kOk ? limit : 0;
  Completion completion = completion_in(r, placed_of(u, start, placed), u.failure);
  // The sink may post a receive, which must not find this message.
  Endpoint& endpoint = *u.endpoint;
  shared_.unexpected.unlink(u);
  shared_.receives.complete(now, endpoint, r, completion);
  // [SES 14.1] Delivery complete: only now is the data in the user's buffer and the completion
  // written.
  shared_.reports.report(now, u, ReturnCode::kOk);
}

PostResult<Posted> ReceivePosting::peek(Instant now, Endpoint& endpoint,
                                        const PeekRequest& request) {
  auto source = shared_.receives.source_filter(request.source);
  if (!source) return source.error();
  const Filter filter{request.tagged ? request.tag : 0, request.tagged ? request.ignore : 0,
                      *source, job_filter(request.job_id, *source)};
  RiSpace& space = endpoint.space(request.tagged);
  UnexpectedMessage* u = space.unexpected.find_for_peek(filter, ++peeks_);
  Completion completion = u == nullptr ? Completion() : completion_of(*u);
  completion.kind = request.tagged ? OpKind::kTaggedPeek : OpKind::kPeek;
  completion.context = request.context;
  completion.user_flags = request.user_flags;
  completion.code = u == nullptr ? ReturnCode::kNoMessage : ReturnCode::kOk;
  if (u != nullptr) {
    completion.length = u->length;
    completion.data = u->has_header_data ? u->header_data : 0;
    completion.has_data = u->has_header_data;
    if (request.action == PeekAction::kClaim) {
      claim(space, *u, request.context);
    } else if (request.action == PeekAction::kDiscard) {
      discard(now, *u);
    }
  }
  endpoint.complete(completion);
  return Posted{};
}

void ReceivePosting::claim(RiSpace& space, UnexpectedMessage& u, std::uint64_t context) {
  space.unexpected.remove(u);
  u.claimed = true;
  u.claim_context = context;
  u.endpoint->claimed.push_back(u);
}

PostResult<Posted> ReceivePosting::claim_receive(Instant now, Endpoint& endpoint,
                                                 const ReceiveRequest& request, bool discard_it) {
  const auto it = std::find_if(
      endpoint.claimed.begin(), endpoint.claimed.end(), [&](const UnexpectedMessage& u) {
        return u.claim_context == request.context && u.tagged == request.tagged &&
               u.receive == nullptr && !u.is_unwanted;
      });
  if (it == endpoint.claimed.end()) return PostError::kNotFound;
  UnexpectedMessage& u = *it;
  if (!discard_it) {
    if (request.multi_recv) return PostError::kBadArgument;
    PostError error{};
    Receive* r = shared_.receives.make(endpoint, request, nullptr, error);
    if (r == nullptr) return error;
    if (u.is_header_only) {
      u.receive = r;
      shared_.gates.open_all(endpoint.space(u.tagged));
    } else {
      adopt(now, u, *r);
    }
    return Posted{};
  }
  Completion completion = completion_of(u);
  completion.kind = request.tagged ? OpKind::kTaggedReceive : OpKind::kReceive;
  completion.context = request.context;
  completion.user_flags = request.user_flags;
  discard(now, u);
  endpoint.complete(completion);
  return Posted{};
}

/// [SES 7.3] The sender hears OK; packets that still come are discarded.
void ReceivePosting::discard(Instant now, UnexpectedMessage& u) {
  if (u.is_header_only) return discard_header(u);
  if (u.is_deferred) return rendezvous_.fetch_unwanted(now, u);
  shared_.store.drop_payload(u, u.endpoint->overflow);
  if (RxMessage* m = u.message) {
    shared_.messages.set_target(*m, RxTarget::kDiscard);
    m->code = ReturnCode::kOk;
    m->unexpected = nullptr;
  }
  shared_.unexpected.unlink(u);
  shared_.reports.report(now, u, ReturnCode::kOk);
}

/// [SES 7.3] Its message is discarded when it comes again, which it may now.
void ReceivePosting::discard_header(UnexpectedMessage& u) {
  RiSpace& space = u.endpoint->space(u.tagged);
  if (!u.claimed) claim(space, u, u.claim_context);
  u.is_unwanted = true;
  shared_.gates.open_all(space);
}

bool ReceivePosting::cancel(Instant now, Endpoint& endpoint, std::uint64_t context) {
  for (RiSpace& space : endpoint.spaces) {
    Receive* r = space.own.find_context(context);
    if (r == nullptr) continue;
    space.own.remove(*r);
    if (r->in_flight > 0) return true;  // the last message in it says that the buffer is given back
    Completion completion;
    completion.code = ReturnCode::kCancelled;
    completion.tag = r->filter.tag;
    shared_.receives.end(now, *r, completion);
    return true;
  }
  return cancel_claimed(now, endpoint, context);
}

bool ReceivePosting::cancel_claimed(Instant now, Endpoint& endpoint, std::uint64_t context) {
  for (UnexpectedMessage& u : endpoint.claimed) {
    if (u.receive == nullptr || u.receive->context != context) continue;
    Receive& receive = *u.receive;
    u.receive = nullptr;
    endpoint.claimed.erase(endpoint.claimed.iterator_to(u));
    u.claimed = false;
    endpoint.space(u.tagged).unexpected.push_back(u);  // any receive may take it again
    Completion completion;
    completion.code = ReturnCode::kCancelled;
    shared_.receives.end(now, receive, completion);
    return true;
  }
  return false;
}

void ReceivePosting::close(Instant now, Endpoint& endpoint) {
  const auto drop = [&](UnexpectedMessage& u) {
    if (u.is_header_only) {
      if (u.receive != nullptr) shared_.receives.release(*u.receive);
      return shared_.headers.forget(u);
    }
    shared_.store.drop_payload(u, endpoint.overflow);
    shared_.unexpected.unlink(u);
    shared_.reports.report(now, u, ReturnCode::kCancelled);
  };
  for (RiSpace& space : endpoint.spaces) {
    while (Receive* r = space.own.front()) {
      space.own.remove(*r);
      shared_.receives.release(*r);
    }
    while (UnexpectedMessage* u = space.unexpected.front()) drop(*u);
  }
  while (!endpoint.claimed.empty()) drop(endpoint.claimed.front());
}

/// A shared context has its receive back as if it were posted now, or is told that a multi-receive buffer is used up.
void ReceivePosting::end_close(Instant now, const Endpoint& endpoint) {
  while (Receive* r = shared_.receives.next_aside()) {
    if (r->endpoint == &endpoint)
      shared_.receives.release(*r);
    else if (r->cursor == 0)
      post(now, *r);
    else
      shared_.receives.end(now, *r);
  }
}

void ReceivePosting::drop_idle_headers(Instant now) {
  while (UnexpectedMessage* idle = shared_.headers.find_idle()) {
    UnexpectedMessage& u = *idle;
    if (u.claimed && u.receive == nullptr && !u.is_unwanted) {
      shared_.headers.unlist(u);
      shared_.store.count_header(u, u.endpoint->overflow);
      u.failure = ReturnCode::kMessageTimeout;  // claim_receive() will find out
      continue;
    }
    Receive* receive = u.receive;
    Completion completion = completion_of(u);
    completion.code = ReturnCode::kMessageTimeout;
    completion.overflow_length = u.length;
    shared_.headers.forget(u);
    if (receive != nullptr) shared_.receives.end(now, *receive, completion);
  }
}

}  // namespace uet::ses
