#include "lib/net/neighbor_table.h"

#include <algorithm>
#include <bit>

namespace uet::net {

namespace {

// After the device refused a solicitation. Short against any retry, long against a turn of the
// loop.
constexpr Duration kRefusedRetry = Duration::from_ms(1);

// As attempts: as many as there can be, so that the next question is a broadcast.
constexpr std::uint8_t kNoMoreProbes = UINT8_MAX;

constexpr bool has_deadline(NeighborState s) {
  return s != NeighborState::kReachable;
}

}  // namespace

NeighborTable::NeighborTable(const NeighborConfig& config, const base::HashKey& hash_key)
    : config_(config),
      neighbors_(config.max_neighbors),
      buckets_(std::bit_ceil(config.max_neighbors * 2)),
      by_address_(ByAddress::bucket_traits(buckets_.data(), buckets_.size()),
                  HashAddress{hash_key}) {
  UET_CHECK(config.max_neighbors > 0);
  free_.reserve(neighbors_.size());
  for (std::size_t i = neighbors_.size(); i-- > 0;) free_.push_back(&neighbors_[i]);
}

NeighborTable::~NeighborTable() {
  unanswered_.clear();
  timed_.clear();
  by_address_.clear();
}

Neighbor* NeighborTable::find(const FabricAddress& address) {
  const auto it = by_address_.find(address);
  return it == by_address_.end() ? nullptr : &*it;
}

std::size_t NeighborTable::longest_chain() const {
  std::size_t longest = 0;
  for (std::size_t i = 0; i < by_address_.bucket_count(); ++i)
    longest = std::max(longest, by_address_.bucket_size(i));
  return longest;
}

Neighbor* NeighborTable::in_the_way() {
  if (!free_.empty() || unanswered_.empty()) return nullptr;
  Neighbor& oldest = unanswered_.front();
  return oldest.waiting.size != 0 ? &oldest : nullptr;
}

Neighbor* NeighborTable::find_or_start(Instant now, const FabricAddress& address) {
  if (Neighbor* known = find(address)) return known;
  make_room(now);
  Neighbor* n = add(address);
  if (n == nullptr) return nullptr;
  unanswered_.push_back(*n);
  enter(*n, NeighborState::kResolving, now);
  return n;
}

Neighbor* NeighborTable::on_claim(Instant now, const FabricAddress& address, const MacAddress& mac,
                                  Claim claim) {
  Neighbor* n = find(address);
  if (n == nullptr) {
    // Strangers may fill free places, but never push out a neighbor that we chose to talk to.
    if (claim != Claim::kQuestion) return nullptr;
    n = add(address);
    if (n == nullptr) return nullptr;
    n->has_answered = true;
  }
  if (!std::exchange(n->has_answered, true)) unanswered_.erase(unanswered_.iterator_to(*n));
  const bool is_probing = n->state == NeighborState::kProbing;
  const bool is_same = n->has_mac() && n->mac == mac;
  n->is_disputed |= n->has_mac() && !is_same;
  n->mac = mac;
  if (claim == Claim::kAnswer && n->is_asked && (is_same || !is_probing)) {
    n->is_asked = n->is_disputed = false;
    n->confirm_by = now + config_.reachable_time;
    enter(*n, NeighborState::kReachable, Instant::never());
  } else if (!is_same && !is_probing) {
    n->confirm_by = now;
    enter(*n, NeighborState::kReachable, Instant::never());
  }
  return n;
}

NeighborTable::Due NeighborTable::next_due(Instant now) {
  while (!timed_.empty() && timed_.begin()->deadline <= now) {
    Neighbor& n = *timed_.begin();
    if (n.state == NeighborState::kUnreachable) {
      remove(n);
      continue;
    }
    const bool is_probing = n.state == NeighborState::kProbing;
    if (n.attempts < (is_probing ? probes_of(n) : config_.attempts)) {
      ++n.attempts;
      n.is_asked = true;
      n.may_probe_at = now + config_.retry_first;
      set_deadline(n, now + retry_after(n.attempts));
      return {Step::kSolicit, &n};
    }
    if (is_probing) {
      enter(n, NeighborState::kResolving, now);
      continue;
    }
    enter(n, NeighborState::kUnreachable, now + config_.hold_down);
    return {Step::kGiveUp, &n};
  }
  return {};
}

void NeighborTable::on_solicit_refused(Instant now, Neighbor& neighbor) {
  --neighbor.attempts;
  set_deadline(neighbor, now + kRefusedRetry);
}

void NeighborTable::on_link_change(Instant now) {
  for (Neighbor& n : neighbors_)
    if (n.has_mac()) enter(n, NeighborState::kResolving, now);
}

void NeighborTable::enter(Neighbor& neighbor, NeighborState state, Instant deadline) {
  neighbor.state = state;
  neighbor.attempts = 0;
  set_deadline(neighbor, has_deadline(state) ? deadline : Instant::never());
}

/// A host that claims many MACs, or an address of many, cannot make us ask as often as it speaks. A disputed MAC is used until we may ask: then all hosts
/// are asked, so that packets are lost for `retry_first` at most.
void NeighborTable::start_probing(Instant now, Neighbor& neighbor) {
  enter(neighbor, NeighborState::kProbing, std::max(now, neighbor.may_probe_at));
  if (neighbor.is_disputed && neighbor.deadline > now) neighbor.attempts = kNoMoreProbes;
}

void NeighborTable::set_deadline(Neighbor& neighbor, Instant deadline) {
  if (static_cast<boost::intrusive::set_base_hook<>&>(neighbor).is_linked())
    timed_.erase(timed_.iterator_to(neighbor));
  neighbor.deadline = deadline;
  if (!deadline.is_never()) timed_.insert(neighbor);
}

void NeighborTable::remove(Neighbor& neighbor) {
  UET_CHECK(neighbor.waiting.size == 0);
  set_deadline(neighbor, Instant::never());
  by_address_.erase(by_address_.iterator_to(neighbor));
  if (!neighbor.has_answered) unanswered_.erase(unanswered_.iterator_to(neighbor));
  neighbor.state = NeighborState::kFree;
  neighbor.was_used = false;
  neighbor.has_answered = false;
  neighbor.is_asked = false;
  neighbor.is_disputed = false;
  neighbor.may_probe_at = Instant();
  free_.push_back(&neighbor);
  ++generation_;
}

Neighbor* NeighborTable::add(const FabricAddress& address) {
  if (free_.empty()) return nullptr;
  Neighbor* n = free_.back();
  free_.pop_back();
  n->address = address;
  by_address_.insert(*n);
  return n;
}

void NeighborTable::make_room(Instant now) {
  if (!free_.empty()) return;
  const bool have_their_share = unanswered_.size() >= (neighbors_.size() + 1) / 2;
  Neighbor* victim = have_their_share ? nullptr : idle_one(now);
  if (victim == nullptr && !unanswered_.empty()) victim = &unanswered_.front();
  if (victim != nullptr && victim->waiting.size == 0) remove(*victim);
}

/// A neighbor that was not used since the marks were taken off, which is idle_time ago or longer. Each is looked at once in that time.
Neighbor* NeighborTable::idle_one(Instant now) {
  if (now < marks_taken_at_ + config_.idle_time) return nullptr;
  while (hand_ < neighbors_.size()) {
    Neighbor& n = neighbors_[hand_++];
    if (n.has_answered && !n.was_used && n.waiting.size == 0) return &n;
  }
  for (Neighbor& n : neighbors_) n.was_used = false;
  hand_ = 0;
  marks_taken_at_ = now;
  return nullptr;
}

/// Packets to a MAC that may be wrong are lost until all hosts are asked.
unsigned NeighborTable::probes_of(const Neighbor& neighbor) const {
  return neighbor.is_disputed ? std::min(1u, config_.probes) : config_.probes;
}

Duration NeighborTable::retry_after(unsigned attempts) const {
  const Duration doubled = config_.retry_first * (std::int64_t{1} << std::min(attempts - 1, 20u));
  return std::min(doubled, config_.retry_max);
}

}  // namespace uet::net
