#include "fep/secure_guard.h"

#include <bit>
#include <cstring>

#include "lib/base/planted.h"

namespace uet::fep {

using base::Psn;
using tss::OpeningMethod;

namespace {

// Starts are compared serially, so those of one source must lie within half the number space of each
// other. First ones are chosen low, which leaves the rest for those that follow. [TSS 11.2, 17]
constexpr std::uint32_t kStartMin = 1u << 16;
constexpr std::uint32_t kFirstStartEnd = 1u << 24;
constexpr std::uint32_t kChallengeEnd = 1u << 31;

}  // namespace

SecureGuard::SecureGuard(tss::SecureDomain& domain)
    : domain_(domain),
      capacity_(domain.config().max_sources),
      buckets_(std::bit_ceil(2 * capacity_), 0) {
  peers_.reserve(capacity_);
}

// --- As target

pds::OpeningGuard::Challenge SecureGuard::on_opening(const Opening& opening) {
  if (base::planted(base::PlantedBug::kGuardOff)) return std::nullopt;
  Peer* peer = find_or_add(opening.source);
  if (peer != nullptr && tells(opening)) {
    if (!peer->expected || opening.start.is_at_or_after(*peer->expected)) return std::nullopt;
    return peer->expected;
  }
  // What this SYN carries will come from another start. When starts are trusted again, it must not open here.
  if (peer != nullptr) expect_behind(*peer, opening.start);
  return random_start(kChallengeEnd);
}

/// What this SYN carries may have come another way since it was sealed: its initiator was told that this host has lost a PDC, by a process that began
/// when the SYN was under way already. Then the other way's packets were sealed later, and one of them is here.
bool SecureGuard::tells(const Opening& opening) const {
  return domain_.config().opening == OpeningMethod::kExpected && domain_.are_keys_fresh() &&
         !opening.is_overtaken;
}

void SecureGuard::expect_behind(Peer& peer, Psn start) {
  peer.expected = peer.expected ? serial_max(*peer.expected, start + 1) : start + 1;
}

bool SecureGuard::is_confirmed(const Opening& opening, Psn announced) {
  if (opening.start == announced) return true;
  if (Peer* peer = find(opening.source)) expect_behind(*peer, opening.start);
  return false;
}

bool SecureGuard::may_wait(const net::FabricAddress& source) {
  Peer* peer = find_or_add(source);
  if (waiting_ >= domain_.config().max_pending) return false;
  if (peer != nullptr && peer->waiting >= domain_.config().max_pending_per_source) return false;
  ++waiting_;
  if (peer != nullptr) ++peer->waiting;
  return true;
}

void SecureGuard::on_wait_over(const net::FabricAddress& source) {
  --waiting_;
  if (Peer* peer = find(source); peer != nullptr && peer->waiting > 0) --peer->waiting;
}

std::optional<Psn> SecureGuard::on_target_closed(const net::FabricAddress& source, Psn start) {
  if (domain_.config().opening == OpeningMethod::kChallenge) return std::nullopt;
  Peer* peer = find_or_add(source);
  if (peer == nullptr) return std::nullopt;
  expect_behind(*peer, start);
  return peer->expected;
}

void SecureGuard::on_half_open_limit() {
  domain_.manager().on_alarm(tss::Alarm::kPendingFlood, domain_.config().sdi);
}

// --- As initiator

bool SecureGuard::knows_order() const {
  return domain_.config().tsc_floor;
}

std::optional<Psn> SecureGuard::expected_by(const net::FabricAddress& target) {
  const Peer* peer = find(target);
  if (peer != nullptr && peer->told) return peer->told;
  return random_start(kFirstStartEnd);
}

void SecureGuard::on_expected_psn(const net::FabricAddress& target, Psn expected) {
  Peer* peer = find_or_add(target);
  if (peer == nullptr) return;
  peer->told = peer->told ? serial_max(*peer->told, expected) : expected;
}

// --- Peers

SecureGuard::Peer* SecureGuard::find(const net::FabricAddress& address) {
  const std::size_t mask = buckets_.size() - 1;
  for (std::size_t at = first_bucket(address); buckets_[at] != 0; at = (at + 1) & mask)
    if (peers_[buckets_[at] - 1].address == address) return &peers_[buckets_[at] - 1];
  return nullptr;
}

SecureGuard::Peer* SecureGuard::find_or_add(const net::FabricAddress& address) {
  if (Peer* peer = find(address)) return peer;
  if (peers_.size() == capacity_) return nullptr;
  peers_.push_back({.address = address});
  const std::size_t mask = buckets_.size() - 1;
  std::size_t at = first_bucket(address);
  while (buckets_[at] != 0) at = (at + 1) & mask;
  buckets_[at] = static_cast<std::uint32_t>(peers_.size());
  return &peers_.back();
}

std::size_t SecureGuard::longest_chain() const {
  std::size_t longest = 0, run = 0;
  for (const std::uint32_t place : buckets_)
    longest = std::max(longest, run = place == 0 ? 0 : run + 1);
  return longest;
}

Psn SecureGuard::random_start(std::uint32_t end) {
  if (random_left_ == 0) {
    std::array<std::uint8_t, sizeof random_> bytes;
    domain_.manager().fill_random(bytes);
    std::memcpy(random_.data(), bytes.data(), bytes.size());
    random_left_ = random_.size();
  }
  const std::uint32_t draw = random_[--random_left_];
  return Psn(kStartMin +
             static_cast<std::uint32_t>((std::uint64_t{draw} * (end - kStartMin)) >> 32));
}

}  // namespace uet::fep
