#include "cc/credit_pacer.h"

#include <algorithm>
#include <cmath>

#include "cc/wire_counter.h"
#include "lib/base/check.h"

namespace uet::cc {
namespace {

// A turn without credit still sends a packet and invites a retransmission. [CC 5.4]
constexpr ByteCount kEmptyTurnBytes = 1024;
// An honest source asks for at most its own credit_cap. A multiple of ours allows for other links,
// and bounds for how long a source that overstates its demand, or has died, is granted credit.
constexpr int kDemandInCaps = 16;
// Credit in advance takes no more steps than this, however much a long fat link holds.
constexpr ByteCount kStepsInAdvance = 32;
// From so many on, it matters that sources do not keep step.
constexpr std::size_t kIncastSources = 8;

}  // namespace

CreditPacer::CreditPacer(const CcConfig& config, std::size_t capacity, base::Rng& rng)
    : config_(config),
      grant_units_(static_cast<std::uint32_t>(config.grant_bytes / kWireUnitBytes)),
      advance_units_(std::max<std::uint32_t>(
          grant_units_,
          static_cast<std::uint32_t>(config.idle_cap / kStepsInAdvance / kWireUnitBytes))),
      demand_units_max_(std::min<std::uint32_t>(
          kWireCounterMask / 4, units_rounded_up(config.credit_cap * kDemandInCaps))),
      entries_(static_cast<std::uint32_t>(capacity)),
      index_(entries_, entries_.capacity()) {
  UET_CHECK(config.complete);
  UET_CHECK(capacity > 0);
  UET_CHECK(capacity < base::kNoIndex);
  if (config.fabric_factor) fabric_.emplace(config, config.oversubscription, rng, Instant());
}

bool CreditPacer::on_demand(Instant now, SourceKey key, std::uint32_t target) {
  Entry* e = find_or_add(key, target);
  if (e == nullptr) return false;
  raise_target(*e, target);
  if (units_ahead(e->target, e->given) > 0) {
    want(now, *e);
  } else if (e->list == kResting && may_advance(*e)) {
    wake(now);
    move_to(*e, kSatisfied);
  }
  return true;
}

bool CreditPacer::on_trimmed(Instant now, SourceKey key) {
  Entry* e = find_or_add(key, std::nullopt);
  if (e == nullptr) return false;
  want(now, *e);
  return true;
}

bool CreditPacer::on_request(Instant now, SourceKey key, std::uint32_t target) {
  Entry* e = find_or_add(key, target);
  if (e == nullptr) return false;
  raise_target(*e, target);
  want(now, *e);
  return true;
}

void CreditPacer::rest(SourceKey key) {
  if (Entry* e = find(key)) move_to(*e, kResting);
}

void CreditPacer::resume(Instant now, SourceKey key) {
  if (Entry* e = find(key); e != nullptr && units_ahead(e->target, e->given) > 0) want(now, *e);
}

void CreditPacer::forget(SourceKey key) {
  if (Entry* e = find(key)) drop(*e);
}

std::optional<CreditPacer::Grant> CreditPacer::poll_grant(Instant now) {
  if (next_deadline() > now) return std::nullopt;
  update_fabric_factor(now);
  const Grant grant = !lists_[kWanting].empty() ? serve_wanting() : serve_satisfied();
  // A host that polls late may catch up on as much time as its scheduling is noisy, never on more.
  const auto start = std::max(next_turn_, now - config_.timing_noise);
  next_turn_ = start + turn_for(grant.bytes == 0 ? kEmptyTurnBytes : grant.bytes);
  return grant;
}

Instant CreditPacer::next_deadline() const {
  const bool idle = lists_[kWanting].empty() && lists_[kSatisfied].empty();
  return idle ? Instant::never() : next_turn_;
}

std::uint32_t CreditPacer::credit_units(SourceKey key) const {
  const Entry* e = find(key);
  return e == nullptr ? 0 : e->given;
}

void CreditPacer::on_data_seen(bool ecn, bool trimmed, bool last_hop) {
  if (!fabric_) return;
  if (trimmed)
    fabric_->on_trimmed(last_hop);
  else
    fabric_->on_data(ecn);
}

// Its intervals are checked when credit is given: without credit there is nothing to slow down.
void CreditPacer::update_fabric_factor(Instant now) {
  if (fabric_ && now >= fabric_->next_deadline())
    fabric_factor_ = std::clamp(fabric_->poll(now), 0.01, 1.0);
}

CreditPacer::Grant CreditPacer::serve_wanting() {
  Entry& e = lists_[kWanting].front();
  // Under incast the first grants are staggered, so that sources do not synchronise.
  const auto missing = lists_[kWanting].size() >= kIncastSources ? e.phase : 0;
  const auto units = std::min(grant_units_ - missing, units_ahead(e.target, e.given));
  if (units > 0) e.phase = 0;
  e.given = (e.given + units) & kWireCounterMask;
  const bool wants_more = units_ahead(e.target, e.given) > 0;
  move_to(e, wants_more ? kWanting : may_advance(e) ? kSatisfied : kResting);
  return {.key = e.key, .credit_units = e.given, .bytes = units * kWireUnitBytes};
}

// No source wants credit: those that wanted some lately may have a little in advance, so that their
// next message starts without waiting for a round trip.
CreditPacer::Grant CreditPacer::serve_satisfied() {
  Entry& e = lists_[kSatisfied].front();
  e.given = (e.given + advance_units_) & kWireCounterMask;
  move_to(e, may_advance(e) ? kSatisfied : kResting);
  return {.key = e.key, .credit_units = e.given, .bytes = advance_units_ * kWireUnitBytes};
}

// By how much the first grant of a new source is to be smaller: parts of a packet, spread evenly. A grant is no whole number of
// packets, so once in so many turns a source sends one less than usual. Sources that start together would all do that in the same
// turn, and send more than the link carries in all others. (docs/notes/desynchronising-credit-sources.md)
std::uint32_t CreditPacer::next_phase() {
  constexpr std::uint32_t kGoldenRatio = 0x9e37'79b9;  // of 2^32
  const auto packet_units = std::min(units_rounded_up(config_.mtu_bytes), grant_units_ / 2);
  const auto phase = static_cast<std::uint32_t>(std::uint64_t{phase_} * packet_units >> 32);
  phase_ += kGoldenRatio;
  return phase;
}

Duration CreditPacer::turn_for(ByteCount bytes) const {
  const double share = config_.pacer_share * fabric_factor_;
  const double ns = static_cast<double>(bytes) / (share * config_.link_rate.bytes_per_ns());
  return Duration::from_ns(static_cast<std::int64_t>(std::ceil(ns)));
}

// Whole grants only: a source that sends now and then a few bytes would draw one with each of its packets, and could keep nothing
// of it.
bool CreditPacer::may_advance(const Entry& e) const {
  const ByteCount in_advance = units_ahead(e.given, e.target) * kWireUnitBytes;
  return config_.idle_grant &&
         in_advance <= std::max<ByteCount>(config_.idle_cap - advance_units_ * kWireUnitBytes, 0);
}

void CreditPacer::raise_target(Entry& e, std::uint32_t target) const {
  target &= kWireCounterMask;
  if (units_ahead(target, e.target) == 0) return;
  e.target = target;
  if (units_ahead(target, e.given) > demand_units_max_) {
    e.target = (e.given + demand_units_max_) & kWireCounterMask;
  }
}

void CreditPacer::want(Instant now, Entry& e) {
  wake(now);
  if (e.list != kWanting) move_to(e, kWanting);
}

// A pacer that had nothing to do starts at once, but not before its last turn is over.
void CreditPacer::wake(Instant now) {
  if (next_deadline().is_never()) next_turn_ = std::max(next_turn_, now);
}

CreditPacer::Entry* CreditPacer::find_or_add(SourceKey key, std::optional<std::uint32_t> target) {
  if (Entry* known = find(key)) return known;
  if (entries_.is_full() && !lists_[kResting].empty()) drop(lists_[kResting].front());
  Entry* added = entries_.acquire();
  if (added == nullptr) {
    ++refused_;
    return nullptr;
  }
  Entry& e = *added;
  e.key = key;
  e.phase = next_phase();
  // A first demand far above what a new CCC can want comes from one that we have forgotten. Meeting
  // its counter nearly where it stands is a burst of one grant; counting up from zero would never
  // be credit to it.
  const auto first = target.value_or(0) & kWireCounterMask;
  if (first > demand_units_max_) {
    e.given = (first - grant_units_) & kWireCounterMask;
    e.target = e.given;
  }
  index_.insert(hash(key), e);
  lists_[kResting].push_back(e);
  return added;
}

CreditPacer::Entry* CreditPacer::find(SourceKey key) const {
  return index_.find(hash(key), [&](const Entry& e) { return e.key == key; });
}

void CreditPacer::drop(Entry& e) {
  lists_[e.list].erase(lists_[e.list].iterator_to(e));
  index_.erase(hash(e.key), e);
  entries_.release(&e);
}

void CreditPacer::move_to(Entry& e, ListId to) {
  lists_[e.list].erase(lists_[e.list].iterator_to(e));
  e.list = to;
  lists_[to].push_back(e);
}

}  // namespace uet::cc
