#include "apps/sim/secure_world.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "fep/security.h"
#include "lib/base/check.h"

namespace uet::sim {

using base::Duration;

// --- Keys -----------------------------------------------------------------------------------------

std::optional<tss::DomainConfig> SecureWorld::Keys::changed_domain() {
  if (!std::exchange(has_changed, false)) return std::nullopt;
  return config;
}

std::optional<tss::CounterRange> SecureWorld::Keys::reserve(const tss::Fingerprint& key,
                                                            std::uint64_t count) {
  std::uint64_t& at = counters[key];
  const tss::CounterRange range{at, at + count};
  at = range.end;
  return range;
}

void SecureWorld::Keys::fill_random(std::span<std::uint8_t> out) {
  for (std::uint8_t& byte : out) byte = static_cast<std::uint8_t>(rng.next_u32());
}

SecureWorld::SecureWorld(World& world, Fabric& fabric, const SwarmPlan& plan,
                         std::vector<std::unique_ptr<Host>>& hosts, Report report)
    : world_(world),
      fabric_(fabric),
      plan_(plan),
      hosts_(hosts),
      report_(std::move(report)),
      rng_(plan.secure.seed),
      attacker_(world, fabric, plan.secure, plan.hosts()),
      taps_(plan.hosts()),
      next_rotation_(plan.secure.rotate_packets) {
  const tss::KeyConfig first{.an = an_, .key = next_key()};
  for (HostId h = 0; h < plan.hosts(); ++h) {
    auto keys = std::make_shared<Keys>();
    keys->config = plan.secure.domain;
    keys->config.keys = {first};
    if (keys->config.ssi_mode) keys->config.ssi = ssi_of(h);
    keys->rng = base::Rng(rng_.next_u64());
    keys_.push_back(std::move(keys));
  }
}

SecureWorld::~SecureWorld() {
  for (HostId h = 0; h < plan_.hosts(); ++h) fabric_.port(h).set_observer(nullptr);
}

tss::Key SecureWorld::next_key() {
  tss::Key key;
  std::generate_n(key.data(), key.size(),
                  [this] { return static_cast<std::uint8_t>(rng_.next_u32()); });
  return key;
}

void SecureWorld::arm(HostId host, fep::FepConfig& config) {
  auto security = fep::Security::open(keys_[host], fabric_.port(host).facts(), ciphers_);
  UET_CHECK(security.has_value());
  config.security = *security;
}

void SecureWorld::start() {
  for (HostId h = 0; h < plan_.hosts(); ++h) {
    SimPort& port = fabric_.port(h);
    taps_[h].world = this;
    taps_[h].next = port.observer();
    port.set_observer(&taps_[h]);
  }
}

void SecureWorld::on_sent(const Frame& frame) {
  constexpr std::uint8_t kTypeTss = 1;
  const auto bytes = frame.rx.packet.bytes();
  if (bytes.empty() || bytes[0] >> 3 != kTypeTss)
    report_(fmt::format("host {}: a packet left in clear", frame.source));
  attacker_.on_sent(frame);
  if (plan_.secure.rotate_packets == 0 || is_rotating_ || ciphers_.sealed() < next_rotation_)
    return;
  is_rotating_ = true;
  // Not now: this is in the middle of a host's turn.
  world_.events.call_at(world_.now(), [this] { begin_rotation(); });
}

// --- Rotation: every host has the new key before any uses it, and the old one until all have switched --------

void SecureWorld::begin_rotation() {
  an_ = !an_;
  const tss::KeyConfig next{.an = an_, .key = next_key()};
  for (HostId h = 0; h < plan_.hosts(); ++h) {
    keys_[h]->config.keys.push_back(next);
    tell(h);
    const auto wait =
        static_cast<std::int64_t>(rng_.unit() * static_cast<double>(plan_.secure.skew.ps()));
    world_.events.call_at(world_.now() + SimSpan::from_ps(wait), [this, h] { switch_key(h); });
  }
  const SimSpan guard = fabric_.config().base_rtt() * 4;
  world_.events.call_at(world_.now() + plan_.secure.skew + guard, [this] { end_rotation(); });
}

void SecureWorld::switch_key(HostId host) {
  keys_[host]->config.tx_an = an_;
  keys_[host]->config.epoch = 0;
  tell(host);
}

void SecureWorld::end_rotation() {
  for (HostId h = 0; h < plan_.hosts(); ++h) {
    std::erase_if(keys_[h]->config.keys, [this](const tss::KeyConfig& k) { return k.an != an_; });
    tell(h);
  }
  ++rotations_;
  is_rotating_ = false;
  next_rotation_ = ciphers_.sealed() + plan_.secure.rotate_packets;
}

/// One that is down reads its keys when it starts.
void SecureWorld::tell(HostId host) {
  if (!hosts_[host]->is_up()) return;
  keys_[host]->has_changed = true;
  hosts_[host]->fep().security()->domain().service();
}

// --- What must be true ----------------------------------------------------------------------------

SimTime SecureWorld::replay_everything() {
  return attacker_.replay_everything() + SimSpan::from(plan_.secure.domain.new_pdc_time);
}

void SecureWorld::check() {
  if (ciphers_.repeats() != 0)
    report_(fmt::format("{} pairs of key and IV were used twice", ciphers_.repeats()));
  if (ciphers_.forged() != 0)
    report_(fmt::format("{} packets opened that no host has sealed", ciphers_.forged()));
}

}  // namespace uet::sim
