#include "ses/rx_receives.h"

#include <algorithm>

namespace uet::ses {

PostResult<const Peer*> Receives::known_source(PeerId source) const {
  const Peer* peer = core_.peers.find(source);
  if (peer == nullptr) return PostError::kBadPeer;
  // Without an Initiator ID its messages cannot be told from others.
  if (!peer->address.has_initiator_id) return PostError::kBadArgument;
  return peer;
}

Receive* Receives::make(Endpoint& endpoint, const ReceiveRequest& request, const Peer* source,
                        PostError& error) {
  error = PostError::kBadArgument;
  if (request.iov.size() > std::min<std::size_t>(core_.config.iov_limit, kMaxIov)) return nullptr;
  if (request.multi_recv && (request.iov.size() != 1 || request.iov[0].iov_len == 0))
    return nullptr;
  error = PostError::kAgain;
  Receive* r = pool_.acquire();
  if (r == nullptr) return nullptr;
  if (!r->iov.assign(request.iov, core_.iov_pool, request.device)) {
    pool_.release(r);
    return nullptr;
  }
  r->endpoint = &endpoint;
  r->tagged = request.tagged;
  r->filter.tag = request.tagged ? request.tag : 0;
  r->filter.ignore = request.tagged ? request.ignore : 0;
  r->filter.source = source;
  r->filter.job_id = job_filter(request.job_id, source);
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

/// `r` is the first that accepts the message, and a multi-receive buffer.
Receive* Receives::match_buffer(Instant now, RiSpace& space, const Incoming& incoming,
                                std::uint64_t need, Receive* r) {
  while (r != nullptr && r->multi_recv && need > r->room() && need <= r->iov.size()) {
    retire(now, space, *r);
    r = space.posted->find(incoming);
  }
  return r;
}

/// No further message goes into the buffer.
void Receives::retire(Instant now, RiSpace& space, Receive& r) {
  space.posted->remove(r);
  if (r.in_flight == 0) end(now, r);  // else the last message in it says so
}

/// The next message goes behind this one, if the rest is not too small for any.
void Receives::advance(RiSpace& space, Receive& r, const Place& place) {
  r.cursor = place.next;
  if (r.room() < r.endpoint->config.min_multi_recv) space.posted->remove(r);
}

void Receives::complete(Instant now, Endpoint& endpoint, Receive& r, Completion& completion) {
  completion.kind = r.tagged ? OpKind::kTaggedReceive : OpKind::kReceive;
  completion.context = r.context;
  completion.user_flags = r.user_flags;
  if (!r.tagged) completion.tag = 0;
  --r.in_flight;
  const bool is_done = !r.is_posted && r.in_flight == 0;
  completion.multi_recv_released = r.multi_recv && is_done;
  if (is_done) release(r);
  core_.trace.emit(now, base::EventId::kMessageDelivered, 0, {},
                   static_cast<std::uint64_t>(completion.code), completion.length);
  endpoint.complete(completion);
}

void Receives::end(Instant now, Receive& r, Completion completion) {
  ++r.in_flight;
  complete(now, *r.endpoint, r, completion);
}

void Receives::release(Receive& r) {
  r.iov.clear(core_.iov_pool);
  --r.endpoint->receives;
  if (r.filter.source != nullptr) {
    core_.peers.unhold(const_cast<Peer&>(*r.filter.source));
    r.filter.source = nullptr;
  }
  pool_.release(&r);
}

Receive* Receives::next_aside() {
  if (set_aside_.empty()) return nullptr;
  Receive& r = set_aside_.front();
  set_aside_.pop_front();
  return &r;
}

}  // namespace uet::ses
