// The READs that a target issues for rendezvous: a bounded number, which sources share. [SES 9, decision 142]
#include <algorithm>

#include "ses/receiver.h"

namespace uet::ses {

void Receiver::wait_for_fetch(Unexpected& u) {
  Sender& sender = *u.sender;
  if (sender.to_fetch.empty()) fetch_turns_.push_back(sender);
  sender.to_fetch.push_back(u);
  u.waits_for_fetch = true;
}

void Receiver::end_fetch_wait(Unexpected& u) {
  Sender& sender = *u.sender;
  sender.to_fetch.erase(sender.to_fetch.iterator_to(u));
  if (sender.to_fetch.empty()) fetch_turns_.erase(fetch_turns_.iterator_to(sender));
  u.waits_for_fetch = false;
}

/// Sources take turns, one message each. Those that have their share are passed by, a few at each call: the next call goes on
/// behind them, and there is one whenever a READ ends.
void Receiver::serve_fetches(Instant now) {
  constexpr int kLookAt = 8;
  int looked = 0;
  while (!fetch_turns_.empty() && fetches_.available() > 0 && looked < kLookAt) {
    Sender& sender = fetch_turns_.front();
    fetch_turns_.splice(fetch_turns_.end(), fetch_turns_, fetch_turns_.begin());
    if (!has_share(sender.fetches, fetches_.available() - 1)) {
      ++looked;
      continue;
    }
    if (!begin_fetch(now, sender.to_fetch.front()))
      return;  // the next turn of the clock tries again
  }
}

bool Receiver::begin_fetch(Instant now, Unexpected& u) {
  Fetch* fetch = fetches_.acquire();
  if (fetch == nullptr) return false;
  fetch->peer.address = {.fabric_address = u.header.source,
                         .pid_on_fep = u.rest.pid_on_fep,
                         .resource_index = u.rest.resource_index,
                         .has_initiator_id = false,
                         .relative = u.rest.relative};
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
  if (!go_on_fetching(now, *fetch)) {
    fetches_.release(fetch);
    return false;
  }
  u.fetch = fetch;
  end_fetch_wait(u);
  ++u.sender->fetches;
  senders_.hold(*u.sender);
  active_fetches_.push_back(*fetch);
  return true;
}

/// A source that never served a READ is asked for one packet first: what it says of itself may be false, and the READs go where
/// it says that it is.
bool Receiver::go_on_fetching(Instant now, Fetch& fetch) {
  const Unexpected& u = *fetch.message;
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

void Receiver::on_fetched(Instant now, Fetch& fetch, ReturnCode code) {
  Unexpected* u = fetch.message;
  if (u != nullptr && u->is_deferred && (code == ReturnCode::kOk || u->message != nullptr)) {
    fetch.is_answered = true;
    fetch.active_at_ns = fetch.sender->fetched_at_ns = clock_.ns();
    return;
  }
  if (u != nullptr && code == ReturnCode::kOk) {
    fetch.sender->has_served = true;
    fetch.done = fetch.asked;
    fetch.active_at_ns = fetch.sender->fetched_at_ns = clock_.ns();
    if (fetch.done < u->rest.limit) {
      if (go_on_fetching(now, fetch)) return;
      code = ReturnCode::kUncorTrnsnt;
    }
  }
  if (u != nullptr) u->fetch = nullptr;
  release_fetch(fetch);
  if (u != nullptr) end_rendezvous(now, *u, code);
  serve_fetches(now);
}

void Receiver::release_fetch(Fetch& fetch) {
  active_fetches_.erase(active_fetches_.iterator_to(fetch));
  --fetch.sender->fetches;
  senders_.unhold(*fetch.sender);
  fetches_.release(&fetch);
}

/// A source that sends nothing of what it offered, for as long as a message may rest, has its receives back: those of READs
/// under way, and then those that wait behind them. [SES 4.3 rule 9]
void Receiver::drop_idle_fetches(Instant now) {
  const auto is_idle = [this](std::int64_t since) {
    return clock_.is_past(since, core_.config.message_idle);
  };
  for (auto it = active_fetches_.begin(); it != active_fetches_.end();) {
    Fetch& fetch = *it++;
    if (fetch.placed != fetch.seen) {
      fetch.seen = fetch.placed;
      fetch.active_at_ns = fetch.sender->fetched_at_ns = clock_.ns();
    }
    if (fetch.message == nullptr || !is_idle(fetch.active_at_ns)) continue;
    Unexpected& u = *fetch.message;
    if (u.is_deferred && u.message != nullptr) continue;  // has its own limit
    u.fetch = nullptr;
    fetch.message = nullptr;
    const bool is_answered = fetch.is_answered;
    if (is_answered) release_fetch(fetch);
    end_rendezvous(now, u, ReturnCode::kMessageTimeout);
    if (!is_answered) core_.fetcher->give_up(now, fetch);
    it = active_fetches_.begin();  // others may have ended meanwhile
  }
  serve_fetches(now);
  for (auto it = fetch_turns_.begin(); it != fetch_turns_.end();) {
    Sender& sender = *it++;
    if (sender.fetches == 0 && fetches_.available() == 0) continue;  // it waits for others
    Unexpected& first = sender.to_fetch.front();
    if (!is_idle(std::max(first.active_at_ns, sender.fetched_at_ns))) continue;
    end_rendezvous(now, first, ReturnCode::kMessageTimeout);
    it = fetch_turns_.begin();
  }
}

}  // namespace uet::ses
