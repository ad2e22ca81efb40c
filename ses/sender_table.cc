#include "ses/sender_table.h"

#include <algorithm>

namespace uet::ses {
namespace {

constexpr std::size_t kFirstBuckets = 64;
/// Senders at rest that one search for a place looks at.
constexpr int kLookAt = 8;
/// Streams of one sender to one endpoint that are remembered. An initiator has two, and again two when it starts anew.
constexpr std::size_t kStreamsPerSender = 16;

}  // namespace

SenderTable::SenderTable(std::uint32_t max, std::uint32_t max_streams, base::Duration memory,
                         const base::HashKey& hash_key)
    : hash_key_(hash_key),
      memory_(memory),
      pool_(max, 16),
      streams_(max_streams, 16),
      buckets_(new Set::bucket_type[kFirstBuckets]()),
      by_key_(Set::bucket_traits(buckets_.get(), kFirstBuckets), Hash{&hash_key}) {}

SenderTable::~SenderTable() {
  for (Sender& s : by_key_) s.streams.clear();
  by_key_.clear();
  idle_.clear();
  idle_at_endpoints_.clear();
  idle_with_streams_.clear();
}

Sender* SenderTable::find(EndpointId endpoint, const net::FabricAddress& address) {
  if (pool_.in_use() == 0) return nullptr;  // as long as every message has found its receive
  const auto it = by_key_.find(Key{endpoint, address}, Hash{&hash_key_}, Equal());
  return it == by_key_.end() ? nullptr : &*it;
}

Sender* SenderTable::find_or_make(EndpointId endpoint, const net::FabricAddress& address,
                                  std::int64_t loop_ns, bool is_proven) {
  if (Sender* known = find(endpoint, address)) return known;
  if (!has_place(endpoint, is_proven, loop_ns)) return nullptr;
  Sender* s = pool_.acquire();
  if (s == nullptr) return nullptr;
  s->endpoint = endpoint;
  s->address = address;
  s->users = 0;
  for (Gate& gate : s->gates) {
    gate.sender = s;
    gate.generation = 0;
    gate.is_enabled = true;
  }
  s->refused_at_ns = s->fetched_at_ns = 0;
  s->fetches = 0;
  s->has_served = s->has_report_turn = false;
  s->reports_carried = 0;
  s->rests_with_streams = false;
  if (pool_.in_use() > 2 * by_key_.bucket_count()) grow_buckets(by_key_, buckets_);
  by_key_.insert(*s);
  if (endpoint != 0) ++at_endpoints_;
  idle_list_of(*s).push_back(*s);
  return s;
}

bool SenderTable::has_place(EndpointId endpoint, bool is_proven, std::int64_t loop_ns) {
  if (endpoint != 0) {
    const std::size_t most = std::max<std::size_t>(1, pool_.max() / (is_proven ? 2 : 8));
    const bool is_crowded = at_endpoints_ >= most;
    if (is_crowded && !forget_idle(loop_ns, {&idle_at_endpoints_, &idle_with_streams_}))
      return false;
  }
  return pool_.available() > 0 || forget_idle(loop_ns);
}

void SenderTable::hold(Sender& sender) {
  if (sender.users++ > 0) return;
  IdleList& list = idle_list_of(sender);
  list.erase(list.iterator_to(sender));
}

void SenderTable::unhold(Sender& sender) {
  UET_DCHECK(sender.users > 0);
  if (--sender.users > 0) return;
  UET_DCHECK(sender.messages == 0 && sender.returns == 0);
  sender.rests_with_streams = !sender.streams.empty();
  idle_list_of(sender).push_back(sender);
}

/// Those that rest for longest are looked at first when a place is needed.
void SenderTable::rest_anew(Sender& sender) {
  IdleList& list = idle_list_of(sender);
  list.splice(list.end(), list, list.iterator_to(sender));
}

SenderTable::IdleList& SenderTable::idle_list_of(Sender& sender) {
  if (sender.rests_with_streams) return idle_with_streams_;
  return sender.endpoint != 0 ? idle_at_endpoints_ : idle_;
}

/// What was answered by then is known to be, so nothing of it is on its way.
bool SenderTable::is_quiet(const Stream& stream, std::int64_t loop_ns) const {
  return stream.held.empty() && loop_ns - stream.active_at_ns >= memory_.ns();
}

/// Unknown senders are at generation 0.
bool SenderTable::may_forget(const Sender& sender, std::int64_t loop_ns) const {
  const bool is_plain = sender.gates[0].generation == 0 && sender.gates[1].generation == 0;
  return (sender.streams.empty() || is_quiet(sender.streams.front(), loop_ns)) &&
         (is_plain || loop_ns - sender.refused_at_ns >= memory_.ns());
}

bool SenderTable::forget_idle(std::int64_t loop_ns) {
  return forget_idle(loop_ns, {&idle_, &idle_at_endpoints_, &idle_with_streams_});
}

bool SenderTable::forget_idle(std::int64_t loop_ns, std::initializer_list<IdleList*> lists) {
  for (IdleList* list : lists) {
    int looked = 0;
    for (Sender& s : *list) {
      if (++looked > kLookAt) break;
      if (!may_forget(s, loop_ns)) continue;
      list->erase(list->iterator_to(s));
      by_key_.erase(by_key_.iterator_to(s));
      if (s.endpoint != 0) --at_endpoints_;
      while (close_quiet_stream(s, loop_ns)) {
      }
      pool_.release(&s);
      return true;
    }
  }
  return false;
}

Stream* SenderTable::find_stream(Sender& sender, std::uint32_t id, bool tagged) {
  for (auto it = sender.streams.begin(); it != sender.streams.end(); ++it) {
    if (it->id != id || it->tagged != tagged) continue;
    if (it != sender.streams.begin())
      sender.streams.splice(sender.streams.begin(), sender.streams, it);
    if (sender.users == 0) rest_anew(sender);
    return &*it;
  }
  return nullptr;
}

Stream* SenderTable::open_stream(Sender& sender, std::uint32_t id, bool tagged,
                                 std::uint32_t expected, std::int64_t loop_ns) {
  // Senders that are remembered for their streams leave half of the table to what every message needs.
  const bool is_crowded = sender.streams.empty() && pool_.available() < pool_.max() / 2;
  while (streams_.available() == 0 && forget_idle(loop_ns)) {
  }
  const bool is_full = sender.streams.size() >= kStreamsPerSender || streams_.available() == 0;
  if (is_crowded || (is_full && !close_quiet_stream(sender, loop_ns))) return nullptr;
  Stream* s = streams_.acquire();
  if (s == nullptr) return nullptr;
  s->sender = &sender;
  s->id = id;
  s->tagged = tagged;
  s->expected = expected;
  sender.streams.push_front(*s);
  return s;
}

bool SenderTable::close_quiet_stream(Sender& sender, std::int64_t loop_ns) {
  if (sender.streams.empty() || !is_quiet(sender.streams.back(), loop_ns)) return false;
  Stream& s = sender.streams.back();
  sender.streams.pop_back();
  streams_.release(&s);
  return true;
}

}  // namespace uet::ses
