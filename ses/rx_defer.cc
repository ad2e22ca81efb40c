// Messages that are put off until there is a receive for them, and then sent again. [SES 7.2, 8.3]
//
// Such a message is among the unexpected ones with its header. When a receive takes it, it goes the way of a rendezvous: it waits for
// its turn among the READs, and a request to restart takes the place of the READ. Then its initiator sends all of it once more, with
// the token that finds the receive.
#include <algorithm>

#include "ses/receiver.h"

namespace uet::ses {

/// Only known peers can be asked to restart. A message that was asked for is not put off again.
bool Receiver::may_defer(const Context& c, const Sender& sender) const {
  const RequestView& r = c.request;
  return core_.config.defers && is_deferrable(r.opcode) && r.target_token == 0 && !c.is_ordered() &&
         !closes_early(r) && c.endpoint->deferred < core_.config.max_deferred &&
         sender.deferred < core_.config.max_deferred_of_peer &&
         core_.peers.find_source(c.packet.source, r.initiator) != kAnyPeer;
}

/// Only the header is kept; what comes of the payload is discarded.
pds::Answer Receiver::defer(Context& c, RiSpace& space, Sender& sender, Unexpected* header) {
  const RequestView& r = c.request;
  Endpoint& endpoint = *c.endpoint;
  Unexpected* u = store_.admit(endpoint.overflow, sender, 0);
  if (u == nullptr) return refuse_for_lack(c, space, sender, header);
  senders_.hold(sender);
  core_.trace.emit(c.now, base::EventId::kMessageUnexpected, 0, {},
                   static_cast<std::uint64_t>(r.opcode), r.request_length);
  enlist(c, space, *u, header);
  if (header != nullptr) headers_.forget(*header);
  const Peer* const peer = core_.peers.find(core_.peers.find_source(c.packet.source, r.initiator));
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
    RxMessage& m = shares_.begin(c, RxTarget::kDiscard);
    m.seen = r.covered;
    m.code_was_told = true;
  }
  return answer_ok(r, ResponseList::kOverflow, 0);
}

/// [SES 7.3] Its initiator shall not wait for ever: it is asked to send what no one keeps.
void Receiver::sink_deferred(Instant now, Unexpected& u) {
  senders_.hold(*u.sender);
  unlink_unexpected(u);
  u.claimed = false;
  u.receive = nullptr;
  u.is_unwanted = true;
  u.rest.start = u.rest.limit = 0;
  fetches_.join(u);
  fetch_rest(now, u);
}

/// A token serves for one restart, of the message that it was made for.
pds::Answer Receiver::begin_restarted(Context& c) {
  const RequestView& r = c.request;
  Fetch* const fetch = fetches_.find_restart(r.target_token);
  if (fetch == nullptr) return reject(c, ReturnCode::kOpViolation);
  Unexpected& u = *fetch->message;
  const bool is_it = u.endpoint == c.endpoint && u.header == c.incoming() &&
                     u.tagged == is_tagged(r.opcode) && u.length == r.request_length &&
                     u.initiator_token == r.initiator_token && !closes_early(r);
  if (!is_it) return reject(c, ReturnCode::kOpViolation);
  c.is_taken = true;
  u.has_header_data = r.som && r.hd;
  u.header_data = r.header_data;
  if (r.is_single()) {
    const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(u.rest.limit, r.covered));
    if (n > 0) u.receive->iov.scatter(static_cast<std::size_t>(u.rest.start), r.payload.data(), n);
    return end_restarted(c, u);
  }
  RxMessage& m = shares_.begin(c, RxTarget::kDiscard);
  if (u.receive == nullptr) {  // thrown away: all of it is discarded
    m.seen = r.covered;
    (void)end_restarted(c, u);
    return answer_pending(r);
  }
  messages_.set_target(m, RxTarget::kReceive);
  m.receive = u.receive;
  m.unexpected = &u;
  m.start = u.rest.start;
  m.limit = u.rest.limit;
  u.message = &m;
  messages_.count(m, r);
  return proceed_receive(c, m);
}

/// All of it is in the receive.
pds::Answer Receiver::end_restarted(Context& c, Unexpected& u) {
  const std::uint64_t limit = u.rest.limit, length = u.length;
  Fetch& fetch = *u.fetch;
  fetch.sender->fetched_at_ns = clock_.ns();
  end_rendezvous(c.now, u, ReturnCode::kOk);
  fetches_.serve(c.now);
  return limit < length
             ? answer_ok(c.request, ResponseList::kExpected, static_cast<std::uint32_t>(limit))
             : answer_default(c.request);
}

/// At the initiator. [SES 8.2]
pds::Answer Receiver::on_restart(Context& c) {
  const RequestView& r = c.request;
  const ReturnCode code = core_.restarts->on_restart(c.now, *c.endpoint, c.packet.source, r);
  if (code == ReturnCode::kOk) return answer_default(r);
  core_.trace.drop(c.now, base::DropReason::kSesUnknownResponse, c.packet.bytes.size());
  return answer_error(r, code, r.ri_generation, true);
}

}  // namespace uet::ses
