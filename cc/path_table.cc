#include "cc/path_table.h"

#include <algorithm>
#include <limits>

#include "lib/base/check.h"

namespace uet::cc {
namespace {

static_assert(sizeof(PathTable::Entry) == 80);  // as README.md says

// Without trimming plain congestion loses packets too: only a run of losses says that the path is
// dead. [CC 7.7]
constexpr std::uint8_t kTimeoutsWithoutTrimming = 2;
constexpr int kTimeoutRunRtts = 10;
constexpr std::uint8_t kMaxBackoff = 32;
// Paths that were not heard of since another one broke come back after this part of the eviction time.
constexpr int kCautionShare = 8;
// Of four: half of the ways there and half of the ways back may be bad, and a path needs both. See docs/notes/how-many-paths-may-be-evicted.md.
constexpr std::uint32_t kEvictedQuarters = 3;
// Destinations that coalesce name one packet in four: one that has delivered so many unnamed is asked.
constexpr std::uint8_t kSilentMax = 16;
// An asked path that is silent while packets arrive which were sent so much later has no way back.
constexpr int kReturnDeadRtts = 3;

}  // namespace

PathTable::PathTable(const CcConfig& config, std::uint32_t size, bool evicts, base::Rng& rng,
                     base::Trace& trace)
    : config_(config),
      trace_(trace),
      entries_(std::make_unique<Entry[]>(size)),
      size_(size),
      planes_(config.planes),
      evicts_(evicts) {
  UET_CHECK(size > 0 && (size & (size - 1)) == 0);
  base_ = static_cast<std::uint16_t>(rng.next_u32() & ~(size - 1));
  if (size == 1) plane_shift_ = static_cast<std::uint8_t>(rng.below(planes_));
}

std::uint32_t PathTable::usable_among(std::uint32_t size, const PathRequest& request) const {
  std::uint32_t usable_paths = 0;
  for (std::uint32_t i = 0; i < size; ++i) usable_paths += usable(i, request) ? 1 : 0;
  return usable_paths;
}

bool PathTable::wants_answer(std::uint32_t index, Instant now) const {
  if (size_ == 1) return false;
  const Entry& e = entries_[index];
  // Where no path is evicted for its losses, one may still have been on a plane that lost its link.
  if (!evicts_) return e.evictions > 0;
  return now < cautious_until_ || e.evictions > 0 || e.silent >= kSilentMax;
}

std::uint32_t PathTable::best_from(std::uint32_t start, const PathRequest& request) const {
  enum Rank { kNone, kAvoided, kEvicted, kUntrusted };
  Rank best_rank = kNone;
  std::uint32_t best = start & (size_ - 1);
  for (std::uint32_t step = 0; step < size_; ++step) {
    const std::uint32_t index = (start + step) & (size_ - 1);
    if (usable(index, request)) return index;
    if (!port_is_free(index, request)) continue;
    const bool avoid = request.avoid_entropy && entropy(index) == *request.avoid_entropy;
    const Rank rank = avoid ? kAvoided : is_evicted(index, request.now) ? kEvicted : kUntrusted;
    const bool is_newer = entries_[index].answered_sent > entries_[best].answered_sent;
    if (rank < best_rank || (rank == best_rank && !is_newer)) continue;
    best_rank = rank;
    best = index;
  }
  return best;
}

/// The rest of on_sent() for a packet that asks for its answer, and where not all is well.
void PathTable::watch_sent(Instant now, std::uint32_t index, bool asks) {
  if (is_cautious_ && now >= cautious_until_) end_caution(now);
  Entry& e = entries_[index];
  const bool owes_answer = e.silent >= kSilentMax || now < cautious_until_;
  if (asks && owes_answer && e.asked_since == Instant()) e.asked_since = now;
  if (e.is_return_dead && e.evictions == 0) evict(now, index);
  if (e.evictions == 0 || now < e.evicted_until) return;
  // The one packet that tries the path again. Should nothing be heard of it, the next try comes
  // after the same time.
  e.on_probation = true;
  e.evicted_until = now + config_.evict_time;
}

void PathTable::on_feedback(Instant now, std::uint32_t index, PathFeedback kind, Duration base_rtt,
                            Instant sent_at) {
  Entry& e = entries_[index];
  switch (kind) {
    case PathFeedback::kGood:
      break;
    case PathFeedback::kEcn:
      count(e.marks);
      break;
    case PathFeedback::kNacked:
      count(e.trims);
      break;
    case PathFeedback::kTimeout:
      count(e.losses);
      on_timeout(now, index, base_rtt, sent_at);
      return;
  }
}

void PathTable::note_rtt(Instant now, std::uint32_t index, Duration rtt) {
  entries_[index].rtt_at = now;
  entries_[index].rtt_ns = static_cast<std::uint32_t>(
      std::min<std::int64_t>(rtt.ns(), std::numeric_limits<std::uint32_t>::max()));
}

std::optional<std::uint32_t> PathTable::fastest_since(Instant since, Instant now) const {
  std::optional<std::uint32_t> fastest;
  for (std::uint32_t i = 0; i < size_; ++i) {
    const Entry& e = entries_[i];
    if (e.rtt_ns == 0 || e.rtt_at < since || e.penalty > 0) continue;
    if (fastest && e.rtt_ns >= entries_[*fastest].rtt_ns) continue;
    if (!is_evicted(i, now) && is_trusted(i, now)) fastest = i;
  }
  return fastest;
}

/// The rest of on_delivered() where paths are told apart.
void PathTable::watch_delivered(Entry& e, Instant sent_at, Duration base_rtt) {
  if (e.silent < kSilentMax) ++e.silent;
  if (e.asked_since != Instant() && sent_at > e.asked_since + base_rtt * kReturnDeadRtts)
    e.is_return_dead = true;
}

void PathTable::on_answered(Instant now, std::uint32_t index, Instant sent_at) {
  Entry& e = entries_[index];
  e.answered_sent = std::max(e.answered_sent, sent_at);
  e.silent = 0;
  e.asked_since = Instant();
  e.is_return_dead = false;
  if (e.on_probation && sent_at >= e.evicted_until - config_.evict_time) restore(now, index);
}

void PathTable::rebase(base::Rng& rng, std::uint8_t free_planes) {
  UET_CHECK(size_ == 1);
  const auto before = base_;
  while (base_ == before) base_ = static_cast<std::uint16_t>(rng.next_u32());
  for (std::uint8_t step = 0; step < planes_; ++step) {
    plane_shift_ = static_cast<std::uint8_t>((plane_shift_ + 1) % planes_);
    if (((free_planes >> plane_shift_) & 1) != 0) break;
  }
  entries_[0].timeouts = 0;
}

void PathTable::on_planes_changed(Instant now, std::uint8_t up) {
  if (size_ == 1) return;  // it moves to another plane instead
  for (std::uint32_t i = 0; i < size_; ++i) {
    const bool was_up = is_up(i);
    const bool comes_up = ((up >> plane(i)) & 1) != 0;
    if (was_up == comes_up) continue;
    Entry& e = entries_[i];
    if (e.evictions == 0) {
      e.evictions = 1;
      count_evicted(i, 1);
      trace_.emit(now, base::EventId::kPathEvicted, 0, {}, entropy(i));
    }
    e.on_probation = false;
    // Back at once if it works; what it was evicted for before is another story.
    if (comes_up && e.evictions == 1) e.evicted_until = now;
    if (!comes_up) e.evicted_until = std::max(e.evicted_until, now);
  }
  planes_up_ = up;
}

std::uint8_t PathTable::healthy_planes(Instant now) const {
  std::uint8_t healthy = 0;
  for (std::uint8_t p = 0; p < planes_ && now >= cautious_until_; ++p) {
    const bool is_up = ((planes_up_ >> p) & 1) != 0;
    if (is_up && evicted_of_[p] < paths_of(p)) healthy |= static_cast<std::uint8_t>(1u << p);
  }
  // Paths whose rest is over count as well: one packet each finds out.
  const unsigned all = (1u << planes_) - 1;
  for (std::uint32_t i = 0; i < size_ && healthy != (planes_up_ & all); ++i) {
    if (is_up(i) && !is_evicted(i, now) && is_trusted(i, now))
      healthy |= static_cast<std::uint8_t>(1u << plane(i));
  }
  return healthy;
}

void PathTable::on_timeout(Instant now, std::uint32_t index, Duration base_rtt, Instant sent_at) {
  if (!evicts_ || size_ == 1) return;
  Entry& e = entries_[index];
  if (e.evictions > 0) {
    if (e.on_probation) evict(now, index);
    return;  // otherwise a late report about a dead path
  }
  if (e.timeouts == 0 || now - e.first_timeout > base_rtt * kTimeoutRunRtts) {
    e.timeouts = 0;
    e.first_timeout = now;
  }
  ++e.timeouts;
  if (!config_.trimming && e.timeouts < kTimeoutsWithoutTrimming) return;
  evict(now, index);
  if (sent_at != Instant()) be_cautious(now, sent_at);
}

void PathTable::be_cautious(Instant now, Instant sent_at) {
  if (is_cautious_ && now >= cautious_until_) end_caution(now);
  is_cautious_ = true;
  broken_since_ = std::max(broken_since_, sent_at);
  cautious_until_ = now + config_.evict_time / kCautionShare;
}

// Paths that carried nothing since come back as evicted ones do, with one packet first. [CC 7.7]
void PathTable::end_caution(Instant now) {
  is_cautious_ = false;
  for (std::uint32_t i = 0; i < size_ && !too_many_evicted(1); ++i) {
    Entry& e = entries_[i];
    if (e.evictions > 0 || e.answered_sent >= broken_since_) continue;
    e.evictions = 1;
    e.evicted_until = now;
    count_evicted(i, 1);
  }
}

void PathTable::evict(Instant now, std::uint32_t index) {
  Entry& e = entries_[index];
  if (e.evictions == 0) count_evicted(index, 1);
  e.evictions = static_cast<std::uint8_t>(std::min<int>(e.evictions + 1, kMaxBackoff));
  e.on_probation = false;
  e.is_return_dead = false;
  e.asked_since = Instant();
  e.timeouts = 0;
  auto rest = config_.evict_time;
  for (int i = 1; i < e.evictions && rest < config_.evict_time_max; ++i) rest = rest * 2;
  e.evicted_until = now + std::min(rest, config_.evict_time_max);
  trace_.emit(now, base::EventId::kPathEvicted, 0, {}, entropy(index));
  if (too_many_evicted(0)) release_oldest(now);
}

void PathTable::restore(Instant now, std::uint32_t index) {
  Entry& e = entries_[index];
  e.evictions = 0;
  e.timeouts = 0;
  e.on_probation = false;
  count_evicted(index, -1);
  trace_.emit(now, base::EventId::kPathRestored, 0, {}, entropy(index));
}

std::uint8_t PathTable::best_plane() const {
  std::uint8_t best = planes_;
  for (std::uint8_t p = 0; p < planes_; ++p) {
    if (paths_of(p) == 0 || ((planes_up_ >> p) & 1) == 0) continue;
    // evicted / paths, compared without dividing
    if (best == planes_ || evicted_of_[p] * paths_of(best) < evicted_of_[best] * paths_of(p))
      best = p;
  }
  return best;
}

bool PathTable::too_many_evicted(std::uint32_t more) const {
  const std::uint8_t best = best_plane();
  return best == planes_ || (evicted_of_[best] + more) * 4 > paths_of(best) * kEvictedQuarters;
}

// When more of the paths look dead, the fault is elsewhere. [CC 7.7]
void PathTable::release_oldest(Instant now) {
  const std::uint8_t best = best_plane();
  std::optional<std::uint32_t> oldest;
  for (std::uint32_t i = 0; i < size_; ++i) {
    if (entries_[i].evictions == 0 || plane(i) != best) continue;
    if (!oldest || entries_[i].evicted_until < entries_[*oldest].evicted_until) oldest = i;
  }
  if (oldest) restore(now, *oldest);
}

std::string_view name_of(PathState state) {
  switch (state) {
    case PathState::kGood:
      return "good";
    case PathState::kEvicted:
      return "evicted";
    case PathState::kReturning:
      return "returning";
  }
  return "";
}

}  // namespace uet::cc
