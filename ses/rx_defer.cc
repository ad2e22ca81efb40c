#include "ses/rx_defer.h"

namespace uet::ses {

bool Deferrals::may_defer(const RequestContext& c, const Sender& sender) const {
  const RequestView& r = c.request;
  return shared_.core.config.defers && is_deferrable(r.opcode) && r.target_token == 0 &&
         !c.is_ordered() && !closes_early(r) &&
         c.endpoint->deferred < shared_.core.config.max_deferred &&
         sender.deferred < shared_.core.config.max_deferred_of_peer &&
         shared_.core.peers.find_source(c.source()) != kAnyPeer;
}

bool Deferrals::defer(RequestContext& c, RiSpace& space, Sender& sender,
                      UnexpectedMessage* header) {
  const RequestView& r = c.request;
  Endpoint& endpoint = *c.endpoint;
  UnexpectedMessage* u = shared_.store.admit(endpoint.overflow, sender, 0);
  if (u == nullptr) return false;
  shared_.senders.hold(sender);
  shared_.core.trace.emit(c.now, base::EventId::kMessageUnexpected, 0, {},
                          static_cast<std::uint64_t>(r.opcode), r.request_length);
  shared_.unexpected.enlist(c, space, *u, header);
  if (header != nullptr) shared_.headers.forget(*header);
  const Peer* const peer = shared_.core.peers.find(shared_.core.peers.find_source(c.source()));
  u->is_rendezvous = u->is_deferred = true;
  u->initiator_token = r.initiator_token;
  u->rest = {};
  u->rest.relative = peer->address.relative;
  u->rest.pid_on_fep = peer->address.pid_on_fep;
  u->rest.resource_index = peer->address.resource_index;
  ++endpoint.deferred;
  ++sender.deferred;
  c.is_taken = true;
  if (!r.is_single()) {
    RxMessage& m = shared_.shares.begin(c, RxTarget::kDiscard);
    m.seen = r.covered;
    m.code_was_told = true;
  }
  return true;
}

UnexpectedMessage* Deferrals::find_restarted(const RequestContext& c) {
  const RequestView& r = c.request;
  UnexpectedMessage* const u = rendezvous_.find_restart(r.target_token);
  const bool is_it = u != nullptr && u->endpoint == c.endpoint && u->header == c.incoming() &&
                     u->tagged == is_tagged(r.opcode) && u->length == r.request_length &&
                     u->initiator_token == r.initiator_token;
  return is_it ? u : nullptr;
}

pds::Answer Deferrals::end_restarted(const RequestContext& c, UnexpectedMessage& u) {
  const std::uint64_t limit = u.rest.limit, length = u.length;
  rendezvous_.end_restart(c.now, u);
  return limit < length
             ? answer_ok(c.request, ResponseList::kExpected, static_cast<std::uint32_t>(limit))
             : answer_default(c.request);
}

}  // namespace uet::ses
