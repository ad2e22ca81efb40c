#include "ses/sender_table.h"

namespace uet::ses {
namespace {

constexpr std::size_t kFirstBuckets = 64;
/// Senders at rest that one search for a place looks at.
constexpr int kLookAt = 8;

}  // namespace

SenderTable::SenderTable(std::uint32_t max, base::Duration memory, const base::HashKey& hash_key)
    : hash_key_(hash_key),
      memory_(memory),
      pool_(max, 16),
      buckets_(kFirstBuckets),
      by_key_(Set::bucket_traits(buckets_.data(), buckets_.size()), Hash{&hash_key}) {}

SenderTable::~SenderTable() {
  by_key_.clear();
  idle_.clear();
}

Sender* SenderTable::find(EndpointId endpoint, const net::FabricAddress& address) {
  const auto it = by_key_.find(Key{endpoint, address}, Hash{&hash_key_}, Equal());
  return it == by_key_.end() ? nullptr : &*it;
}

Sender* SenderTable::find_or_make(EndpointId endpoint, const net::FabricAddress& address,
                                  std::int64_t loop_ns) {
  if (Sender* known = find(endpoint, address)) return known;
  if (pool_.available() == 0 && !forget_idle(loop_ns)) return nullptr;
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
  s->refused_at_ns = 0;
  if (pool_.in_use() > 2 * buckets_.size()) {
    std::vector<Set::bucket_type> more(buckets_.size() * 2);
    by_key_.rehash(Set::bucket_traits(more.data(), more.size()));
    buckets_.swap(more);
  }
  by_key_.insert(*s);
  idle_.push_back(*s);
  return s;
}

void SenderTable::hold(Sender& sender) {
  if (sender.users++ == 0) idle_.erase(idle_.iterator_to(sender));
}

void SenderTable::unhold(Sender& sender) {
  if (--sender.users == 0) idle_.push_back(sender);
}

/// Unknown senders are at generation 0.
bool SenderTable::may_forget(const Sender& sender, std::int64_t loop_ns) const {
  const bool is_plain = sender.gates[0].generation == 0 && sender.gates[1].generation == 0;
  return is_plain || loop_ns - sender.refused_at_ns >= memory_.ns();
}

bool SenderTable::forget_idle(std::int64_t loop_ns) {
  int looked = 0;
  for (Sender& s : idle_) {
    if (++looked > kLookAt) return false;
    if (!may_forget(s, loop_ns)) continue;
    idle_.erase(idle_.iterator_to(s));
    by_key_.erase(by_key_.iterator_to(s));
    pool_.release(&s);
    return true;
  }
  return false;
}

}  // namespace uet::ses
