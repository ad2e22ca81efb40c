#include "ses/rx_rendezvous.h"

namespace uet::ses {

void note_rest(const PeerTable& peers, const RequestContext& c, UnexpectedMessage& u) {
  if (c.request.kind != OpcodeClass::kRendezvous) return;
  const Peer* const source = peers.find(peers.find_source(c.source()));
  const wire::ExtRendezvous ext = rendezvous_of(c.request);
  u.is_rendezvous = true;
  u.message_id = c.request.message_id;
  u.rest = {.eager = ext.eager_length,
            .relative = source != nullptr ? source->address.relative : c.request.rel,
            .ri_generation = ext.read_ri_generation,
            .pid_on_fep = ext.read_pid_on_fep,
            .resource_index = ext.read_resource_index,
            .fep_cap = source != nullptr ? source->address.fep_cap : std::uint16_t{0},
            .offset = ext.read_offset,
            .key = ext.read_memory_key};
}

UnexpectedMessage* RendezvousTarget::describe(const RequestContext& c) {
  shared_.clock.advance(c.now);
  // As for a proven source: its message is in a receive of the user's.
  Sender* sender =
      shared_.senders.find_or_make(c.endpoint->id, c.packet.source, shared_.clock.ns(), true);
  if (sender == nullptr || !shared_.store.may_ask_for_more(*sender)) return nullptr;
  UnexpectedMessage* u = shared_.store.note_header(*sender, c.request.request_length);
  if (u == nullptr) return nullptr;
  u->is_header_only = false;
  shared_.senders.hold(*sender);
  c.describe(*u);
  note_rest(shared_.core.peers, c, *u);
  return u;
}

void RendezvousTarget::bind(UnexpectedMessage& u, Receive& r, std::uint64_t start,
                            std::uint64_t limit) {
  u.receive = &r;
  u.rest.start = start;
  u.rest.limit = limit;
  fetches_.join(u);
}

/// One that waited goes into a receive: what came with it is there, or still on its way. [SES 9 step 3]
void RendezvousTarget::adopt(Instant now, UnexpectedMessage& u, Receive& r, std::uint64_t start,
                             std::uint64_t limit, std::size_t copied) {
  shared_.senders.hold(*u.sender);
  shared_.unexpected.unlink(u);  // its room may let others in, which must not find it
  u.claimed = false;
  bind(u, r, start, limit);
  RxMessage* m = u.message;
  if (m == nullptr) return fetch_rest(now, u);
  m->target = RxTarget::kReceive;
  m->receive = &r;
  m->start = start;
  m->limit = limit;
  m->placed = copied;
}

/// READs begin when there is a place for one. What does not fit into the receive is not read. [SES 9 step 5]
void RendezvousTarget::fetch_rest(Instant now, UnexpectedMessage& u) {
  if (u.rest.limit <= u.rest.eager && !u.is_deferred) return end(now, u, ReturnCode::kOk);
  shared_.clock.advance(now);
  fetches_.ask(now, u);
}

/// [SES 7.3] Its initiator shall not wait for ever: it is asked to send what is then discarded.
void RendezvousTarget::fetch_unwanted(Instant now, UnexpectedMessage& u) {
  shared_.senders.hold(*u.sender);
  shared_.unexpected.unlink(u);
  u.claimed = false;
  u.receive = nullptr;
  u.is_unwanted = true;
  u.rest.start = u.rest.limit = 0;
  fetches_.join(u);
  fetch_rest(now, u);
}

UnexpectedMessage* RendezvousTarget::find_restart(std::uint32_t token) {
  Fetch* const fetch = fetches_.find_restart(token);
  return fetch == nullptr ? nullptr : fetch->message;
}

void RendezvousTarget::end_restart(Instant now, UnexpectedMessage& u, ReturnCode code) {
  u.fetch->sender->fetched_at_ns = shared_.clock.ns();
  end(now, u, code);
  fetches_.serve(now);
}

/// All of the message is here, or the rest will not come.
void RendezvousTarget::end(Instant now, UnexpectedMessage& u, ReturnCode code) {
  if (u.receive == nullptr) return leave(now, u, code);  // discarded by the user
  Receive& receive = *u.receive;
  const bool is_whole = code == ReturnCode::kOk;
  const std::uint64_t placed = is_whole ? u.rest.limit : u.rest.first();
  Completion completion = completion_in(receive, placed_of(u, u.rest.start, placed), code);
  shared_.receives.complete(now, *u.endpoint, receive, completion);
  // [SES 14.1] Only now is the data in the user's buffer and the completion written.
  leave(now, u, code);
}

/// The receive is no concern of it any more. What its initiator is told, if it asks, is a code of the wire that it does not try
/// again for.
void RendezvousTarget::leave(Instant now, UnexpectedMessage& u, ReturnCode told) {
  u.receive = nullptr;
  fetches_.leave(u);
  shared_.senders.unhold(*u.sender);
  if (told != ReturnCode::kOk && told != ReturnCode::kCancelled) told = ReturnCode::kUncor;
  shared_.reports.report(now, u, told);
}

void RendezvousTarget::on_fetched(Instant now, Fetch& fetch, ReturnCode code) {
  const Fetches::End fetched = fetches_.on_fetched(now, fetch, code);
  if (!fetched.is_over) return;
  if (fetched.message != nullptr) end(now, *fetched.message, fetched.code);
  fetches_.serve(now);
}

/// A source that sends nothing of what it offered has its receives back: those of READs under way, and then those that wait
/// behind them. The end of one may end others, so each is looked for anew.
void RendezvousTarget::drop_idle(Instant now) {
  for (Fetches::Idle idle = fetches_.take_idle(); idle.message != nullptr;
       idle = fetches_.take_idle()) {
    end(now, *idle.message, ReturnCode::kMessageTimeout);
    if (idle.under_way != nullptr) shared_.core.fetcher->give_up(now, *idle.under_way);
  }
  fetches_.serve(now);
  while (UnexpectedMessage* u = fetches_.find_idle_waiting())
    end(now, *u, ReturnCode::kMessageTimeout);
}

/// Receives that packets of an eager part still go to are those of the messages.
void RendezvousTarget::close(Instant now, Endpoint& endpoint) {
  while (!endpoint.fetching.empty()) {
    UnexpectedMessage& u = endpoint.fetching.front();
    Receive* const receive = u.receive;
    if (u.message != nullptr) {
      u.message->unexpected = nullptr;
      u.message = nullptr;
    } else if (receive != nullptr && --receive->in_flight == 0 && !receive->is_posted) {
      shared_.receives.set_aside(*receive);
    }
    leave(now, u, ReturnCode::kCancelled);
  }
}

}  // namespace uet::ses
