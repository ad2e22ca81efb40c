// Keys in and out, and what service() does. Packets: seal.cc, open.cc.

#include "tss/secure_domain.h"

#include <algorithm>
#include <array>
#include <bit>

#include "lib/base/planted.h"

namespace uet::tss {
namespace {

const KeyConfig* key_for(const DomainConfig& config, bool an) {
  const auto at = std::find_if(config.keys.begin(), config.keys.end(),
                               [an](const KeyConfig& k) { return k.an == an; });
  return at == config.keys.end() ? nullptr : &*at;
}

base::HashKey draw_hash_key(KeyManager& manager) {
  std::array<std::uint8_t, sizeof(base::Rng::Key)> random;
  manager.fill_random(random);
  return base::HashKey(base::Rng(std::bit_cast<base::Rng::Key>(random)));
}

}  // namespace

SecureDomain::SecureDomain(KeyManager& manager, const Carrier& carrier,
                           const net::FabricAddress& own, const CipherLibrary& ciphers)
    : manager_(manager),
      config_(manager.domain()),
      carrier_(carrier),
      own_(own),
      ciphers_(ciphers),
      hash_key_(draw_hash_key(manager)),
      sources_(why_unusable(config_).empty() ? config_.max_sources : 1,
               why_unusable(config_).empty() ? config_.replay_window : 0, needs_members(config_),
               hash_key_),
      wanted_tx_an_(config_.tx_an) {
  sealer_ = ciphers_.make_sealer();
  tx_key_.cipher = ciphers_.make(Direction::kSeal);
  rx_key_.cipher = ciphers_.make(Direction::kOpen);
  if (!why_unusable(config_).empty()) return;
  for (const KeyConfig& key : config_.keys) install(key);
  first_generations_ = generations_;
  (void)select(config_.tx_an);
}

/// What waits to be sealed has spent its counters.
SecureDomain::~SecureDomain() {
  for (const Association& a : slots_) {
    const CounterRange unused = a.counter.unused();
    if (a.state != SlotState::kEmpty && unused.first != unused.end)
      manager_.give_back(a.fingerprint, unused);
  }
}

std::string SecureDomain::why_not_usable() const {
  if (std::string why = why_unusable(config_); !why.empty()) return why;
  if (std::string why = why_unusable_at(config_, own_); !why.empty()) return why;
  if (config_.keys.empty()) return "keys: the domain has no key";
  if (tx_slot_ < 0)
    return "no counters can be reserved for the key with AN " +
           std::to_string(static_cast<int>(config_.tx_an)) +
           ": its state is missing or cannot be written, or all its counters are spent";
  return "";
}

// --- Keys

bool SecureDomain::install(const KeyConfig& key) {
  if (!put(key)) return false;
  Association& a = slots_[key.an];
  take_counters(a, manager_.reserve(a.fingerprint, a.counter.reservation()));
  return true;
}

/// Without counters that would have to be waited for: service() gets them.
void SecureDomain::install_soon(const KeyConfig& key) {
  if (put(key)) (void)ask_for_counters(slots_[key.an]);
}

/// Packets that come are opened from now on; counters are another matter.
bool SecureDomain::put(const KeyConfig& key) {
  Association& a = slots_[key.an];
  const Association& other = slots_[!key.an];
  if (a.state != SlotState::kEmpty) return false;
  if (other.state != SlotState::kEmpty && other.key.key == key.key) return false;
  a = Association{.state = SlotState::kReady, .generation = ++generations_, .key = key};
  is_stopped_ = false;
  a.fingerprint = fingerprint_of(key.key);
  a.counter = TxCounter(config_.partition, config_.counter_fatal);
  if (derives()) {
    a.kdf = std::make_unique<KeyDerivation>(key.key);
  } else {
    a.common_open = ciphers_.make(Direction::kOpen);
    a.common_seal = ciphers_.make(Direction::kSeal);
    a.common_open->set_key(key.key);
    a.common_seal->set_key(key.key);
    if (manager_.wants_keys()) {
      const Context context{
          .epoch = key.epoch,
          .identity = config_.role == Role::kClient
                          ? context_of({.sp = config_.ssi_mode, .ssi = config_.ssi}, own_).identity
                          : Identity{}};
      report_key(a, context, DerivedKey{key.key, key.mask.value_or(Mask{})});
    }
  }
  return true;
}

bool SecureDomain::select(bool an) {
  Association& a = slots_[an];
  if (a.state == SlotState::kEmpty) return false;
  if (tx_slot_ == static_cast<int>(an)) return true;
  if (a.counter.left() == 0) {
    if (!a.is_reserving) alarm(a.counter.is_spent() ? Alarm::kCounterSpent : Alarm::kNoReservation);
    return false;
  }
  if (tx_slot_ >= 0) slots_[tx_slot_].state = SlotState::kRetiring;
  a.state = SlotState::kActive;
  tx_slot_ = an;
  config_.tx_an = an;
  take_epoch(a);
  return true;
}

void SecureDomain::take_epoch(Association& a) {
  a.epoch = config_.role == Role::kClient ? a.key.epoch : config_.epoch;
}

void SecureDomain::remove(bool an) {
  seal_pending();
  slots_[an] = Association{};
  if (tx_slot_ == static_cast<int>(an)) tx_slot_ = -1;
  // Keys derived from it die by their generation; what is in reach is wiped now.
  tx_key_.generation = 0;
  tx_key_.mask = Mask{};
}

// --- Once a second

bool SecureDomain::service() {
  if (auto wanted = manager_.changed_domain(); wanted && why_unusable(*wanted).empty())
    coming_ = std::move(wanted);
  for (Association& a : slots_)
    if (a.is_reserving) reserve_counters(a);
  if (coming_ && apply(*coming_)) coming_.reset();
  if (manager_.asks_to_go_on()) is_stopped_ = false;
  for (Association& a : slots_)
    if (a.state != SlotState::kEmpty) reserve_counters(a);
  // Again and again: the counter state of a key may come after the key. (uet-keys install)
  (void)select(wanted_tx_an_);
  return manager_.is_busy();
}

/// Make before break: a key that comes is there before one that goes is wiped, unless both want the
/// same place. False when counters of the key that is to be sent under are on their way: then what was in use stays, and the same
/// domain is to be applied again.
bool SecureDomain::apply(const DomainConfig& wanted) {
  // What a running endpoint cannot change: its peers' contexts, table sizes and header length hang on
  // it. The owner of the file is told when it is read.
  DomainConfig next = wanted;
  next.sdi = config_.sdi;
  next.mode = config_.mode;
  next.role = config_.role;
  next.ssi_mode = config_.ssi_mode;
  next.ssi = config_.ssi;
  next.partition = config_.partition;
  next.max_sources = config_.max_sources;
  next.replay_window = config_.replay_window;
  if (next.members != config_.members) ++members_version_;
  const bool old_tx = config_.tx_an;
  config_ = std::move(next);
  config_.tx_an = old_tx;

  const auto is_there = [&](bool an) {
    const KeyConfig* key = key_for(config_, an);
    return key != nullptr && slots_[an].state != SlotState::kEmpty &&
           slots_[an].key.key == key->key;
  };
  for (const bool an : {false, true})
    if (!is_there(an) && key_for(config_, an) != nullptr && slots_[an].state == SlotState::kEmpty)
      install_soon(*key_for(config_, an));
  const Association& sent_under = slots_[wanted.tx_an];
  if (is_there(wanted.tx_an) && sent_under.is_reserving && sent_under.counter.left() == 0)
    return false;
  if (is_there(wanted.tx_an)) (void)select(wanted.tx_an);
  for (const bool an : {false, true})
    if (!is_there(an) && slots_[an].state != SlotState::kEmpty) remove(an);
  // A slot whose key was replaced in place: there was no time in which both were known.
  for (const bool an : {false, true})
    if (const KeyConfig* key = key_for(config_, an); key != nullptr && !is_there(an))
      install_soon(*key);
  wanted_tx_an_ = wanted.tx_an;
  // The file's epoch is that of the key it selects: one without counters is not sent under yet.
  if (tx_slot_ == static_cast<int>(wanted.tx_an)) take_epoch(slots_[wanted.tx_an]);
  return true;
}

void SecureDomain::reserve_counters(Association& a) {
  if (a.state == SlotState::kActive && a.counter.is_low()) {
    const bool is_spent = a.counter.is_spent();
    bool& has_warned = is_spent ? a.has_warned_spent : a.has_warned_low;
    if (!has_warned) alarm(is_spent ? Alarm::kCounterSpent : Alarm::kCounterLow);
    has_warned = true;
  }
  const bool is_wanted = a.state == SlotState::kActive || a.key.an == wanted_tx_an_;
  if (!a.is_reserving && !(is_wanted && a.counter.wants_more())) return;
  if (!ask_for_counters(a)) alarm(Alarm::kNoReservation);
  a.has_asked_early = a.counter.wants_more();
}

/// False when they cannot be had. Once the first are there, they tell whether a process of this host had the key before.
bool SecureDomain::take_counters(Association& a, const std::optional<CounterRange>& range) {
  const bool is_first = a.counter.is_new();
  const bool is_given = range && a.counter.give(*range);
  if (is_first && is_given) a.is_fresh = range->first == 0;
  return is_given;
}

bool SecureDomain::ask_for_counters(Association& a) {
  const auto answer = manager_.reserve_without_waiting(a.fingerprint, a.counter.reservation());
  a.is_reserving = answer.is_under_way;
  return answer.is_under_way || take_counters(a, answer.range);
}

// --- Both ways

/// `identity_address`: whose key it is, where no SSI says so. [TSS 5, 6.2]
Context SecureDomain::context_of(const Header& header,
                                 const net::FabricAddress& identity_address) const {
  const bool by_address = !header.sp || (config_.kdf_ipv6_ignores_ssi && !identity_address.is_v4());
  const std::uint64_t counter = header.tsc & kCounterMax;
  return {
      .epoch = header.epoch(),
      .rekey = static_cast<std::uint32_t>((counter & config_.rekey.mask) >> config_.rekey.shift),
      .identity =
          by_address
              ? Identity::of_address(identity_address)
              : Identity::of_ssi(base::planted(base::PlantedBug::kKdfWithoutSsi) ? 0 : header.ssi)};
}

void SecureDomain::derive_into(ReadyKey& key, Association& a, const Context& context,
                               Direction direction) {
  const Label label = config_.mode == Mode::kCluster ? Label::kCluster : Label::kServer;
  const DerivedKey derived = a.kdf->derive(label, context);
  if (!key.cipher) key.cipher = ciphers_.make(direction);
  key.cipher->set_key(derived.key);
  key.mask = derived.mask;
  key.context = context;
  key.generation = a.generation;
  ++stats_.keys_derived;
  if (direction == Direction::kSeal && manager_.wants_keys()) report_key(a, context, derived);
}

void SecureDomain::report_key(const Association& a, const Context& context, const DerivedKey& key) {
  manager_.on_key({.sdi = config_.sdi,
                   .an = a.key.an,
                   .is_for_all = config_.mode == Mode::kDirect,
                   .context = context,
                   .key = key});
}

}  // namespace uet::tss
