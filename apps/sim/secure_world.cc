#include "apps/sim/secure_world.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
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
  // Who has lost his counters knows that the key is not new: 0 would say so.
  std::uint64_t& at = counters.try_emplace(key, has_lost_counters ? 1 : 0).first->second;
  const tss::CounterRange range{at, at + count};
  at = range.end;
  return range;
}

void SecureWorld::Keys::fill_random(std::span<std::uint8_t> out) {
  for (std::uint8_t& byte : out) byte = static_cast<std::uint8_t>(rng.next_u32());
}

SecureWorld::SecureWorld(Simulation& simulation, Fabric& fabric, const SwarmPlan& plan,
                         std::vector<std::unique_ptr<Host>>& hosts, Report report)
    : simulation_(simulation),
      fabric_(fabric),
      plan_(plan),
      hosts_(hosts),
      report_(std::move(report)),
      rng_(plan.secure.seed),
      attacker_(simulation, fabric, plan.secure, plan.hosts()),
      taps_(plan.hosts()),
      next_rotation_(plan.secure.rotate_packets) {
  const tss::Key first = next_key();
  for (HostId h = 0; h < plan.hosts(); ++h) {
    auto keys = std::make_shared<Keys>();
    keys->config = plan.secure.domain;
    if (keys->config.ssi_mode) keys->config.ssi = ssi_of(h);
    keys->seen.host = h;
    keys->seen.has_own_key = keys->config.mode == tss::Mode::kCluster;
    keys->ciphers = ciphers_.ciphers_of(keys->seen);
    keys->rng = base::Rng(rng_.next_u64());
    keys_.push_back(std::move(keys));
    if (plan.secure.servers > 0) choose_role(h);
    give(h, key_for(h, first, plan.secure.domain.epoch));
  }
}

/// Servers know their clients, to whom they send first too. All of them and a client send under one key and one SSI, so each has its
/// part of the counters. [TSS 5]
void SecureWorld::choose_role(HostId host) {
  const HostId servers = plan_.secure.servers;
  const bool is_server = host < servers;
  Keys& keys = *keys_[host];
  tss::DomainConfig& d = keys.config;
  keys.seen.has_own_key = !is_server;
  d.role = is_server ? tss::Role::kServer : tss::Role::kClient;
  const auto host_bits = static_cast<unsigned>(std::bit_width(servers));
  if (d.ssi_mode)
    d.partition = {.bits = host_bits + 1, .id = is_server ? 1u << host_bits | host : 0};
  const bool knows_members = !d.members.empty() || (is_server && d.ssi_mode);
  d.members.clear();
  if (!knows_members) return;
  for (HostId h = is_server ? servers : 0; h < (is_server ? plan_.hosts() : servers); ++h)
    d.members.push_back({.ssi = d.ssi_mode ? ssi_of(h) : 0, .address = address_of(h)});
}

SecureWorld::~SecureWorld() {
  for (HostId h = 0; h < plan_.hosts(); ++h) fabric_.port(h).set_observer(nullptr);
}

tss::Key SecureWorld::next_key() {
  ++keys_made_;
  tss::Key key;
  std::generate_n(key.data(), key.size(),
                  [this] { return static_cast<std::uint8_t>(rng_.next_u32()); });
  return key;
}

tss::KeyConfig SecureWorld::key_for(HostId host, const tss::Key& key, std::uint16_t epoch) const {
  tss::KeyConfig config{.an = an_, .key = key};
  const tss::DomainConfig& d = keys_[host]->config;
  if (d.role != tss::Role::kClient) return config;
  const tss::Context context{.epoch = epoch,
                             .identity = d.ssi_mode ? tss::Identity::of_ssi(d.ssi)
                                                    : tss::Identity::of_address(address_of(host))};
  const tss::DerivedKey own = tss::KeyDerivation(key).derive(tss::Label::kServer, context);
  config.key = own.key;
  config.mask = own.mask;
  config.epoch = epoch;
  return config;
}

/// The newest key. It takes effect with tell().
void SecureWorld::give(HostId host, const tss::KeyConfig& key) {
  keys_[host]->config.keys.push_back(key);
  keys_[host]->seen.numbers[key.an] = keys_made_;
}

void SecureWorld::arm(HostId host, fep::FepConfig& config) {
  Keys& keys = *keys_[host];
  if (std::exchange(keys.has_started, true) && plan_.secure.loses_counters) {
    keys.counters.clear();
    keys.has_lost_counters = true;
    ++keys.config.epoch;
    ++counters_lost_;
  }
  keys.seen.opened = 0;
  auto security = fep::Security::open(keys_[host], fabric_.port(host).facts(), *keys.ciphers);
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
  simulation_.events.call_at(simulation_.now(), [this] { begin_rotation(); });
}

// --- Rotation: every host has the new key before any uses it, and the old one until all have switched --------

void SecureWorld::begin_rotation() {
  an_ = !an_;
  const tss::Key next = next_key();
  for (HostId h = 0; h < plan_.hosts(); ++h) {
    give(h, key_for(h, next, 0));
    tell(h);
    const auto wait =
        static_cast<std::int64_t>(rng_.unit() * static_cast<double>(plan_.secure.skew.ps()));
    simulation_.events.call_at(simulation_.now() + SimSpan::from_ps(wait),
                               [this, h] { switch_key(h); });
  }
  const SimSpan guard = fabric_.config().base_rtt() * 4;
  simulation_.events.call_at(simulation_.now() + plan_.secure.skew + guard,
                             [this] { end_rotation(); });
}

void SecureWorld::switch_key(HostId host) {
  keys_[host]->config.tx_an = keys_[host]->seen.tx_an = an_;
  keys_[host]->config.epoch = 0;
  tell(host);
}

void SecureWorld::end_rotation() {
  for (HostId h = 0; h < plan_.hosts(); ++h) {
    std::erase_if(keys_[h]->config.keys, [this](const tss::KeyConfig& k) { return k.an != an_; });
    keys_[h]->seen.numbers[!an_] = 0;
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

void SecureWorld::check_host(HostId host) {
  if (!hosts_[host]->is_up()) return;
  const tss::SecurityStats& s = hosts_[host]->fep().security()->domain().stats();
  const std::uint64_t believed = s.in_auth_pkts + s.in_replay_pkts + s.in_source_table_full_pkts;
  if (believed != keys_[host]->seen.opened)
    report_(fmt::format("host {}: {} packets count as authentic, and {} were opened", host,
                        believed, keys_[host]->seen.opened));
}

void SecureWorld::check() {
  for (HostId h = 0; h < plan_.hosts(); ++h) check_host(h);
  if (ciphers_.repeats() != 0)
    report_(fmt::format("{} pairs of key and IV were used twice", ciphers_.repeats()));
  if (ciphers_.forged() != 0)
    report_(fmt::format("{} packets opened that no host has sealed", ciphers_.forged()));
  if (ciphers_.refused() != 0)
    report_(
        fmt::format("{} packets did not open although their key was there", ciphers_.refused()));
  if (ciphers_.shared_keys() != 0)
    report_(fmt::format("{} packets left under another sender's key", ciphers_.shared_keys()));
}

}  // namespace uet::sim
