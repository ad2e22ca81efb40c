// The READs that a target issues for rendezvous: a bounded number, which sources share. [SES 9, decision 142]
#include "ses/rx_fetches.h"

#include <algorithm>

namespace uet::ses {

Fetches::Fetches(Core& core, SenderTable& senders, const LoopClock& clock)
    : core_(core),
      senders_(senders),
      clock_(clock),
      pool_(core.config.rendezvous || core.config.defers ? core.config.max_fetches : 0, 16) {}

Fetches::~Fetches() {
  turns_.clear();
  active_.clear();
}

void Fetches::join(UnexpectedMessage& u) {
  u.endpoint->fetching.push_back(u);
  ++messages_;
}

void Fetches::leave(UnexpectedMessage& u) {
  if (u.waits_for_fetch) end_wait(u);
  if (u.fetch != nullptr) {
    u.fetch->message = nullptr;
    if (u.fetch->is_answered) release(*u.fetch);  // nothing else ends a restart
    u.fetch = nullptr;
  }
  u.endpoint->fetching.erase(u.endpoint->fetching.iterator_to(u));
  --messages_;
}

void Fetches::ask(Instant now, UnexpectedMessage& u) {
  u.active_at_ns = clock_.ns();
  wait(u);
  serve(now);
}

void Fetches::wait(UnexpectedMessage& u) {
  Sender& sender = *u.sender;
  if (sender.to_fetch.empty()) turns_.push_back(sender);
  sender.to_fetch.push_back(u);
  u.waits_for_fetch = true;
}

void Fetches::end_wait(UnexpectedMessage& u) {
  Sender& sender = *u.sender;
  sender.to_fetch.erase(sender.to_fetch.iterator_to(u));
  if (sender.to_fetch.empty()) turns_.erase(turns_.iterator_to(sender));
  u.waits_for_fetch = false;
}

/// Sources take turns, one message each. Those that have their share are passed by, a few at each call: the next call goes on
/// behind them, and there is one whenever a READ ends.
void Fetches::serve(Instant now) {
  constexpr int kLookAt = 8;
  int looked = 0;
  while (!turns_.empty() && pool_.available() > 0 && looked < kLookAt) {
    Sender& sender = turns_.front();
    turns_.splice(turns_.end(), turns_, turns_.begin());
    if (!has_share(sender.fetches, pool_.available() - 1)) {
      ++looked;
      continue;
    }
    if (!begin(now, sender.to_fetch.front())) return;  // the next turn of the clock tries again
  }
}

bool Fetches::begin(Instant now, UnexpectedMessage& u) {
  Fetch* fetch = pool_.acquire();
  if (fetch == nullptr) return false;
  fetch->peer.address = {.fabric_address = u.header.source,
                         .pid_on_fep = u.rest.pid_on_fep,
                         .resource_index = u.rest.resource_index,
                         .has_initiator_id = false,
                         .relative = u.rest.relative,
                         .fep_cap = u.rest.fep_cap};
  fetch->peer.users = 1;  // never that of a table
  fetch->peer.holds = 0;
  fetch->peer.generation = {u.rest.ri_generation, u.rest.ri_generation};
  fetch->peer.flows = nullptr;
  fetch->message = &u;
  fetch->sender = u.sender;
  fetch->token = u.is_deferred ? fetch->serial << 16 | fetch->pool_index : 0;
  fetch->is_answered = false;
  fetch->done = u.rest.eager;
  fetch->placed = fetch->seen = 0;
  fetch->active_at_ns = clock_.ns();
  if (!go_on(now, *fetch)) {
    pool_.release(fetch);
    return false;
  }
  u.fetch = fetch;
  end_wait(u);
  // What waits behind it waits for this one from now on, no longer for those of other sources.
  u.sender->fetched_at_ns = fetch->active_at_ns;
  ++u.sender->fetches;
  senders_.hold(*u.sender);
  active_.push_back(*fetch);
  return true;
}

/// A source that never served a READ is asked for one packet first: what it says of itself may be false, and the READs go where
/// it says that it is.
bool Fetches::go_on(Instant now, Fetch& fetch) {
  const UnexpectedMessage& u = *fetch.message;
  if (u.is_deferred) return ask_for_restart(now, fetch);
  const std::uint64_t left = u.rest.limit - fetch.done;
  const std::uint64_t length =
      fetch.sender->has_served ? left : std::min<std::uint64_t>(left, core_.payload_mtu);
  const FetchRequest request{.endpoint = u.endpoint,
                             .job_id = u.header.job_id,
                             .into = &u.receive->iov,
                             .at = u.rest.start + fetch.done,
                             .length = length,
                             .remote_offset = u.rest.offset + fetch.done,
                             .key = u.rest.key};
  if (!core_.fetcher->fetch(now, fetch, request)) return false;
  fetch.asked = fetch.done + length;
  return true;
}

bool Fetches::ask_for_restart(Instant now, Fetch& fetch) {
  const UnexpectedMessage& u = *fetch.message;
  const FetchRequest request{.endpoint = u.endpoint,
                             .job_id = u.header.job_id,
                             .key = std::uint64_t{u.initiator_token} << 32 | fetch.token};
  return core_.fetcher->fetch(now, fetch, request);
}

Fetch* Fetches::find_restart(std::uint32_t token) {
  Fetch* fetch = pool_.at(token & 0xffff);
  const bool is_open = fetch != nullptr && fetch->token == token && fetch->message != nullptr &&
                       fetch->message->message == nullptr;
  return is_open ? fetch : nullptr;
}

Fetches::End Fetches::on_fetched(Instant now, Fetch& fetch, ReturnCode code) {
  UnexpectedMessage* u = fetch.message;
  if (u != nullptr && u->is_deferred && (code == ReturnCode::kOk || u->message != nullptr)) {
    fetch.is_answered = true;
    fetch.active_at_ns = fetch.sender->fetched_at_ns = clock_.ns();
    return {};
  }
  if (u != nullptr && code == ReturnCode::kOk) {
    fetch.sender->has_served = true;
    fetch.done = fetch.asked;
    fetch.active_at_ns = fetch.sender->fetched_at_ns = clock_.ns();
    if (fetch.done < u->rest.limit) {
      if (go_on(now, fetch)) return {};
      code = ReturnCode::kUncorTrnsnt;
    }
  }
  if (u != nullptr) u->fetch = nullptr;
  release(fetch);
  return {.is_over = true, .message = u, .code = code};
}

void Fetches::release(Fetch& fetch) {
  active_.erase(active_.iterator_to(fetch));
  --fetch.sender->fetches;
  senders_.unhold(*fetch.sender);
  pool_.release(&fetch);
}

Fetches::Idle Fetches::take_idle() {
  for (Fetch& fetch : active_) {
    if (fetch.placed != fetch.seen) {
      fetch.seen = fetch.placed;
      fetch.active_at_ns = fetch.sender->fetched_at_ns = clock_.ns();
    }
    if (fetch.message == nullptr || !is_idle(fetch.active_at_ns)) continue;
    UnexpectedMessage& u = *fetch.message;
    if (u.is_deferred && u.message != nullptr) continue;  // has its own limit
    u.fetch = nullptr;
    fetch.message = nullptr;
    if (!fetch.is_answered) return {&u, &fetch};
    release(fetch);
    return {&u, nullptr};
  }
  return {};
}

UnexpectedMessage* Fetches::find_idle_waiting() {
  for (Sender& sender : turns_) {
    if (sender.fetches == 0 && pool_.available() == 0) continue;  // it waits for others
    UnexpectedMessage& first = sender.to_fetch.front();
    if (is_idle(std::max(first.active_at_ns, sender.fetched_at_ns))) return &first;
  }
  return nullptr;
}

bool Fetches::is_idle(std::int64_t since_ns) const {
  return clock_.is_past(since_ns, core_.config.message_idle);
}

}  // namespace uet::ses
