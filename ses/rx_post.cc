// Receives, and looks at the unexpected messages.
#include <algorithm>

#include "ses/receiver.h"

namespace uet::ses {
namespace {

Unexpected* find_unexpected(UnexpectedList& list, const Filter& filter, bool with_headers) {
  for (Unexpected& u : list)
    if ((with_headers || !u.is_header_only) && filter.accepts(u.header)) return &u;
  return nullptr;
}

}  // namespace

PostResult<Posted> Receiver::receive(Instant now, Endpoint& endpoint,
                                     const ReceiveRequest& request) {
  if (endpoint.context != nullptr) return PostError::kBadArgument;
  auto source = source_filter(request.source);
  if (!source) return source.error();
  PostError error{};
  Receive* r = make_receive(endpoint, request, *source, error);
  if (r == nullptr) return error;
  post(now, *r);
  return Posted{};
}

/// [SES 7.1] What waits is older than what will come. No order is promised among the endpoints of a shared context; the one whose
/// message was taken is looked at last the next time, so none starves.
void Receiver::post(Instant now, Receive& r) {
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
  gates_.open_all(space);
  for (Endpoint* member : owner.members) gates_.open_all(member->space(r.tagged));
}

PostResult<const Peer*> Receiver::source_filter(PeerId source) const {
  if (source == kAnyPeer) return static_cast<const Peer*>(nullptr);
  const Peer* peer = core_.peers.find(source);
  if (peer == nullptr) return PostError::kBadPeer;
  // Without an Initiator ID its messages cannot be told from others.
  if (!peer->address.has_initiator_id) return PostError::kBadArgument;
  return peer;
}

Receive* Receiver::make_receive(Endpoint& endpoint, const ReceiveRequest& request,
                                const Peer* source, PostError& error) {
  error = PostError::kBadArgument;
  if (request.iov.size() > std::min<std::size_t>(core_.config.iov_limit, kMaxIov)) return nullptr;
  if (request.multi_recv && (request.iov.size() != 1 || request.iov[0].iov_len == 0))
    return nullptr;
  error = PostError::kAgain;
  Receive* r = receives_.acquire();
  if (r == nullptr) return nullptr;
  if (!r->iov.assign(request.iov, core_.iov_pool, request.device)) {
    receives_.release(r);
    return nullptr;
  }
  r->endpoint = &endpoint;
  r->tagged = request.tagged;
  r->filter.tag = request.tagged ? request.tag : 0;
  r->filter.ignore = request.tagged ? request.ignore : 0;
  r->filter.source = source;
  r->filter.job_id = request.job_id;
  if (source != nullptr) core_.peers.hold(const_cast<Peer&>(*source));
  r->context = request.context;
  r->user_flags = request.user_flags;
  r->multi_recv = request.multi_recv;
  r->is_posted = false;
  r->cursor = 0;
  r->in_flight = 0;
  ++endpoint.receives;
  return r;
}

/// Gives waiting messages to a receive that is about to be posted. True when it needs no posting
/// any more.
bool Receiver::take_unexpected(Instant now, RiSpace& space, Receive& r) {
  while (Unexpected* u = find_unexpected(space.unexpected, r.filter, false)) {
    if (!r.multi_recv) {
      adopt(now, *u, r);
      return true;
    }
    const std::uint64_t need = u->buffer_offset + u->length;
    const bool fits = need <= r.room() || need > r.iov.size();
    // The last message that goes in says that the buffer is used up, so look ahead: `is_posted`
    // stands for "may take more".
    if (!fits) {
      if (r.in_flight > 0) return true;  // the last message that is still arriving says so
      ++r.in_flight;
      Completion completion;
      complete_receive(now, *r.endpoint, r, completion);
      return true;
    }
    const std::size_t after = next_message_at(
        static_cast<std::size_t>(std::min<std::uint64_t>(r.cursor + need, r.iov.size())));
    const std::size_t rest = after < r.iov.size() ? r.iov.size() - after : 0;
    const bool is_last = rest < r.endpoint->config.min_multi_recv;
    r.is_posted = !is_last;
    adopt(now, *u, r);
    if (is_last) return true;
    r.is_posted = false;
  }
  return false;
}

/// Moves an unexpected message into a receive. When packets are still to come they go straight
/// there. [SES 7.2]
void Receiver::adopt(Instant now, Unexpected& u, Receive& r) {
  const std::uint64_t start = r.cursor + u.buffer_offset;
  const bool inside = start >= u.buffer_offset && start < r.iov.size();
  const std::uint64_t limit = inside ? std::min<std::uint64_t>(u.length, r.iov.size() - start) : 0;
  const std::size_t message_at = r.cursor;
  ++r.in_flight;
  if (r.multi_recv)
    r.cursor = std::min(next_message_at(static_cast<std::size_t>(
                            std::min<std::uint64_t>(start + limit, r.iov.size()))),
                        r.iov.size());
  const std::size_t copied =
      store_.move_to(u, u.endpoint->overflow, r.iov, static_cast<std::size_t>(start),
                     static_cast<std::size_t>(limit));
  core_.trace.emit(now, base::EventId::kMessageMatched, 0, {}, u.tagged ? 1 : 0, u.length);
  if (u.is_rendezvous) return adopt_rendezvous(now, u, r, start, limit, copied);
  if (RxMessage* m = u.message) {
    m->target = RxTarget::kReceive;
    m->receive = &r;
    m->unexpected = nullptr;
    m->start = start;
    m->limit = limit;
    m->placed = copied;
    release_unexpected(u);
    return;
  }
  Completion completion;
  completion.code = limit < u.length ? ReturnCode::kTruncated : ReturnCode::kOk;
  completion.length = static_cast<std::size_t>(limit);
  completion.overflow_length = static_cast<std::size_t>(u.length - limit);
  completion.tag = u.header.tag;
  completion.data = u.header_data;
  completion.has_data = u.has_header_data;
  completion.source = {u.header.source, u.header.job_id, u.header.initiator_id};
  if (u.failure != ReturnCode::kOk) {
    completion.code = u.failure;
    completion.length = 0;
    completion.overflow_length = u.length;
  }
  if (r.multi_recv) completion.buffer = static_cast<std::uint8_t*>(r.iov.base()) + message_at;
  // The sink may post a receive, which must not find this message.
  Endpoint& endpoint = *u.endpoint;
  unlink_unexpected(u);
  complete_receive(now, endpoint, r, completion);
  // [SES 14.1] Delivery complete: only now is the data in the user's buffer and the completion
  // written.
  reports_.report(now, u, ReturnCode::kOk);
}

PostResult<Posted> Receiver::peek(Instant now, Endpoint& endpoint, const PeekRequest& request) {
  auto source = source_filter(request.source);
  if (!source) return source.error();
  const Filter filter{request.tagged ? request.tag : 0, request.tagged ? request.ignore : 0,
                      *source, std::nullopt};
  RiSpace& space = endpoint.space(request.tagged);
  Unexpected* u = find_unexpected(space.unexpected, filter, true);
  Completion completion;
  completion.kind = request.tagged ? OpKind::kTaggedPeek : OpKind::kPeek;
  completion.context = request.context;
  completion.user_flags = request.user_flags;
  completion.code = u == nullptr ? ReturnCode::kNoMessage : ReturnCode::kOk;
  if (u != nullptr) {
    const bool data_known = u->has_header_data && (u->message == nullptr || u->message->som_seen);
    completion.length = u->length;
    completion.tag = u->header.tag;
    completion.data = data_known ? u->header_data : 0;
    completion.has_data = data_known;
    completion.source = {u->header.source, u->header.job_id, u->header.initiator_id};
    if (request.action == PeekAction::kClaim) {
      space.unexpected.erase(space.unexpected.iterator_to(*u));
      u->claimed = true;
      u->claim_context = request.context;
      endpoint.claimed.push_back(*u);
    } else if (request.action == PeekAction::kDiscard) {
      discard(now, *u);
    }
  }
  endpoint.complete(completion);
  return Posted{};
}

PostResult<Posted> Receiver::claim_receive(Instant now, Endpoint& endpoint,
                                           const ReceiveRequest& request, bool discard_it) {
  const auto it =
      std::find_if(endpoint.claimed.begin(), endpoint.claimed.end(), [&](const Unexpected& u) {
        return u.claim_context == request.context && u.tagged == request.tagged &&
               u.receive == nullptr && !u.is_unwanted;
      });
  if (it == endpoint.claimed.end()) return PostError::kNotFound;
  Unexpected& u = *it;
  if (!discard_it) {
    if (request.multi_recv) return PostError::kBadArgument;
    PostError error{};
    Receive* r = make_receive(endpoint, request, nullptr, error);
    if (r == nullptr) return error;
    if (u.is_header_only) {
      u.receive = r;
      gates_.open_all(endpoint.space(u.tagged));
    } else {
      adopt(now, u, *r);
    }
    return Posted{};
  }
  Completion completion;
  completion.kind = request.tagged ? OpKind::kTaggedReceive : OpKind::kReceive;
  completion.context = request.context;
  completion.user_flags = request.user_flags;
  completion.tag = u.header.tag;
  completion.source = {u.header.source, u.header.job_id, u.header.initiator_id};
  discard(now, u);
  endpoint.complete(completion);
  return Posted{};
}

/// [SES 7.3] The sender hears OK; packets that still come are discarded.
void Receiver::discard(Instant now, Unexpected& u) {
  if (u.is_header_only) return throw_away(u);
  if (u.is_deferred) return sink_deferred(now, u);
  store_.drop_payload(u, u.endpoint->overflow);
  if (RxMessage* m = u.message) {
    messages_.set_target(*m, RxTarget::kDiscard);
    m->code = ReturnCode::kOk;
    m->unexpected = nullptr;
  }
  unlink_unexpected(u);
  reports_.report(now, u, ReturnCode::kOk);
}

bool Receiver::cancel(Instant now, Endpoint& endpoint, std::uint64_t context) {
  for (RiSpace& space : endpoint.spaces) {
    Receive* r = space.own.find_context(context);
    if (r == nullptr) continue;
    space.own.remove(*r);
    ++r->in_flight;
    Completion completion;
    completion.code = ReturnCode::kCancelled;
    completion.tag = r->filter.tag;
    complete_receive(now, endpoint, *r, completion);
    return true;
  }
  return cancel_claimed(now, endpoint, context);
}

/// Nothing of the endpoint is completed any more; what still arrives for it is told so.
void Receiver::close_endpoint(Instant now, Endpoint& endpoint) {
  messages_.for_each([&](RxMessage& m) {
    if (m.endpoint != &endpoint) return;
    if (m.target == RxTarget::kReceive && --m.receive->in_flight == 0 && !m.receive->is_posted)
      orphans_.push_back(*m.receive);
    if (m.target == RxTarget::kCapture) m.unexpected->message = nullptr;
    if (m.target == RxTarget::kRead) returns_.fail(now, m.tally);
    if (m.target != RxTarget::kDiscard) {
      messages_.set_target(m, RxTarget::kDiscard);
      m.code = ReturnCode::kCancelled;
      m.code_was_told = false;
    }
    m.receive = nullptr;
    m.unexpected = nullptr;
    m.endpoint = nullptr;
  });
  const auto drop = [&](UnexpectedList& list) {
    while (!list.empty()) {
      Unexpected& u = list.front();
      if (u.is_header_only) {
        if (u.receive != nullptr) release_receive(*u.receive);
        headers_.forget(u);
        continue;
      }
      store_.drop_payload(u, endpoint.overflow);
      unlink_unexpected(u);
      reports_.report(now, u, ReturnCode::kCancelled);
    }
  };
  for (RiSpace& space : endpoint.spaces) {
    while (Receive* r = space.own.front()) {
      space.own.remove(*r);
      release_receive(*r);
    }
    drop(space.unexpected);
  }
  drop(endpoint.claimed);
  close_streams(now, endpoint);
  for (RiSpace& space : endpoint.spaces) gates_.open_all(space);
  // Its own receives go with it. A shared context has its back as if they were posted now, or is told that a multi-receive buffer is
  // used up.
  while (!orphans_.empty()) {
    Receive& r = orphans_.front();
    orphans_.pop_front();
    if (r.endpoint == &endpoint) {
      release_receive(r);
    } else if (r.cursor == 0) {
      post(now, r);
    } else {
      ++r.in_flight;
      Completion completion;
      complete_receive(now, *r.endpoint, r, completion);
    }
  }
}

void Receiver::on_memory_enabled(EndpointId endpoint) {
  if (Endpoint* e = core_.endpoints.find(endpoint))
    for (RiSpace& space : e->spaces) gates_.open_all(space);
}

}  // namespace uet::ses
